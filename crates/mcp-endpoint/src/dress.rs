//! What a result gets or loses on its way to a client of either era (mcp.md §2.5, §6, 14.3).
//!
//! Only members that a rule names are written or left out; everything else, its order and its numbers included, stays
//! as the server wrote it (invariant W1).

use std::sync::LazyLock;

use caribou_core::era::Era;
use caribou_core::raw::{Members, push_member};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How long a client may use what it was told without asking again.
const FRESH_MS: u32 = 5_000;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// [`our_info`], as it is written into every result.
static OUR_INFO: LazyLock<String> = LazyLock::new(|| our_info().to_string());

/// Our own `Implementation` object.
pub(crate) fn our_info() -> Value {
    json!({ "name": "caribou", "title": "Caribou", "version": env!("CARGO_PKG_VERSION") })
}

/// Whether results of a method say how long they may be used.
fn is_cacheable(method: &str) -> bool {
    let cacheable = [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ];
    cacheable.contains(&method)
}

/// `result` of `method` as a client of `era` may read it.
pub(crate) fn dressed(era: Era, method: &str, result: &str) -> String {
    let Ok(raw) = serde_json::from_str::<&RawValue>(result) else { return result.to_owned() };
    let Some(members) = Members::of(raw) else { return result.to_owned() };
    match era {
        Era::Legacy => for_legacy(&members).unwrap_or_else(|| result.to_owned()),
        Era::Modern => for_modern(method, &members),
    }
}

/// `None` = nothing is to be left out.
fn for_legacy(members: &Members<'_>) -> Option<String> {
    // Structured content that is no object came with the modern era; its text stays.
    let is_left_out = |name: &str, value: &RawValue| match name {
        "resultType" | "ttlMs" | "cacheScope" => true,
        "structuredContent" => !value.get().starts_with('{'),
        _ => false,
    };
    members.0.iter().any(|(name, value)| is_left_out(name, value)).then(|| {
        let kept = members.0.iter().filter(|(name, value)| !is_left_out(name, value));
        caribou_core::raw::object(kept.map(|(name, value)| (name.as_ref(), *value)))
    })
}

fn for_modern(method: &str, members: &Members<'_>) -> String {
    let kind = members.get("resultType").map_or("\"complete\"", RawValue::get);
    // A task has a time to live of its own (mcp.md §9.2), and is ours.
    let is_task = kind == "\"task\"" || method.starts_with("tasks/");
    let is_hint = |name: &str| matches!(name, "ttlMs" | "cacheScope") && !is_task;
    let mut text = format!("{{\"resultType\":{kind}");
    let mut put = |name: &str, value: &str| {
        text.push(',');
        push_member(&mut text, name, value);
    };
    let others = members.0.iter().filter(|(name, _)| name != "resultType" && name != "_meta" && !is_hint(name));
    others.for_each(|(name, value)| put(name, value.get()));
    if is_cacheable(method) && kind == "\"complete\"" {
        // What a caller may see depends on who it is: nobody else may be shown it.
        put("ttlMs", &FRESH_MS.to_string());
        put("cacheScope", "\"private\"");
    }
    put("_meta", &with_our_info(members.get("_meta")));
    text.push('}');
    text
}

/// The `_meta` of the server with our identity in the place of its own: each hop names itself.
fn with_our_info(meta: Option<&RawValue>) -> String {
    let mut text = format!("{{\"{SERVER_INFO}\":{}", *OUR_INFO);
    for (name, value) in meta.and_then(Members::of).map_or_else(Vec::new, |meta| meta.0) {
        if name != SERVER_INFO {
            text.push(',');
            push_member(&mut text, &name, value.get());
        }
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_client_reads_what_a_legacy_server_wrote_byte_for_byte() {
        // Invariant W1.
        let result =
            r#"{"z":1.0,"content":[{"type":"hologram"}],"n":9223372036854775809,"structuredContent":{"a": 1}}"#;
        assert_eq!(dressed(Era::Legacy, "tools/call", result), result);
        let modern = r#"{"resultType":"complete","z":1.0,"structuredContent":[1],"ttlMs":1,"cacheScope":"public"}"#;
        assert_eq!(dressed(Era::Legacy, "tools/call", modern), r#"{"z":1.0}"#);
    }

    #[test]
    fn a_modern_client_reads_kind_identity_and_hints_besides() {
        // mcp.md §17, S6 and S7.
        let read = |method: &str, result: &str| dressed(Era::Modern, method, result);
        let info = format!(r#""_meta":{{"io.modelcontextprotocol/serverInfo":{}"#, our_info());
        let called = read("tools/call", r#"{"z":1.0,"n":9223372036854775809,"_meta":{"k":1.0}}"#);
        assert_eq!(called, format!(r#"{{"resultType":"complete","z":1.0,"n":9223372036854775809,{info},"k":1.0}}}}"#));
        let listed = read("prompts/list", r#"{"prompts":[],"ttlMs":9,"cacheScope":"public"}"#);
        let hints = r#""ttlMs":5000,"cacheScope":"private""#;
        assert_eq!(listed, format!(r#"{{"resultType":"complete","prompts":[],{hints},{info}}}}}"#));
        let asked = read("resources/read", r#"{"resultType":"input_required","requestState":"s"}"#);
        assert!(asked.starts_with(r#"{"resultType":"input_required","requestState":"s","_meta""#), "{asked}");
        let task = read("tools/call", r#"{"resultType":"task","taskId":"t","ttlMs":null}"#);
        assert!(task.starts_with(r#"{"resultType":"task","taskId":"t","ttlMs":null,"_meta""#), "{task}");
        let shown = read("tasks/get", r#"{"taskId":"t","ttlMs":5}"#);
        assert!(shown.starts_with(r#"{"resultType":"complete","taskId":"t","ttlMs":5,"_meta""#), "{shown}");
    }
}
