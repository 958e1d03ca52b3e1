//! How the tools of a toolset are shown (contract 6.11): the one that submits is replaced by a tool of ours, the others
//! are hidden, and every other tool of the server stays as it is.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::config::{ServerConfig, TaskToolset};
use crate::raw::{self, Members};
use crate::tool::ServerTools;

/// What callers read behind the server's own description of a tool that submits.
const BACKGROUND: &str = "This starts a background task: the answer names the task and is not its result. You will be \
                          told when the task needs input or has ended; do not submit it again meanwhile.";

/// What a tool is to the toolsets of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<'s> {
    /// Not part of any: shown and called as it is.
    Ordinary,
    /// A call of it submits a task of this toolset.
    Submit(&'s TaskToolset),
    /// Only called in the background; nobody else sees it.
    Hidden,
}

/// The role of a tool by its raw name.
pub fn role<'s>(server: &'s ServerConfig, raw_name: &str) -> Role<'s> {
    for set in &server.task_toolsets {
        if set.submit_tool == raw_name {
            return Role::Submit(set);
        }
        if set.status_tool == raw_name || set.cancel_tool == raw_name || set.input_tool.as_deref() == Some(raw_name) {
            return Role::Hidden;
        }
    }
    Role::Ordinary
}

/// A configured tool of a toolset that the server does not have.
pub fn missing<'s>(server: &'s ServerConfig, tools: &ServerTools) -> Option<&'s str> {
    let has = |raw_name: &str| tools.tools.iter().any(|tool| *tool.raw_name == *raw_name);
    let configured = server.task_toolsets.iter().flat_map(|set| {
        [Some(&set.submit_tool), Some(&set.status_tool), Some(&set.cancel_tool), set.input_tool.as_ref()]
    });
    configured.flatten().map(String::as_str).find(|raw_name| !has(raw_name))
}

/// The tools that are shown: none that is hidden, and those that submit say so.
pub fn shown(server: &ServerConfig, mut tools: ServerTools) -> ServerTools {
    tools.tools.retain(|tool| role(server, &tool.raw_name) != Role::Hidden);
    for tool in &mut tools.tools {
        if let Role::Submit(_) = role(server, &tool.raw_name) {
            tool.tool = wrapper(&tool.tool);
        }
    }
    tools
}

/// The tool as the server lists it, with our sentence behind its description. Without `outputSchema` and `execution`,
/// which speak of an answer that is now ours.
fn wrapper(tool: &RawValue) -> Arc<RawValue> {
    let Some(members) = Members::of(tool) else { return tool.to_owned().into() };
    let own = members.get("description").and_then(raw::text);
    let description = own
        .filter(|own| !own.trim().is_empty())
        .map_or_else(|| BACKGROUND.to_owned(), |own| format!("{own}\n\n{BACKGROUND}"));
    let Ok(description) = serde_json::value::to_raw_value(&description) else { return tool.to_owned().into() };
    let replaced = ["description", "outputSchema", "execution"];
    let kept = members.0.iter().filter(|(name, _)| !replaced.contains(&name.as_ref()));
    let kept = kept.map(|(name, value)| (name.as_ref(), *value));
    let text = raw::object(kept.chain([("description", &*description)]));
    RawValue::from_string(text).map_or_else(|_| tool.to_owned().into(), Arc::from)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Source, parse};

    fn server() -> Arc<ServerConfig> {
        let text = br#"{"mcpServers": {"r": {"command": "x", "task_toolsets": [{"name": "report", "submit_tool": "s",
            "status_tool": "t", "cancel_tool": "c", "input_tool": "i"}]}}}"#;
        parse(&Source { file: Path::new("/x.json"), text }, &|_| None).unwrap().servers.remove(0).config.unwrap()
    }

    fn tools(names: &[&str]) -> ServerTools {
        let tool = |name: &&str| {
            let text = format!(
                r#"{{"name":"{name}","description":"Does {name}.","inputSchema":{{"type":"object","n":1.0}},"x":2e3,
                    "outputSchema":{{"type":"object"}},"_meta":{{"a":[1]}}}}"#
            );
            Arc::from(RawValue::from_string(text).unwrap())
        };
        let listed: Vec<_> = names.iter().map(tool).collect();
        ServerTools::read("r", true, &listed, Vec::new())
    }

    #[test]
    fn status_cancel_and_input_tools_are_hidden_and_other_tools_stay_as_they_are() {
        // Contract 6.11, exposure.
        let before = tools(&["s", "t", "other", "c", "i"]);
        let other = before.tools[2].tool.clone();
        let after = shown(&server(), before);
        let names: Vec<&str> = after.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["r_s", "r_other"]);
        assert!(Arc::ptr_eq(&after.tools[1].tool, &other));
    }

    #[test]
    fn the_submitting_tool_keeps_name_schema_and_metadata_and_says_that_it_starts_a_task() {
        // Contract 6.11, wrapper.
        let after = shown(&server(), tools(&["s", "t", "c", "i"]));
        let text = after.tools[0].tool.get();
        for kept in
            [r#""name":"s""#, r#""inputSchema":{"type":"object","n":1.0}"#, r#""x":2e3"#, r#""_meta":{"a":[1]}"#]
        {
            assert!(text.contains(kept), "{text}");
        }
        assert!(
            text.contains("Does s.\\n\\nThis starts a background task") && !text.contains("outputSchema"),
            "{text}"
        );
        let bare = RawValue::from_string(r#"{"name":"s","description":" "}"#.to_owned()).unwrap();
        assert!(wrapper(&bare).get().contains(r#""description":"This starts"#));
    }

    #[test]
    fn a_configured_tool_that_is_not_there_is_found() {
        // Contract 6.11, missing tool.
        assert_eq!(missing(&server(), &tools(&["s", "t", "c", "i"])), None);
        for lacking in ["s", "t", "c", "i"] {
            let names: Vec<&str> = ["s", "t", "c", "i"].into_iter().filter(|name| *name != lacking).collect();
            assert_eq!(missing(&server(), &tools(&names)), Some(lacking));
        }
    }
}
