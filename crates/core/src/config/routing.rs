//! The fields `routing` and `tools` of a server (contract 1.2, 1.3).
//!
//! Owns what they may hold; how a hint is shown is not decided here. A priority out of range is clamped with a
//! warning, anything else that is wrong costs the server.

use super::fields::{Field, Fields};
use super::{Routing, RoutingMode, ToolOverride, required_scopes};

const KEYS: [&str; 3] = ["mode", "priority", "keywords"];
const MODES: [(&str, RoutingMode); 2] = [("off", RoutingMode::Off), ("prefer", RoutingMode::Prefer)];

/// The server's own routing.
pub(super) fn server(server: &Fields<'_>) -> Routing {
    let written = server.get("routing").map(|field| routing(&field)).unwrap_or_default();
    Routing::default().overlaid(&written)
}

/// The overrides by raw tool name.
pub(super) fn tools(server: &Fields<'_>) -> Vec<(String, ToolOverride)> {
    let Some(tools) = server.get("tools").and_then(|field| field.object()) else { return Vec::new() };
    tools.iter().filter_map(|(name, field)| Some((name.to_owned(), tool(&field.object()?)))).collect()
}

fn tool(tool: &Fields<'_>) -> ToolOverride {
    tool.note_extras(&["routing", "required_scopes"]);
    let hints = tool.get_set("routing").map(|field| routing(&field)).unwrap_or_default();
    ToolOverride { required_scopes: required_scopes::read(tool), ..hints }
}

fn routing(field: &Field<'_>) -> ToolOverride {
    let Some(fields) = field.object() else { return ToolOverride::default() };
    fields.refuse_extras(&KEYS);
    ToolOverride {
        mode: fields.word("mode", &MODES),
        priority: fields.get("priority").and_then(|field| priority(&field)),
        keywords: fields
            .get("keywords")
            .map(|_| fields.texts("keywords").into_iter().map(|keyword| keyword.value.clone()).collect()),
        required_scopes: None,
    }
}

fn priority(field: &Field<'_>) -> Option<u8> {
    let written = field.whole()?;
    let clamped = written.clamp(0, 100);
    if clamped != written {
        field.warn(&format!("is outside 0 to 100: taken as {clamped}"), "");
    }
    u8::try_from(clamped).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::{assert_dropped, assert_warned, good};

    #[test]
    fn an_override_replaces_only_what_it_writes() {
        // Contract 1.3.
        let server = good(
            r#""command": "x", "routing": {"mode": "prefer", "priority": 7, "keywords": ["a"]},
               "tools": {"t": {"routing": {"priority": 9}, "extra": 1}, "none": {}, "off": {"routing": {"mode": "off"}}}"#,
        );
        let routing = |mode, priority| Routing { mode, priority, keywords: vec!["a".to_owned()] };
        assert_eq!(server.routing_of("t"), routing(RoutingMode::Prefer, 9));
        assert_eq!(server.routing_of("none"), routing(RoutingMode::Prefer, 7));
        assert_eq!(server.routing_of("off"), routing(RoutingMode::Off, 7));
        assert_eq!(server.routing_of("unknown"), routing(RoutingMode::Prefer, 7));
    }

    #[test]
    fn an_override_without_a_mode_leaves_a_server_off() {
        // Contract 1.3.
        let server = good(r#""command": "x", "tools": {"t": {"routing": {"priority": 9, "keywords": ["k"]}}}"#);
        assert_eq!(server.routing_of("t").mode, RoutingMode::Off);
        assert_eq!(server.routing_of("other"), Routing::default());
    }

    #[test]
    fn a_priority_out_of_range_is_clamped_with_a_warning() {
        // Contract 1.2.
        for (written, taken) in [("-1", 0), ("101", 100)] {
            let body = format!(r#""command": "x", "routing": {{"priority": {written}}}"#);
            assert_warned(&[(&body, &format!("routing.priority: is outside 0 to 100: taken as {taken}"))]);
            assert_eq!(good(&body).routing.priority, taken);
        }
    }

    #[test]
    fn anything_else_wrong_costs_the_server() {
        // Contract 1.2.
        assert_dropped(&[
            (r#""command": "x", "routing": {"mode": "require"}"#, r#"routing.mode: must be "off" or "prefer""#),
            (r#""command": "x", "routing": {"weight": 1}"#, "routing.weight: is not a known key and none is allowed"),
            (r#""command": "x", "routing": {"priority": true}"#, "routing.priority: must be a whole number"),
            (r#""command": "x", "routing": {"keywords": "k"}"#, "routing.keywords: must be a list"),
            (r#""command": "x", "tools": {"t": {"routing": {"mode": 1}}}"#, "tools.t.routing.mode: must be a string"),
            (r#""command": "x", "tools": {"t": []}"#, "tools.t: must be an object"),
        ]);
    }
}
