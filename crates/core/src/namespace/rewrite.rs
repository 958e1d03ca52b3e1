//! URIs and names within what servers answer, as they are shown beside those of other servers.
//!
//! Only the members that a rule of mcp.md 14.3 names are written; all else stays byte for byte, and a result with
//! nothing to write is not taken apart at all (invariant W1). What is malformed passes as it is.

use std::borrow::Cow;

use serde_json::value::{RawValue, to_raw_value};

use super::uri::is_interface;
use super::{Label, shown_uri};
use crate::raw::{Members, elements, object, text};

/// `None` = nothing is to be changed.
type Changed = Option<Box<RawValue>>;

/// An object with one of its members changed.
pub fn in_member(raw: &RawValue, name: &str, change: impl FnOnce(&RawValue) -> Changed) -> Changed {
    let members = Members::of(raw)?;
    let new = change(members.get(name)?)?;
    let changed = members.0.iter().map(|(member, value)| (&**member, if member == name { &*new } else { *value }));
    RawValue::from_string(object(changed)).ok()
}

/// An array with some of its elements changed.
pub fn in_elements(raw: &RawValue, change: impl Fn(&RawValue) -> Changed) -> Changed {
    let before = elements(raw)?;
    let after: Vec<Changed> = before.iter().map(|element| change(element)).collect();
    if after.iter().all(Option::is_none) {
        return None;
    }
    let texts: Vec<&str> = before.iter().zip(&after).map(|(old, new)| new.as_deref().unwrap_or(old).get()).collect();
    RawValue::from_string(format!("[{}]", texts.join(","))).ok()
}

fn in_text(raw: &RawValue, change: impl FnOnce(&str) -> String) -> Changed {
    to_raw_value(&change(&text(raw)?)).ok()
}

/// An item of a list with the text of its member `name` changed.
pub fn shown_item(item: &RawValue, name: &str, change: impl FnOnce(&str) -> String) -> Changed {
    in_member(item, name, |value| in_text(value, change))
}

fn with_uri(raw: &RawValue, label: &Label) -> Changed {
    shown_item(raw, "uri", |uri| shown_uri(label, uri))
}

/// A block of content: the resource that it holds, or links to.
fn block(raw: &RawValue, label: &Label) -> Changed {
    match &*text(Members::of(raw)?.get("type")?)? {
        "resource" => in_member(raw, "resource", |resource| with_uri(resource, label)),
        "resource_link" => with_uri(raw, label),
        _ => None,
    }
}

/// One block, or several.
fn blocks(raw: &RawValue, label: &Label) -> Changed {
    if raw.get().starts_with('[') { in_elements(raw, |each| block(each, label)) } else { block(raw, label) }
}

/// The result of `method` with the URIs in it as they are shown, so that whoever reads one of them can ask for it.
pub fn shown_result<'r>(method: &str, result: &'r RawValue, label: &Label) -> Cow<'r, RawValue> {
    // Looked for first: results are large, and few hold any.
    let changed = Some(result).filter(|result| result.get().contains("\"uri\"")).and_then(|result| match method {
        "resources/read" => in_member(result, "contents", |all| in_elements(all, |each| with_uri(each, label))),
        "prompts/get" => in_member(result, "messages", |all| {
            in_elements(all, |message| in_member(message, "content", |content| blocks(content, label)))
        }),
        "tools/call" => in_member(result, "content", |content| blocks(content, label)),
        _ => None,
    });
    changed.map_or(Cow::Borrowed(result), Cow::Owned)
}

/// The member of a tool's `_meta` that tells of its user interface (SEP-1865), what that is told by, and how hosts read it
/// that came before.
const INTERFACE: &str = "ui";
const INTERFACE_URI: &str = "resourceUri";
const EARLIER_INTERFACE_URI: &str = "ui/resourceUri";

/// A `Tool` object with the URI of its user interface as it is shown, so that a host can read that back.
pub fn shown_tool<'t>(tool: &'t RawValue, label: &Label) -> Cow<'t, RawValue> {
    let with_interface = |raw: &RawValue, name: &str| {
        in_member(raw, name, |uri| {
            let uri = text(uri).filter(|uri| is_interface(uri))?;
            to_raw_value(&shown_uri(label, &uri)).ok()
        })
    };
    // Looked for first: few tools have one.
    let changed = Some(tool).filter(|tool| tool.get().contains(INTERFACE_URI)).and_then(|tool| {
        in_member(tool, "_meta", |meta| {
            let now = in_member(meta, INTERFACE, |interface| with_interface(interface, INTERFACE_URI));
            let earlier = with_interface(now.as_deref().unwrap_or(meta), EARLIER_INTERFACE_URI);
            earlier.or(now)
        })
    });
    changed.map_or(Cow::Borrowed(tool), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(method: &str, result: &str) -> String {
        let result = RawValue::from_string(result.to_owned()).unwrap();
        let label = Label { name: "web".to_owned(), is_personal: false };
        shown_result(method, &result, &label).get().to_owned()
    }

    #[test]
    fn resources_that_are_read_held_or_linked_are_shown_with_their_server() {
        // mcp.md 14.3; invariant W1: order, numbers and members that nobody knows stay.
        assert_eq!(
            shown("resources/read", r#"{"z":1.0,"contents":[{"uri":"a://1","n":9223372036854775809},{"text":"x"}]}"#),
            r#"{"z":1.0,"contents":[{"uri":"caribou:web/a://1","n":9223372036854775809},{"text":"x"}]}"#
        );
        let called = r#"{"content":[{"type":"resource","resource":{"uri":"a://1","x":{"uri":"u"}}},
            {"type":"resource_link","uri":"b"},{"type":"text","uri":"c"}],"uri":"d"}"#;
        // The blanks between two elements of an array are not kept.
        let expected = called.replace("a://1", "caribou:web/a://1").replace(r#""b""#, r#""caribou:web/b""#);
        assert_eq!(shown("tools/call", called), expected.replace(",\n            {", ",{"));
        let got = r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a://1"}}}]}"#;
        assert_eq!(shown("prompts/get", got), got.replace("a://1", "caribou:web/a://1"));
    }

    #[test]
    fn a_tool_says_where_its_user_interface_is_read_back_here() {
        // SEP-1865; invariant W1.
        let shown = |tool: &str| {
            let tool = RawValue::from_string(tool.to_owned()).unwrap();
            shown_tool(&tool, &Label { name: "web".to_owned(), is_personal: false }).get().to_owned()
        };
        let tool = r#"{"z":1.0,"name":"t","_meta":{"ui/resourceUri":"ui://a","k":1,"ui":{"resourceUri":"ui://b","visibility":["app"]}}}"#;
        let expected = tool.replace("ui://", "ui://caribou/web/ui://");
        assert_eq!(shown(tool), expected);
        let one = r#"{"_meta":{"ui":{"resourceUri":"ui://b"}}}"#;
        assert_eq!(shown(one), one.replace("ui://", "ui://caribou/web/ui://"));
        for same in [
            r#"{ "name":"t", "description":"resourceUri ui://a" }"#,
            r#"{"_meta": {"ui": {"resourceUri": 7}, "ui/resourceUri": "https://a"}}"#,
            r#"{"_meta":{"ui":[]},"resourceUri":"ui://a"}"#,
        ] {
            assert_eq!(shown(same), same);
        }
    }

    #[test]
    fn a_result_with_nothing_to_show_passes_byte_for_byte() {
        // Invariant W1.
        for (method, result) in [
            ("tools/call", r#"{ "content" : [ {"type":"text","text":"\"uri\""} ], "structuredContent": {"uri":"x"} }"#),
            ("tools/call", r#"{"content":{"type":"resource","resource":7},"uri":1}"#),
            ("resources/read", r#"{"contents":[{"uri":7}]}"#),
            ("completion/complete", r#"{"completion":{"values":[]},"uri":"x"}"#),
        ] {
            assert_eq!(shown(method, result), result);
        }
    }
}
