//! What a new document changes for one server (contract 5.3, as architecture.md §10 amends it).
//!
//! Owns the class of a change, judged from meaning and not from text: another order of keys, an alias, a default
//! written out or a moved reference are no change. What follows is the runtime's. Keeps G1: whatever a session was
//! opened with counts as its connection.

use super::ServerConfig;

/// What an edit touches of a server that stays in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Nothing: its tools and sessions stay the same.
    Untouched,
    /// Its tools must be listed again; its sessions live on. Any field that is not the connection, an unknown key and
    /// the description included.
    Relist,
    /// What its sessions were opened with: transport, credentials, declared profile, the size of what they let through,
    /// whether it is enabled at all.
    /// They must be closed and its tools listed again.
    Reconnect,
}

/// What changed from `before` to `after`, two readings of the server of one name.
pub fn touch(before: &ServerConfig, after: &ServerConfig) -> Touch {
    let (before, after) = (parts(before), parts(after));
    if before.0 != after.0 {
        Touch::Reconnect
    } else if before.1 != after.1 {
        Touch::Relist
    } else {
        Touch::Untouched
    }
}

/// Every field in its class: what sessions are opened with, and the others. A new field does not compile until it has
/// its place; the masker follows from the others.
fn parts(server: &ServerConfig) -> (impl PartialEq, impl PartialEq) {
    let ServerConfig {
        name: _,
        origin,
        enabled,
        transport,
        description,
        routing,
        tools,
        required_scopes,
        tool_name_prefix,
        tool_call_timeout,
        tool_call_idle_timeout,
        session_init_timeout,
        oauth,
        user_auth,
        headers_from_context,
        task_toolsets,
        protocol,
        native_tasks,
        client_capabilities,
        max_tool_result_bytes,
        allowed_redirect_origins,
        message_url,
        masker: _,
        extra,
    } = server;
    let connection = (
        (origin, enabled, transport, protocol, native_tasks, client_capabilities),
        (oauth, user_auth, headers_from_context),
        (allowed_redirect_origins, message_url, max_tool_result_bytes),
    );
    let rest = (
        (description, routing, tools, required_scopes, tool_name_prefix, task_toolsets, extra),
        (tool_call_timeout, tool_call_idle_timeout, session_init_timeout),
    );
    (connection, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::good;

    fn touched(before: &str, after: &str) -> Touch {
        touch(&good(before), &good(after))
    }

    #[test]
    fn what_means_the_same_is_untouched() {
        // Contract 5.3, canonical snapshot; 5.4, equal slice.
        const BEFORE: &str = r#""command": "x", "args": ["a"], "env": {"T": "$TOKEN"}"#;
        for after in [
            r#""env": {"T": "$TOKEN"}, "args": ["a"], "command": "x""#,
            r#""command": "x", "args": ["a"], "env": {"T": "tok-123456"}, "type": "stdio", "enabled": true"#,
            r#""transport": "stdio", "command": "x", "args": ["a"], "env": {"T": "$TOKEN"}, "session_init_timeout": 60.0,
               "headers": {}, "routing": {"mode": "off"}, "oauth": null, "native_tasks": "auto""#,
        ] {
            assert_eq!(touched(BEFORE, after), Touch::Untouched, "{after}");
        }
    }

    #[test]
    fn each_edit_touches_what_its_field_is_for() {
        // Contract 5.3 and architecture.md §10.
        const CHILD: &str = r#""command": "x""#;
        for (edit, touch) in [
            (r#""args": ["a"]"#, Touch::Reconnect),
            (r#""env": {"A": "1"}"#, Touch::Reconnect),
            (r#""cwd": "/w""#, Touch::Reconnect),
            (r#""thread_files": {"A": "a"}"#, Touch::Reconnect),
            (r#""client_capabilities": {"roots": {}}"#, Touch::Reconnect),
            (r#""protocol": "legacy""#, Touch::Reconnect),
            (r#""native_tasks": "off""#, Touch::Reconnect),
            (r#""enabled": false"#, Touch::Reconnect),
            (r#""max_tool_result_bytes": 1000"#, Touch::Reconnect),
            (r#""description": "d", "args": ["a"]"#, Touch::Reconnect),
            (r#""tool_name_prefix": false"#, Touch::Relist),
            (r#""tool_call_timeout": 5"#, Touch::Relist),
            (r#""session_init_timeout": null"#, Touch::Relist),
            (r#""icon": "i""#, Touch::Relist),
            (r#""description": "d""#, Touch::Relist),
            (r#""routing": {"mode": "prefer"}"#, Touch::Relist),
            (r#""tools": {"t": {}}"#, Touch::Relist),
            (r#""required_scopes": ["a"]"#, Touch::Relist),
        ] {
            assert_eq!(touched(CHILD, &format!("{CHILD}, {edit}")), touch, "{edit}");
        }
    }

    #[test]
    fn address_and_credentials_of_a_remote_server_are_its_connection() {
        const REMOTE: &str = r#""type": "http", "url": "http://h", "headers": {"A": "1"}, "user_auth": {"users": {"u": "2"}},
            "oauth": {"token_url": "https://t", "client_id": "c", "client_secret": "3"}"#;
        for from in ["\"1\"", "\"2\"", "\"3\"", "\"A\""] {
            assert_eq!(touched(REMOTE, &REMOTE.replace(from, "\"4\"")), Touch::Reconnect, "{from}");
        }
        assert_eq!(touched(REMOTE, &REMOTE.replace("http://h", "http://i")), Touch::Reconnect);
        assert_eq!(touched(REMOTE, &REMOTE.replace("\"http\"", "\"sse\"")), Touch::Reconnect);
    }
}
