//! The five changes a client may make to the stored document (contract 2.2), each a function from text to text.
//!
//! Owns what a change does to the text and how it is refused; who may ask for it, and whether a program may be
//! started, are decided elsewhere. The order is: change, judge [`Edited::changed`] with [`candidates`], write. A
//! stored text that is no document is never written over; no bytes at all mean that nothing is stored yet, so whoever
//! reads the file refuses one that is there and empty. Refusals hold names and reasons, never a value (O3).

use std::path::Path;

use serde_json::{Map, Value, json};

use super::defaults::filled;
use super::merge::{Absent, MaskedValue, merged};
use super::splice::with_enabled;
use super::stored::{SERVER_MAPS, Stored};
use super::write::{Server, Servers, document};
use super::{Problem, ServerEntry, Source, parse};
use crate::failure::Code;

/// A change, ready to be written. Without `Debug`: it holds secrets.
pub struct Edited {
    /// The whole document.
    pub text: Vec<u8>,
    /// The entries that were written and must be judged first, as they stand in the document now.
    pub changed: Map<String, Value>,
}

/// Why a change was not made; nothing was written. `Display` is the text of the answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EditRefusal {
    /// The stored text is no document (400).
    #[error("Invalid MCP configuration: {}", sentences(.0))]
    Malformed(Vec<Problem>),
    /// No such server (404).
    #[error("MCP server '{0}' not found")]
    NotFound(String),
    /// There is one of that name (409).
    #[error("MCP server '{0}' already exists")]
    Exists(String),
    /// A masked value that cannot be restored (400).
    #[error(transparent)]
    Masked(#[from] MaskedValue),
    /// The change would not load, or is not allowed (400).
    #[error("{0}")]
    Invalid(String),
}

impl EditRefusal {
    /// The word callers branch on.
    pub fn code(&self) -> Code {
        match self {
            Self::NotFound(_) => Code::NotFound,
            Self::Exists(_) => Code::Conflict,
            Self::Malformed(_) | Self::Masked(_) | Self::Invalid(_) => Code::Invalid,
        }
    }
}

fn sentences(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}

/// Replaces the whole set of servers: PUT.
///
/// # Errors
/// The stored text is no document, an entry is no object, or a mask cannot be restored.
pub fn replace_all(stored: &Source<'_>, written: &Map<String, Value>) -> Result<Edited, EditRefusal> {
    let stored = read(stored)?;
    let mut changed = Map::new();
    for (name, server) in written {
        let before = stored.server_object(name);
        let server = merged(name, object(name, server)?, before.as_ref(), Absent::Kept)?;
        changed.insert(name.clone(), Value::Object(filled(&server)));
    }
    let servers = changed.iter().map(|(name, server)| (name.as_str(), Server::Anew(server))).collect();
    edited(&stored, &servers, changed.clone())
}

/// Adds servers, leaving those that are there: POST.
///
/// # Errors
/// As [`replace_all`], or there is a server of that name.
pub fn add(stored: &Source<'_>, written: &Map<String, Value>) -> Result<Edited, EditRefusal> {
    let stored = read(stored)?;
    let mut changed = Map::new();
    for (name, server) in written {
        if stored.server(name).is_some() {
            return Err(EditRefusal::Exists(name.clone()));
        }
        let server = merged(name, object(name, server)?, None, Absent::Reset)?;
        changed.insert(name.clone(), Value::Object(filled(&server)));
    }
    let added = changed.iter().map(|(name, server)| (name.as_str(), Server::Anew(server)));
    let servers = as_stored(&stored).into_iter().chain(added).collect();
    edited(&stored, &servers, changed.clone())
}

/// Replaces one server completely: what is not written is reset, only an explicit `***` restores.
///
/// # Errors
/// As [`replace_all`], or there is no such server.
pub fn replace_one(stored: &Source<'_>, name: &str, server: &Map<String, Value>) -> Result<Edited, EditRefusal> {
    let stored = read(stored)?;
    if stored.server(name).is_none() {
        return Err(EditRefusal::NotFound(name.to_owned()));
    }
    let before = stored.server_object(name);
    let server = Value::Object(filled(&merged(name, server, before.as_ref(), Absent::Reset)?));
    let mut servers = as_stored(&stored);
    servers.iter_mut().filter(|(key, _)| *key == name).for_each(|(_, entry)| *entry = Server::Anew(&server));
    edited(&stored, &servers, Map::from_iter([(name.to_owned(), server.clone())]))
}

/// Removes one server: DELETE.
///
/// # Errors
/// The stored text is no document, or there is no such server.
pub fn remove(stored: &Source<'_>, name: &str) -> Result<Edited, EditRefusal> {
    let stored = read(stored)?;
    if stored.server(name).is_none() {
        return Err(EditRefusal::NotFound(name.to_owned()));
    }
    let servers = as_stored(&stored).into_iter().filter(|(key, _)| *key != name).collect();
    edited(&stored, &servers, Map::new())
}

/// Switches one server on or off: PATCH. Every other byte stays; only a server switched on must be judged.
///
/// # Errors
/// The stored text is no document, or there is no such server, or its entry is no object.
pub fn set_enabled(stored: &Source<'_>, name: &str, enabled: bool) -> Result<Edited, EditRefusal> {
    let not_found = || EditRefusal::NotFound(name.to_owned());
    let mut server = read(stored)?.server_object(name).ok_or_else(not_found)?;
    let text = with_enabled(stored, name, enabled).map_err(EditRefusal::Malformed)?.ok_or_else(not_found)?;
    server.insert("enabled".to_owned(), enabled.into());
    let judged = enabled.then(|| (name.to_owned(), Value::Object(server)));
    Ok(Edited { text, changed: judged.into_iter().collect() })
}

/// What these entries mean, judged without their neighbours: one that is wrong elsewhere does not block them.
///
/// # Errors
/// The first entry that would not be served, with its reason.
pub fn candidates(
    file: &Path,
    entries: &Map<String, Value>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<ServerEntry>, EditRefusal> {
    let text = json!({ SERVER_MAPS[0]: entries }).to_string();
    let document = parse(&Source { file, text: text.as_bytes() }, env).map_err(|problems| {
        // The places are those of a text nobody has seen.
        let errors = problems.iter().map(|problem| format!("{}: {}", problem.path, problem.what));
        EditRefusal::Invalid(errors.collect::<Vec<_>>().join("; "))
    })?;
    for entry in &document.servers {
        if let Err(reason) = &entry.config {
            return Err(EditRefusal::Invalid(format!("MCP server '{}': {reason}", entry.name)));
        }
    }
    Ok(document.servers)
}

fn read<'t>(stored: &Source<'t>) -> Result<Stored<'t>, EditRefusal> {
    if stored.text.is_empty() { Ok(Stored::default()) } else { Stored::read(stored).map_err(EditRefusal::Malformed) }
}

fn object<'a>(name: &str, server: &'a Value) -> Result<&'a Map<String, Value>, EditRefusal> {
    server.as_object().ok_or_else(|| EditRefusal::Invalid(format!("MCP server '{name}' must be an object")))
}

fn as_stored<'a>(stored: &'a Stored<'_>) -> Servers<'a> {
    stored.servers.iter().map(|(name, server)| (name.as_ref(), Server::AsStored(server))).collect()
}

fn edited(stored: &Stored<'_>, servers: &Servers<'_>, changed: Map<String, Value>) -> Result<Edited, EditRefusal> {
    let text = document(stored, servers).map_err(|error| EditRefusal::Invalid(error.to_string()))?;
    Ok(Edited { text, changed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::samples::variable;

    const FILE: &str = "/etc/caribou/x.json";

    const STORED: &str = r#"{"top": {"$x": "$TOKEN"}, "mcpServers": {
        "a": {"transport": "http", "url": "http://h", "headers": {"A": "$TOKEN"}},
        "b": {"command":"x"}}}"#;

    fn source(text: &str) -> Source<'_> {
        Source { file: Path::new(FILE), text: text.as_bytes() }
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn text(edited: Result<Edited, EditRefusal>) -> String {
        String::from_utf8(edited.map_err(|refusal| refusal.to_string()).unwrap().text).unwrap()
    }

    fn refused(edited: Result<Edited, EditRefusal>) -> String {
        edited.err().map(|refusal| refusal.to_string()).unwrap()
    }

    #[test]
    fn a_whole_write_replaces_the_set_of_servers_and_writes_defaults() {
        // Contract 2.2, PUT; 1.13, server missing from the payload.
        let written = map(json!({"a": {"url": "http://i", "headers": {"A": "***"}}, "c": {"command": "y"}}));
        let after: Value = serde_json::from_str(&text(replace_all(&source(STORED), &written))).unwrap();
        let names: Vec<&str> = after["mcpServers"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(after["top"], json!({"$x": "$TOKEN"}));
        assert_eq!(after["mcpServers"]["a"]["headers"], json!({"A": "$TOKEN"}));
        assert_eq!(
            (&after["mcpServers"]["a"]["type"], &after["mcpServers"]["a"]["transport"]),
            (&json!("http"), &json!("http"))
        );
        assert_eq!(after["mcpServers"]["c"]["session_init_timeout"].to_string(), "60.0");
        assert_eq!(text(replace_all(&source(""), &Map::new())), "{\n  \"mcpServers\": {}\n}\n");
        assert!(refused(replace_all(&source(""), &map(json!({"a": 1})))).contains("'a' must be an object"));
    }

    #[test]
    fn adding_replacing_and_removing_leave_the_other_servers_as_they_stand() {
        // Contract 2.2, POST, PUT of one server, DELETE.
        let stored = source(STORED);
        let added = text(add(&stored, &map(json!({"c": {"command": "y"}}))));
        assert!(
            added.contains(r#""b": {"command":"x"},"#) && added.contains(r#"{"transport": "http", "url": "http://h""#)
        );
        let replaced = text(replace_one(&stored, "b", &map(json!({"command": "z", "enabled": false}))));
        assert!(replaced.contains(r#"{"A": "$TOKEN"}"#) && replaced.contains("\"command\": \"z\""), "{replaced}");
        let removed = text(remove(&stored, "a"));
        assert!(removed.contains(r#""b": {"command":"x"}"#) && !removed.contains("http://h"), "{removed}");
        assert_eq!(refused(add(&stored, &map(json!({"a": {}})))), "MCP server 'a' already exists");
        assert!(
            refused(add(&source(""), &map(json!({"c": {"env": {"K": "***"}}})))).contains("'env.K' of MCP server 'c'")
        );
        for refusal in [
            refused(replace_one(&stored, "c", &Map::new())),
            refused(remove(&stored, "c")),
            refused(remove(&source(""), "c")),
            refused(set_enabled(&stored, "c", true)),
            refused(set_enabled(&source(""), "c", false)),
        ] {
            assert_eq!(refusal, "MCP server 'c' not found");
        }
    }

    #[test]
    fn switching_changes_one_value_and_only_switching_on_is_judged() {
        // Contract 2.2, PATCH; an entry with the alias `transport` gets no `type`.
        let off = set_enabled(&source(STORED), "a", false).ok().unwrap();
        assert!(off.changed.is_empty());
        let expected = STORED.replace(r#"{"A": "$TOKEN"}}"#, r#"{"A": "$TOKEN"}, "enabled": false}"#);
        assert_eq!(String::from_utf8(off.text).unwrap(), expected);
        let on = set_enabled(&source(&expected), "a", true).ok().unwrap();
        assert_eq!(on.changed["a"]["enabled"], true);
        assert!(candidates(Path::new(FILE), &on.changed, &variable).is_ok());
    }

    #[test]
    fn nothing_is_written_over_a_text_that_is_no_document() {
        for torn in [" ", "{\"mcpServers\": {", "[]", r#"{"mcpServers": []}"#, r#"{"a": 1, "a": 2}"#] {
            let torn = source(torn);
            for refusal in [
                refused(replace_all(&torn, &Map::new())),
                refused(set_enabled(&torn, "a", true)),
                refused(remove(&torn, "a")),
            ] {
                assert!(refusal.starts_with("Invalid MCP configuration: /etc/caribou/x.json:1:"), "{refusal}");
            }
        }
    }

    #[test]
    fn candidates_are_judged_alone_and_the_first_wrong_one_is_named() {
        // Contract 2.2, the candidate is validated before writing.
        let wrong = map(json!({"good": {"command": "x"}, "bad": {"type": "http", "headers": {"A": "s3cret"}}}));
        let refusal = candidates(Path::new(FILE), &wrong, &variable).unwrap_err().to_string();
        assert_eq!(refusal, "MCP server 'bad': type http requires 'url' field");
        let task = map(json!({"t": {"command": "x", "task_toolsets": [{}]}}));
        let refusal = candidates(Path::new(FILE), &task, &variable).unwrap_err().to_string();
        assert!(refusal.starts_with("$.mcpServers.t.task_toolsets[0]: a task toolset needs 'name'"), "{refusal}");
        let off = map(json!({"off": {"enabled": false, "type": "http"}}));
        assert!(candidates(Path::new(FILE), &off, &variable).is_ok());
    }
}
