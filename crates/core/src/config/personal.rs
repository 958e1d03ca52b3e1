//! Personal connections: servers that users bring for themselves (contract 1.8, 7.5, 11.1; architecture.md §10).
//!
//! Owns what a definition means and what it is called at run time. A definition is one entry of the form of
//! `mcpServers.<name>`, read literally: no `$NAME` in it reaches the environment of this process. Masks go out and
//! come back by the rules of the configuration. Anything but `enabled` is part of the runtime name, so an edited
//! definition is another server: nothing that was opened, stored or learnt under the old one is used for it (G1, P1).
//! Refusals hold paths and reasons, never a value (O3).

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::defaults::filled;
use super::document::parse_literally;
use super::merge::{Absent, merged};
use super::view::masked;
use super::{MaskedValue, Origin, ServerConfig, Severity, Source};
use crate::ids::{ServerName, UserId};
use crate::launch::{Allowlist, Request, judge};

/// What every runtime name starts with.
const PREFIX: &str = "personal_";

/// Hexadecimal digits behind it.
const DIGITS: usize = 32;

/// The longest name of a connection: it stands in front of the names of its tools.
const LONGEST_NAME: usize = 64;

/// Whether `name` may name a connection: the characters of visible names, at most 64 (contract 5.2).
pub fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits)
}

/// The definition that a client wrote, ready to be stored: masks restored from what is stored, every field filled in.
///
/// # Errors
/// A mask that stands for nothing, or that would be stored.
pub fn written(
    name: &str,
    written: &Map<String, Value>,
    stored: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, MaskedValue> {
    merged(name, written, stored, Absent::Reset).map(|definition| filled(&definition))
}

/// A definition as its owner is shown it: secrets hidden as everywhere (contract 1.12).
pub fn shown(definition: &Map<String, Value>) -> Value {
    masked(definition)
}

/// Whether a definition takes part.
pub fn is_enabled(definition: &Map<String, Value>) -> bool {
    definition.get("enabled").and_then(Value::as_bool).unwrap_or(true)
}

/// What the connection is called at run time: `personal_` and 32 hexadecimal digits of the sha256 over user, name and
/// definition. Neither `enabled` nor the order of keys is part of it.
pub fn runtime_name(user: &UserId, name: &str, definition: &Map<String, Value>) -> String {
    let mut definition = definition.clone();
    definition.remove("enabled");
    let text = json!([user, name, sorted(&Value::Object(definition))]).to_string();
    let digits = Sha256::digest(text.as_bytes());
    digits.iter().take(DIGITS / 2).fold(PREFIX.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

/// Whether a server of this name is a personal connection.
pub fn is_runtime_name(server: &ServerName) -> bool {
    let digits = server.as_str().strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        value => value.clone(),
    }
}

/// The server that a definition describes, under its runtime name. Only remote ones, unless `stdio` says which
/// programs a user may start.
///
/// # Errors
/// Everything that is wrong with it: each field by its path, and what to do.
pub fn read(
    user: &UserId,
    name: &str,
    definition: &Map<String, Value>,
    stdio: Option<&Allowlist>,
) -> Result<Arc<ServerConfig>, String> {
    let text = json!({ "mcpServers": { name: definition } }).to_string();
    let document = parse_literally(&Source { file: Path::new("/definition"), text: text.as_bytes() });
    let server = match document {
        Err(problems) => {
            let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
            let base = format!("$.mcpServers.{name}");
            let sentence = |path: &str, what: &str| match path.strip_prefix(&base) {
                Some("") | None => what.to_owned(),
                Some(below) => format!("{}: {what}", below.trim_start_matches('.')),
            };
            return Err(errors.map(|problem| sentence(&problem.path, &problem.what)).collect::<Vec<_>>().join("; "));
        }
        Ok(document) => document.servers.into_iter().next().ok_or("there is no definition")?.config?,
    };
    if let Some(request) = Request::of(&server) {
        let allowlist = stdio.ok_or("type: personal connections are remote servers: use \"http\" or \"sse\"")?;
        judge(&request, allowlist).map_err(|refusal| format!("the server {refusal}"))?;
    }
    Ok(Arc::new(ServerConfig {
        name: ServerName::new(runtime_name(user, name, definition)),
        origin: Origin::Personal { connection: name.into() },
        ..(*server).clone()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Transport;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn ann() -> UserId {
        UserId::from("ann")
    }

    fn read_as_ann(definition: Value, stdio: Option<&Allowlist>) -> Result<Arc<ServerConfig>, String> {
        read(&ann(), "mine", &map(definition), stdio)
    }

    #[test]
    fn the_runtime_name_follows_the_definition_but_neither_its_order_nor_whether_it_is_enabled() {
        // Contract 7.5, row identity; 11.1, personal connections; architecture.md §10.
        let name = |user: &str, name: &str, definition: Value| runtime_name(&user.into(), name, &map(definition));
        let mine = name("ann", "mine", json!({"url": "http://h", "headers": {"A": "1", "B": "2"}}));
        assert!(mine.len() == 41 && is_runtime_name(&ServerName::new(&*mine)), "{mine}");
        assert!(!is_runtime_name(&"personal_github".into()) && !is_runtime_name(&"github".into()));
        for same in [
            json!({"headers": {"B": "2", "A": "1"}, "url": "http://h"}),
            json!({"url": "http://h", "headers": {"A": "1", "B": "2"}, "enabled": false}),
        ] {
            assert_eq!(name("ann", "mine", same), mine);
        }
        let definition = json!({"url": "http://h", "headers": {"A": "1", "B": "2"}});
        assert_ne!(name("bob", "mine", definition.clone()), mine);
        assert_ne!(name("ann", "other", definition), mine);
        assert_ne!(name("ann", "mine", json!({"url": "http://h", "headers": {"A": "1", "B": "3"}})), mine);
        assert_ne!(name("ann", "mine", json!({"url": "http://h", "headers": {"B": "2"}})), mine);
    }

    #[test]
    fn a_definition_is_read_literally_under_its_runtime_name() {
        // Contract 1.8, personal.
        let definition = json!({"url": "https://h/$HOME", "headers": {"Authorization": "$HOME"}, "icon": "$PATH"});
        let server = read_as_ann(definition.clone(), None).unwrap();
        let Transport::Http(remote) = &server.transport else { panic!("{server:?}") };
        assert_eq!((remote.url.as_str(), remote.headers[0].1.expose()), ("https://h/$HOME", "$HOME"));
        assert_eq!(server.extra["icon"], "$PATH");
        assert_eq!(server.name.as_str(), runtime_name(&ann(), "mine", &map(definition)));
        assert_eq!((server.shown_name(), server.is_personal()), ("mine", true));
    }

    #[test]
    fn a_child_process_is_refused_unless_it_is_allowed_and_its_launch_too() {
        let stdio = json!({"command": "npx", "args": ["-y", "server"]});
        assert!(read_as_ann(stdio.clone(), None).unwrap_err().contains("remote servers"));
        let allowlist = Allowlist::default();
        assert!(read_as_ann(stdio, Some(&allowlist)).is_ok());
        for (definition, why) in [
            (json!({"command": "npx", "args": ["-c", "hunter2"]}), "-c"),
            (json!({"command": "/bin/hunter2"}), "executable name"),
        ] {
            let refused = read_as_ann(definition, Some(&allowlist)).unwrap_err();
            assert!(refused.contains(why) && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn everything_wrong_is_told_by_its_path_and_without_values() {
        // Invariant O3.
        for (definition, expected) in [
            (json!({"type": "http"}), "'url'"),
            (json!({"url": "hunter2"}), "url: "),
            (json!({"type": "hunter2", "url": "http://h"}), "type: unsupported transport type"),
            (json!({"url": "http://h", "headers": ["hunter2"]}), "headers: must be an object"),
            (json!({"url": "http://h", "task_toolsets": [{"name": "hunter2"}]}), "task_toolsets"),
        ] {
            let refused = read_as_ann(definition.clone(), None).unwrap_err();
            assert!(refused.contains(expected) && !refused.contains("hunter2"), "{definition}: {refused}");
            assert!(!refused.contains("mcpServers"), "{refused}");
        }
    }

    #[test]
    fn masks_go_out_and_come_back_by_the_rules_of_the_configuration() {
        // Contract 1.12, 1.13.
        let stored = written("mine", &map(json!({"url": "http://h", "headers": {"A": "hunter2"}})), None).unwrap();
        let shown = shown(&stored);
        assert!(!shown.to_string().contains("hunter2") && shown["headers"]["A"] == "***", "{shown}");
        assert_eq!(written("mine", &map(shown), Some(&stored)), Ok(stored.clone()));
        let lost = written("mine", &map(json!({"headers": {"B": "***"}})), Some(&stored)).unwrap_err();
        assert!(lost.to_string().contains("headers.B"), "{lost}");
        assert!(is_enabled(&stored) && !is_enabled(&map(json!({"enabled": false}))));
    }

    #[test]
    fn a_name_fits_in_front_of_the_names_of_tools() {
        for good in ["a", "my-github_2", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "a b", "a/b", "grün", "a.b", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
