//! What running tasks need of their server's configuration, frozen at the start (contract 6.12).
//!
//! Owns which edits leave a task server as it is: those of what only people and models read, and of who may call it.
//! Everything else counts, secrets included. The fingerprint that is stored with each task holds no secret and is made of none (invariant O3):
//! a replica with another secret may follow the same tasks.

use serde_json::{Value, json};

use super::{InterceptorEntry, ServerConfig, Transport};
use crate::task::SnapshotFingerprint;

/// Whether an edit from `before` to `after` leaves everything that running tasks need.
pub fn is_same_for_tasks(before: &ServerConfig, after: &ServerConfig) -> bool {
    let shown_as_before = ServerConfig {
        description: before.description.clone(),
        routing: before.routing.clone(),
        tools: before.tools.clone(),
        required_scopes: before.required_scopes.clone(),
        tool_name_prefix: before.tool_name_prefix,
        masker: before.masker.clone(),
        ..after.clone()
    };
    *before == shown_as_before
}

/// Names the configuration that a task is accepted under, `interceptors` around its calls included.
pub fn task_fingerprint(server: &ServerConfig, interceptors: &[InterceptorEntry]) -> SnapshotFingerprint {
    let seconds = |bound: Option<std::time::Duration>| bound.map(|bound| bound.as_secs_f64());
    let toolsets: Vec<Value> = server
        .task_toolsets
        .iter()
        .map(|set| json!([set.name, set.submit_tool, set.status_tool, set.cancel_tool, set.input_tool]))
        .collect();
    let context = server.headers_from_context.as_ref().filter(|context| context.enabled);
    let canonical = json!([
        server.name,
        transport(&server.transport),
        toolsets,
        oauth(server),
        server.user_auth.as_ref().filter(|auth| auth.enabled).map(|auth| &auth.header),
        context.map(|context| context.headers.iter().map(|(name, key)| json!([name, key])).collect::<Vec<_>>()),
        server.protocol,
        server.native_tasks,
        server.client_capabilities,
        [
            seconds(server.tool_call_timeout),
            seconds(server.tool_call_idle_timeout),
            seconds(server.session_init_timeout)
        ],
        [&server.message_url, &server.max_tool_result_bytes.map(|bytes| bytes.to_string())],
        server.allowed_redirect_origins,
        interceptors.iter().map(|entry| json!([entry.target, entry.secrets])).collect::<Vec<_>>(),
    ]);
    SnapshotFingerprint::of(&canonical.to_string())
}

/// Names where the tasks of the protocol itself live: the address and for whom we are taken there, and nothing of what a
/// call of today goes by. A server that is another one in this has other tasks.
pub fn endpoint_fingerprint(server: &ServerConfig) -> SnapshotFingerprint {
    let canonical = json!([server.name, transport(&server.transport), oauth(server), server.message_url]);
    SnapshotFingerprint::of(&canonical.to_string())
}

fn oauth(server: &ServerConfig) -> Option<Value> {
    let oauth = server.oauth.as_ref().filter(|oauth| oauth.enabled)?;
    Some(json!([oauth.token_url, oauth.grant.as_str(), oauth.client_id, oauth.scope, oauth.audience]))
}

fn transport(transport: &Transport) -> Value {
    match transport {
        Transport::Stdio(stdio) => {
            let names: Vec<&String> = stdio.env.iter().map(|(name, _)| name).collect();
            json!([transport.name(), stdio.command, stdio.args, names, stdio.cwd, stdio.thread_files])
        }
        Transport::Http(remote) | Transport::Sse(remote) => {
            let names: Vec<&String> = remote.headers.iter().map(|(name, _)| name).collect();
            json!([transport.name(), remote.url, names])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::good;

    const SERVER: &str = r#""type": "http", "url": "http://h", "headers": {"A": "hunter22"}, "task_toolsets":
        [{"name": "n", "submit_tool": "s", "status_tool": "t", "cancel_tool": "c"}]"#;

    #[test]
    fn only_what_people_and_models_read_and_who_may_call_change_under_running_tasks() {
        // Contract 6.12, snapshot.
        let before = good(SERVER);
        for (more, same) in [
            (r#""description": "d""#, true),
            (r#""routing": {"mode": "prefer", "priority": 3}"#, true),
            (r#""tools": {"x": {"routing": {"mode": "prefer"}}}"#, true),
            (r#""tool_name_prefix": false"#, true),
            (r#""required_scopes": ["a"]"#, true),
            (r#""tool_call_timeout": 9"#, false),
            (r#""enabled": false"#, false),
            (r#""user_auth": {"users": {"u": "v"}}"#, false),
            (r#""more": 1"#, false),
            (r#""native_tasks": "off""#, false),
        ] {
            let after = good(&format!("{SERVER}, {more}"));
            assert_eq!(is_same_for_tasks(&before, &after), same, "{more}");
        }
        let secret = good(&SERVER.replace("hunter22", "hunter23"));
        assert!(!is_same_for_tasks(&before, &secret), "a task server's secrets are part of it");
    }

    #[test]
    fn a_fingerprint_tells_connections_and_interceptors_apart_and_nothing_of_secrets() {
        // Contract 6.12; invariant O3.
        let server = good(SERVER);
        let of = |server: &ServerConfig| task_fingerprint(server, &[]);
        assert_eq!(of(&server), of(&good(&SERVER.replace("hunter22", "hunter23"))));
        assert_eq!(of(&server), of(&good(&format!(r#"{SERVER}, "description": "d""#))));
        assert_ne!(of(&server), of(&good(&SERVER.replace("http://h", "http://i"))));
        assert_ne!(of(&server), of(&good(&SERVER.replace("\"c\"", "\"e\""))));
        assert_ne!(of(&server), task_fingerprint(&server, &[InterceptorEntry::of("builtin:x")]));
        assert_ne!(of(&server), of(&good(&format!(r#"{SERVER}, "native_tasks": "off""#))));
    }

    #[test]
    fn tasks_of_the_protocol_stay_with_the_address_and_identity_that_they_were_made_under() {
        // Contract 6.12, a server that is missing; architecture.md §10.
        let before = endpoint_fingerprint(&good(SERVER));
        for (changed, same) in [
            (format!(r#"{SERVER}, "tool_call_timeout": 9, "native_tasks": "off", "description": "d""#), true),
            (SERVER.replace("hunter22", "hunter23"), true),
            (SERVER.replace("\"c\"", "\"e\""), true),
            (SERVER.replace("http://h", "http://i"), false),
            (SERVER.replace("\"http\"", "\"sse\""), false),
            (
                format!(r#"{SERVER}, "oauth": {{"token_url": "https://t", "client_id": "c", "client_secret": "s"}}"#),
                false,
            ),
        ] {
            assert_eq!(endpoint_fingerprint(&good(&changed)) == before, same, "{changed}");
        }
    }
}
