//! One key of `mcpServers` becomes a server, or the reason why it is left out (contract 1.2).
//!
//! Owns the fields that all transports share and what a wrong server costs: itself, or the whole load when it is
//! task-enabled (architecture.md §10), or nothing when it is switched off. Everything that is wrong with a server is
//! found at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::fields::{Field, Fields};
use super::{
    Origin, ServerConfig, ServerEntry, Transport, caller_headers, mask, oauth, remote, required_scopes, routing, stdio,
    toolset,
};
use crate::bounds;
use crate::era::Protocol;
use crate::ids::ServerName;
use crate::task::NativeTasks;

const STDIO_KEYS: [&str; 5] = ["command", "args", "env", "cwd", "thread_files"];
const REMOTE_KEYS: [&str; 7] =
    ["url", "headers", "oauth", "user_auth", "headers_from_context", "allowed_redirect_origins", "message_url"];
const SHARED_KEYS: [&str; 16] = [
    "enabled",
    "type",
    "transport",
    "description",
    "routing",
    "tools",
    "required_scopes",
    "tool_name_prefix",
    "tool_call_timeout",
    "tool_call_idle_timeout",
    "session_init_timeout",
    "task_toolsets",
    "protocol",
    "native_tasks",
    "client_capabilities",
    "max_tool_result_bytes",
];
const KINDS: [(&str, Kind); 3] = [("stdio", Kind::Stdio), ("sse", Kind::Sse), ("http", Kind::Http)];
const PROTOCOLS: [(&str, Protocol); 3] =
    [("auto", Protocol::Auto), ("legacy", Protocol::Legacy), ("modern", Protocol::Modern)];
const NATIVE_TASKS: [(&str, NativeTasks); 2] = [("auto", NativeTasks::Auto), ("off", NativeTasks::Off)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Sse,
    Http,
}

/// Reads one server; relative paths start at `dir`.
pub(super) fn read(name: &str, field: &Field<'_>, dir: &Path) -> ServerEntry {
    let report = field.report;
    let mark = report.mark();
    let entry = |config| ServerEntry { name: ServerName::new(name), config };
    let Some(server) = field.object() else { return entry(Err(report.reason_since(mark, &field.path))) };
    check_name(&server, name);
    let config = config(&server, name, dir);
    if !report.has_errors_since(mark) {
        return entry(Ok(Arc::new(config)));
    }
    if !config.enabled {
        report.excuse_since(mark);
        return entry(Ok(Arc::new(config)));
    }
    if toolset::declared(&server) {
        report.fail_load();
    }
    entry(Err(report.reason_since(mark, &field.path)))
}

fn check_name(server: &Fields<'_>, name: &str) {
    if name.trim().is_empty() {
        server.error("the name of a server must not be empty", "rename it");
    } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        let what = "the name holds characters outside A-Z a-z 0-9 _ -: they are replaced in the names of its tools";
        server.warn(what, "rename it");
    }
}

fn config(server: &Fields<'_>, name: &str, dir: &Path) -> ServerConfig {
    let extra = extras(server);
    let transport = transport(server, dir);
    let (oauth, user_auth) = (oauth::read(server), caller_headers::user_auth(server));
    let headers_from_context = caller_headers::headers_from_context(server);
    let (message_url, origins) = (remote::message_url(server), remote::redirect_origins(server));
    let is_remote = !transport.owns_process();
    warn_of_foreign_keys(server, is_remote);
    ServerConfig {
        name: ServerName::new(name),
        origin: Origin::Deployment,
        enabled: server.boolean("enabled", true),
        transport,
        description: server
            .get("description")
            .and_then(|field| field.text())
            .map_or(String::new(), |d| d.value.clone()),
        routing: routing::server(server),
        tools: routing::tools(server),
        required_scopes: required_scopes::read(server).unwrap_or_default(),
        tool_name_prefix: server.boolean("tool_name_prefix", true),
        tool_call_timeout: server.seconds("tool_call_timeout"),
        tool_call_idle_timeout: server.seconds("tool_call_idle_timeout"),
        session_init_timeout: session_init_timeout(server),
        oauth: oauth.filter(|_| is_remote),
        user_auth: user_auth.filter(|_| is_remote),
        headers_from_context: headers_from_context.filter(|_| is_remote),
        task_toolsets: toolset::read(server, name),
        protocol: server.word("protocol", &PROTOCOLS).unwrap_or_default(),
        native_tasks: server.word("native_tasks", &NATIVE_TASKS).unwrap_or_default(),
        client_capabilities: server.get_set("client_capabilities").and_then(|field| field.object_value()),
        max_tool_result_bytes: server.get_set("max_tool_result_bytes").and_then(|field| bytes(&field)),
        allowed_redirect_origins: origins,
        message_url,
        masker: mask::masker(server),
        extra,
    }
}

/// `type`, else its alias `transport`, else stdio. `None` when the word is none of ours.
fn kind(server: &Fields<'_>) -> Option<Kind> {
    const MEND: &str = "use \"stdio\", \"http\" (streamable HTTP) or \"sse\"";
    let written = ["type", "transport"].into_iter().filter_map(|key| server.get(key)).find(|field| !field.is_empty());
    let Some(field) = written else {
        // The contract's default would only drop such a server for want of a command.
        let only_url = server.get_set("url").is_some() && server.get_set("command").is_none();
        if only_url {
            server.warn("has a url and no type: taken as http", "add \"type\": \"http\"");
        }
        return Some(if only_url { Kind::Http } else { Kind::Stdio });
    };
    let word = &field.text()?.value;
    let kind = KINDS.iter().find(|(name, _)| name == word).map(|(_, kind)| *kind);
    if kind.is_none() {
        field.error("unsupported transport type", MEND);
    }
    kind
}

fn transport(server: &Fields<'_>, dir: &Path) -> Transport {
    match kind(server) {
        Some(Kind::Stdio) => Transport::Stdio(stdio::read(server, dir)),
        Some(Kind::Sse) => Transport::Sse(remote::read(server, "sse")),
        Some(Kind::Http) => Transport::Http(remote::read(server, "http")),
        // Reported already; what stands here is never connected to.
        None => Transport::Stdio(super::Stdio::default()),
    }
}

/// 60 seconds unless written; `null` means unbounded (contract 1.2).
fn session_init_timeout(server: &Fields<'_>) -> Option<Duration> {
    match server.get("session_init_timeout") {
        Some(field) if field.is_null() => None,
        Some(field) => field.seconds(),
        None => Some(bounds::SESSION_INIT),
    }
}

fn bytes(field: &Field<'_>) -> Option<usize> {
    let bytes = usize::try_from(field.whole()?).ok().filter(|bytes| *bytes > 0);
    if bytes.is_none() {
        field.error("must be a whole number of bytes above 0", "");
    }
    bytes
}

/// Keys that nothing reads: told, and kept.
fn extras(server: &Fields<'_>) -> Map<String, Value> {
    let known: Vec<&str> = [&SHARED_KEYS[..], &STDIO_KEYS, &REMOTE_KEYS].concat();
    server.note_extras(&known);
    let extras = server.iter().filter(|(key, _)| !known.contains(key));
    extras.map(|(key, field)| (key.to_owned(), field.value())).collect()
}

/// Warns of keys that belong to the other kind of transport, and of a bound that does not bind.
fn warn_of_foreign_keys(server: &Fields<'_>, is_remote: bool) {
    let (foreign, what): (&[&str], &str) = if is_remote {
        (&STDIO_KEYS, "has no effect: this server is remote")
    } else {
        (&REMOTE_KEYS, "has no effect: this server is a child process")
    };
    let written = foreign.iter().filter_map(|key| server.get(key)).filter(|field| !field.is_empty());
    written.for_each(|field| field.warn(what, "remove it, or change \"type\""));
    if is_remote
        && !toolset::declared(server)
        && let Some(field) = server.get_set("tool_call_timeout")
    {
        field.warn("does not bind ordinary calls of a remote server", "use the setting http.call_timeout");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Severity;
    use crate::config::samples::{assert_dropped, assert_quiet, assert_warned, entry, good, read};

    #[test]
    fn absent_fields_take_the_defaults_of_the_contract() {
        // Contract 1.2.
        let server = good(r#""command": "x""#);
        assert!(server.enabled && server.tool_name_prefix && server.description.is_empty());
        assert_eq!(server.transport.name(), "stdio");
        assert_eq!(server.session_init_timeout, Some(Duration::from_secs(60)));
        assert_eq!((server.tool_call_timeout, server.tool_call_idle_timeout), (None, None));
        assert!(server.task_toolsets.is_empty() && server.tools.is_empty());
        assert_eq!(server.protocol, Protocol::Auto);
    }

    #[test]
    fn type_wins_over_its_alias_transport() {
        // Contract 1.2, `transport`.
        for (body, kind) in [
            (r#""transport": "sse", "url": "http://h""#, "sse"),
            (r#""type": "http", "transport": "sse", "url": "http://h""#, "http"),
            (r#""type": "", "transport": "http", "url": "http://h""#, "http"),
            (r#""type": null, "transport": "stdio", "command": "x""#, "stdio"),
        ] {
            assert_eq!(good(body).transport.name(), kind, "{body}");
        }
        assert_dropped(&[
            (r#""type": "streamable-http", "url": "http://h""#, "type: unsupported transport type"),
            (r#""type": "HTTP", "url": "http://h""#, "unsupported transport type"),
            (r#""transport": 1, "url": "http://h""#, "transport: must be a string, not a number"),
            (r#""type": "stdio", "url": "http://h""#, "requires 'command' field"),
            ("", "requires 'command' field"),
        ]);
    }

    #[test]
    fn a_lone_url_is_taken_as_http_with_a_warning() {
        assert_warned(&[(r#""url": "http://h""#, "no type: taken as http")]);
    }

    #[test]
    fn bounds_are_finite_and_above_zero_or_absent() {
        // Contract 1.2 and architecture.md §9.
        let server = good(r#""command": "x", "tool_call_timeout": 0.5, "session_init_timeout": null"#);
        assert_eq!(server.tool_call_timeout, Some(Duration::from_millis(500)));
        assert_eq!(server.session_init_timeout, None);
        assert_eq!(good(r#""command": "x", "tool_call_timeout": null"#).tool_call_timeout, None);
        for key in ["tool_call_timeout", "session_init_timeout", "tool_call_idle_timeout"] {
            for value in ["0", "-1", "true", "\"30\"", "1e300", "[1]"] {
                let reason = entry(&format!(r#""command": "x", "{key}": {value}"#)).0.config.expect_err(value);
                assert!(reason.starts_with(&format!("{key}: must be")), "{reason}");
            }
        }
    }

    #[test]
    fn a_variable_may_spell_a_number_or_a_boolean() {
        // Contract 1.8 applies to the whole file.
        let server = good(r#""command": "x", "tool_call_timeout": "$SECONDS", "tool_name_prefix": "$YES""#);
        assert_eq!(server.tool_call_timeout, Some(Duration::from_millis(2_500)));
        assert_dropped(&[
            (
                r#""command": "x", "tool_call_timeout": "$TOKEN""#,
                "tool_call_timeout: must be a number of seconds, and the",
            ),
            (r#""command": "x", "enabled": "$UNSET""#, "enabled: must be true or false, and the variable"),
        ]);
    }

    #[test]
    fn wrong_kinds_cost_the_server_and_name_each_field() {
        // Contract 1.2.
        assert_dropped(&[
            (
                r#""command": ["x"], "args": "a""#,
                "command: must be a string, not a list; args: must be a list, not a string",
            ),
            (r#""command": "x", "enabled": "yes""#, "enabled: must be true or false, not a string"),
            (r#""command": "x", "enabled": null"#, "enabled: must be true or false, not null"),
            (r#""command": "x", "description": 1"#, "description: must be a string, not a number"),
            (r#""command": "x", "tool_name_prefix": 1"#, "tool_name_prefix: must be true or false"),
        ]);
    }

    #[test]
    fn our_own_keys_are_read_and_checked() {
        let server = good(
            r#""type": "http", "url": "http://h", "protocol": "modern", "client_capabilities": {"roots": {}},
               "max_tool_result_bytes": 1024, "allowed_redirect_origins": ["https://H:443"], "message_url": "http://h/m""#,
        );
        assert_eq!((server.protocol, server.max_tool_result_bytes), (Protocol::Modern, Some(1024)));
        assert!(server.client_capabilities.as_ref().unwrap().contains_key("roots"));
        assert_eq!(server.allowed_redirect_origins, ["https://h"]);
        assert_eq!(server.message_url.as_deref(), Some("http://h/m"));
        assert_dropped(&[
            (r#""command": "x", "protocol": "new""#, "protocol: must be \"auto\" or \"legacy\" or \"modern\""),
            (r#""command": "x", "native_tasks": "on""#, "native_tasks: must be \"auto\" or \"off\""),
            (r#""command": "x", "native_tasks": false"#, "native_tasks: must be a string"),
            (r#""command": "x", "client_capabilities": []"#, "client_capabilities: must be an object"),
            (r#""command": "x", "max_tool_result_bytes": 0"#, "above 0"),
            (r#""command": "x", "max_tool_result_bytes": 1.5"#, "whole number"),
            (
                r#""url": "http://h", "allowed_redirect_origins": ["http://h/p"]"#,
                "allowed_redirect_origins[0]: must be an origin",
            ),
            (r#""url": "http://h", "message_url": "/m""#, "message_url: must be an address"),
        ]);
    }

    #[test]
    fn unknown_keys_are_kept_and_told() {
        // Contract 1.2, extra keys.
        assert_warned(&[
            (r#""command": "x", "comand": 1"#, "warning: $.mcpServers.a.comand: is not a known key"),
            (r#""command": "x", "comand": 1"#, "did you mean \"command\"?"),
            (r#""command": "x", "disabled": true"#, "did you mean \"enabled\"?"),
            (r#""command": "x", "icon": "i""#, "note: $.mcpServers.a.icon: is not a known key"),
        ]);
    }

    #[test]
    fn keys_of_the_other_transport_are_warned_about() {
        // Contract 8.4, 8.5: per-caller headers of a child process are skipped, not denied.
        assert_warned(&[
            (r#""command": "x", "headers": {"A": "b"}"#, "headers: has no effect"),
            (r#""command": "x", "user_auth": {"users": {"u": "v"}}"#, "user_auth: has no effect"),
            (r#""type": "http", "url": "http://h", "args": ["a"]"#, "args: has no effect"),
            (r#""type": "http", "url": "http://h", "tool_call_timeout": 5"#, "does not bind ordinary calls"),
        ]);
        assert!(good(r#""command": "x", "user_auth": {"users": {"u": "v"}}"#).user_auth.is_none());
        assert_quiet(&[
            r#""command": "x", "args": [], "env": {}, "headers": {}, "url": null, "oauth": null"#,
            r#""type": "sse", "url": "http://h", "command": null, "args": []"#,
        ]);
    }

    #[test]
    fn a_wrong_server_that_is_switched_off_stays_with_warnings_only() {
        let (entry, problems) = entry(r#""enabled": false, "type": "http", "task_toolsets": [{}]"#);
        assert!(entry.config.is_ok_and(|server| !server.enabled));
        assert!(!problems.is_empty() && problems.iter().all(|problem| problem.severity == Severity::Warning));
    }

    #[test]
    fn a_wrong_server_that_is_task_enabled_fails_the_load() {
        // architecture.md §10, for contract 1.1.
        let text = r#"{"mcpServers": {"b": {"command": "x"}, "a": {"type": "http", "task_toolsets":
            [{"name": "n", "submit_tool": "s", "status_tool": "t", "cancel_tool": "c"}]}}}"#;
        let problems = read(text.as_bytes()).expect_err("must fail");
        assert!(problems[0].to_string().contains("$.mcpServers.a: type http requires 'url' field"), "{problems:#?}");
    }

    #[test]
    fn names_must_not_be_empty_and_odd_ones_are_warned_about() {
        let document = read(br#"{"mcpServers": {"": {"command": "x"}, "my server": {"command": "x"}}}"#).unwrap();
        assert!(document.servers[0].config.as_ref().is_err_and(|reason| reason.contains("must not be empty")));
        assert!(document.servers[1].config.is_ok());
        assert!(document.problems[1].to_string().contains(r#"$.mcpServers["my server"]: the name holds"#));
    }
}
