//! The field `task_toolsets` of a server (contract 1.4, with the optional `input_tool` of architecture.md §10).
//!
//! Owns which toolsets are legal. A wrong one costs the server, and since a server that declares any is task-enabled,
//! the whole load: an accepted task must not lose its server to a typo.

use std::collections::HashMap;

use super::TaskToolset;
use super::fields::Fields;

const ROLES: [&str; 4] = ["submit_tool", "status_tool", "cancel_tool", "input_tool"];
const KEYS: [&str; 5] = ["name", "submit_tool", "status_tool", "cancel_tool", "input_tool"];

/// The longest name of a toolset, in characters.
const MAX_NAME: usize = 255;

/// The longest name of a server that has toolsets, in characters.
const MAX_SERVER_NAME: usize = 128;

/// Whether the server asks for durable tasks, rightly or wrongly written.
pub(super) fn declared(server: &Fields<'_>) -> bool {
    server.get("task_toolsets").is_some_and(|field| !field.is_empty())
}

/// The toolsets that are legal; the others are reported.
pub(super) fn read(server: &Fields<'_>, server_name: &str) -> Vec<TaskToolset> {
    let Some(items) = server.get("task_toolsets").and_then(|field| field.list()) else { return Vec::new() };
    let blank = server_name.trim().is_empty();
    if declared(server) && (blank || server_name.chars().count() > MAX_SERVER_NAME) {
        server.error("MCP task server name must contain 1 to 128 characters", "rename the server");
    }
    warn_of_request_secrets(server);
    let mut used = HashMap::new();
    items.filter_map(|item| toolset(&item.object()?, &mut used)).collect()
}

/// Secrets of a request are gone when a task is asked about later (contract 6.13).
fn warn_of_request_secrets(server: &Fields<'_>) {
    let Some(field) = server.get_set("headers_from_context") else { return };
    if declared(server) && field.value()["enabled"] != false {
        let what = "calls about running tasks (status, cancel, input) are made without these headers: the secrets of a \
                    request are not kept";
        field.warn(what, "let the server check callers of task_toolsets by headers, oauth or user_auth");
    }
}

fn toolset(group: &Fields<'_>, used: &mut HashMap<String, String>) -> Option<TaskToolset> {
    group.refuse_extras(&KEYS);
    let name = name(group);
    let [submit, status, cancel, input] = ROLES.map(|role| tool(group, role, used));
    Some(TaskToolset {
        name: name?,
        submit_tool: submit?,
        status_tool: status?,
        cancel_tool: cancel?,
        input_tool: input,
    })
}

fn name(group: &Fields<'_>) -> Option<String> {
    let name = group.required("name", "a task toolset needs 'name', which must not be empty", "")?;
    if name.value.chars().count() > MAX_NAME {
        group.get("name")?.error("must have at most 255 characters", "");
        return None;
    }
    Some(name.value.clone())
}

fn tool(group: &Fields<'_>, role: &'static str, used: &mut HashMap<String, String>) -> Option<String> {
    let Some(field) = group.get_set(role) else {
        if role != "input_tool" {
            group.error(&format!("a task toolset needs '{role}'"), "name one raw tool of this server");
        }
        return None;
    };
    let tool = &field.text()?.value;
    if tool.is_empty() {
        field.error("must not be empty", "name one raw tool of this server");
        return None;
    }
    if let Some(first) = used.insert(tool.clone(), field.path.clone()) {
        let what = format!("raw tool names must be unique across task_toolsets: this one is used by {first} too");
        field.error(&what, "give each role a tool of its own");
    }
    Some(tool.clone())
}

#[cfg(test)]
mod tests {
    use crate::config::samples::{assert_quiet, assert_warned, good, read};

    fn refusal(server_name: &str, toolsets: &str) -> String {
        let text = format!(r#"{{"mcpServers": {{"{server_name}": {{"command": "x", "task_toolsets": {toolsets}}}}}}}"#);
        let problems = read(text.as_bytes()).expect_err(toolsets);
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    const ONE: &str = r#""name": "n", "submit_tool": "s", "status_tool": "t", "cancel_tool": "c""#;

    #[test]
    fn a_toolset_has_three_roles_and_a_fourth_if_it_likes() {
        // Contract 1.4 and architecture.md §10.
        let server = good(&format!(r#""command": "x", "task_toolsets": [{{{ONE}, "input_tool": "i"}}]"#));
        let [set] = &server.task_toolsets[..] else { panic!("one toolset") };
        assert_eq!((set.name.as_str(), set.submit_tool.as_str(), set.input_tool.as_deref()), ("n", "s", Some("i")));
        let without = good(&format!(r#""command": "x", "task_toolsets": [{{{ONE}}}]"#));
        assert_eq!(without.task_toolsets[0].input_tool, None);
    }

    #[test]
    fn wrong_toolsets_fail_the_load() {
        // Contract 1.4.
        let long = "n".repeat(256);
        for (toolset, what) in [
            (r#"{"name": "n", "submit_tool": "s", "status_tool": "t"}"#.to_owned(), "needs 'cancel_tool'"),
            (ONE.replace("\"n\"", "\" \"").replacen("\"name\"", "{\"name\"", 1) + "}", "must not be empty"),
            (ONE.replace("\"n\"", &format!("\"{long}\"")).replacen("\"name\"", "{\"name\"", 1) + "}", "at most 255"),
            (ONE.replace("\"t\"", "\"\"").replacen("\"name\"", "{\"name\"", 1) + "}", "status_tool: must not be empty"),
            (format!(r#"{{{ONE}, "poll": 1}}"#), "task_toolsets[0].poll: is not a known key and none is allowed"),
            ("\"x\"".to_owned(), "task_toolsets[0]: must be an object"),
        ] {
            let refusal = refusal("a", &format!("[{toolset}]"));
            assert!(refusal.contains(what), "{toolset}: {refusal}");
        }
    }

    #[test]
    fn secrets_of_requests_on_a_task_server_are_warned_about() {
        // Contract 6.13, both on one server.
        let remote = r#""type": "http", "url": "http://h", "headers_from_context": {"headers": {"X-A": "a"}"#;
        let with = |enabled: &str| format!(r#"{remote}{enabled}}}, "task_toolsets": [{{{ONE}}}]"#);
        assert_warned(&[(&with(""), "headers_from_context: calls about running tasks")]);
        assert_quiet(&[&with(r#", "enabled": false"#), &format!("{remote}}}")]);
    }

    #[test]
    fn one_raw_tool_serves_one_role_of_one_toolset() {
        // Contract 1.4.
        let sets =
            format!(r#"[{{{ONE}}}, {{"name": "m", "submit_tool": "s2", "status_tool": "s", "cancel_tool": "c2"}}]"#);
        let refusal = refusal("a", &sets);
        assert!(refusal.contains("task_toolsets[1].status_tool: raw tool names must be unique across task_toolsets"));
        assert!(refusal.contains("$.mcpServers.a.task_toolsets[0].submit_tool"), "{refusal}");
    }

    #[test]
    fn a_server_with_toolsets_has_a_name_of_1_to_128_characters() {
        // Contract 1.4.
        for name in ["", " ", &"n".repeat(129)] {
            let refusal = refusal(name, &format!("[{{{ONE}}}]"));
            assert!(refusal.contains("MCP task server name must contain 1 to 128 characters"), "{refusal}");
        }
        assert!(read(format!(r#"{{"mcpServers": {{"{}": {{"command": "x"}}}}}}"#, "n".repeat(129)).as_bytes()).is_ok());
    }
}
