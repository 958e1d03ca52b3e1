//! What `GET /api/mcp/config` shows: every server with all its fields, secrets hidden (contract 1.12, 2.2).
//!
//! Shows what stands in the file, references such as `$TOKEN_URL` unresolved, so that it can be edited and written
//! back: `merge` restores exactly what is hidden here. A server that is wrong is shown, so that it can be mended; an
//! entry that is no object refuses the whole, because leaving it out would delete it with the next write. Keeps O3.

use serde_json::{Map, Value};

use super::defaults::filled;
use super::hiding::{SERVER, hidden};
use super::stored::Stored;
use super::{Problem, Source};

/// The servers by name, in document order, masked.
///
/// # Errors
/// The problems of a document that cannot be shown: no strict JSON, or not of the shape name to object.
pub fn view(source: &Source<'_>) -> Result<Map<String, Value>, Vec<Problem>> {
    let servers = Stored::read(source)?.server_objects(source)?;
    Ok(servers.iter().map(|(name, server)| (name.clone(), masked(server))).collect())
}

/// One entry as it is shown.
pub(super) fn masked(server: &Map<String, Value>) -> Value {
    hidden(&Value::Object(filled(server)), &SERVER)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn viewed(text: &str) -> Result<Value, String> {
        let source = Source { file: Path::new("/etc/caribou/x.json"), text: text.as_bytes() };
        view(&source).map(Value::Object).map_err(|problems| problems[0].to_string())
    }

    #[test]
    fn servers_are_shown_in_order_filled_and_masked_with_references_unresolved() {
        // Contract 1.12, 2.2.
        let text = "\u{feff}{\"skills\": {\"token\": 1}, \"mcpServers\": {\"z\": {\"url\": \"$URL\", \"headers\": {\"A\": \"$T\"}}, \"a\": {}}}";
        let viewed = viewed(text).unwrap();
        let names: Vec<&str> = viewed.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["z", "a"]);
        assert_eq!((&viewed["z"]["url"], &viewed["z"]["headers"]["A"]), (&"$URL".into(), &"***".into()));
        assert_eq!(viewed["a"]["session_init_timeout"], 60.0);
    }

    #[test]
    fn a_document_without_servers_shows_none_and_a_malformed_one_says_where() {
        // Contract 2.2.
        assert_eq!(viewed("{}").unwrap(), Value::Object(Map::new()));
        for (text, problem) in [
            ("", "the file is empty"),
            ("[]", "$: the document must be an object, not a list"),
            (r#"{"mcpServers": []}"#, ":1:16: error: $.mcpServers: must be an object, not a list"),
            (r#"{"mcpServers": {"a": "secret"}}"#, ":1:22: error: $.mcpServers.a: must be an object, not a string"),
            (r#"{"mcpServers": {"a": {}, "a": {}}}"#, "stands twice"),
        ] {
            let refusal = viewed(text).unwrap_err();
            assert!(refusal.contains(problem) && !refusal.contains("secret"), "{refusal}");
        }
    }
}
