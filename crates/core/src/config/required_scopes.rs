//! The field `required_scopes` of a server and of one of its tools: which OAuth scopes a caller's token must hold (ours;
//! mcp.md 10.1).
//!
//! Anything wrong costs the server: it would be open to more callers than was meant.

use std::sync::Arc;

use super::ServerConfig;
use super::env_refs::Text;
use super::fields::{Field, Fields};
use crate::identity::is_scope;

const KEY: &str = "required_scopes";

/// Scopes of one server or tool: a refusal holds all of them in one header.
const MAX_REQUIRED_SCOPES: usize = 16;

/// One scope; the longest that issuers use are addresses.
const MAX_SCOPE_BYTES: usize = 128;

impl ServerConfig {
    /// The OAuth scopes that a call of one tool requires, by its raw name: those of its override, else the server's.
    pub fn scopes_of(&self, raw_tool: &str) -> &Arc<[String]> {
        let written = self.tools.iter().find(|(name, _)| name == raw_tool);
        written.and_then(|(_, written)| written.required_scopes.as_ref()).unwrap_or(&self.required_scopes)
    }

    /// Every scope that some use of the server requires; one may be among them twice.
    pub fn all_scopes(&self) -> impl Iterator<Item = &String> {
        let of_tools = self.tools.iter().filter_map(|(_, written)| written.required_scopes.as_deref());
        self.required_scopes.iter().chain(of_tools.flatten())
    }
}

/// What is written; `None` = nothing.
pub(super) fn read(fields: &Fields<'_>) -> Option<Arc<[String]>> {
    let field = fields.get_set(KEY)?;
    let items: Vec<Field<'_>> = field.list()?.collect();
    if items.len() > MAX_REQUIRED_SCOPES {
        field.error(&format!("holds more than {MAX_REQUIRED_SCOPES} scopes"), "");
    }
    let scopes: Vec<&Text> = items.iter().take(MAX_REQUIRED_SCOPES).filter_map(scope).collect();
    Some(scopes.into_iter().map(|scope| scope.value.clone()).collect())
}

fn scope<'a>(item: &Field<'a>) -> Option<&'a Text> {
    let text = item.text()?;
    if !is_scope(&text.value) || text.value.len() > MAX_SCOPE_BYTES {
        let what = format!(
            "must be one OAuth scope: 1 to {MAX_SCOPE_BYTES} printable ASCII characters without blanks, quotes and \
             backslashes"
        );
        item.error(&what, "write several as several texts of the list");
        return None;
    }
    if text.value == "offline_access" {
        item.warn("is what clients ask refresh tokens by, and no scope of a resource", "remove it");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use crate::config::samples::{assert_dropped, assert_quiet, assert_warned, good};

    #[test]
    fn the_scopes_of_a_tool_take_the_place_of_the_servers() {
        let server = good(
            r#""command": "x", "required_scopes": ["notes:read"], "tools": {
                "write": {"required_scopes": ["notes:read", "notes:write"]}, "ping": {"required_scopes": []},
                "find": {"routing": {"mode": "prefer"}}, "none": {"required_scopes": null}}"#,
        );
        for (tool, scopes) in [
            ("write", &["notes:read", "notes:write"][..]),
            ("ping", &[]),
            ("find", &["notes:read"]),
            ("none", &["notes:read"]),
            ("unknown", &["notes:read"]),
        ] {
            assert_eq!(**server.scopes_of(tool), *scopes, "{tool}");
        }
        assert_eq!(server.all_scopes().collect::<Vec<_>>(), ["notes:read", "notes:read", "notes:write"]);
        assert!(good(r#""command": "x""#).scopes_of("t").is_empty());
        assert_quiet(&[r#""command": "x", "required_scopes": ["https://api.example/read", "$TOKEN"]"#]);
    }

    #[test]
    fn a_malformed_scope_costs_the_server() {
        let many = format!(r#""command": "x", "required_scopes": [{}"a"]"#, r#""a", "#.repeat(16));
        let long = format!(r#""command": "x", "required_scopes": ["{}"]"#, "a".repeat(129));
        assert_dropped(&[
            (r#""command": "x", "required_scopes": "a b""#, "required_scopes: must be a list, not a string"),
            (r#""command": "x", "required_scopes": ["a", "b c"]"#, "required_scopes[1]: must be one OAuth scope"),
            (r#""command": "x", "required_scopes": [""]"#, "required_scopes[0]: must be one OAuth scope"),
            (r#""command": "x", "required_scopes": ["a\"b"]"#, "required_scopes[0]: must be one OAuth scope"),
            (r#""command": "x", "required_scopes": [1]"#, "required_scopes[0]: must be a string, not a number"),
            (
                r#""command": "x", "tools": {"t": {"required_scopes": ["a b"]}}"#,
                "tools.t.required_scopes[0]: must be one",
            ),
            (&many, "required_scopes: holds more than 16 scopes"),
            (&long, "required_scopes[0]: must be one OAuth scope: 1 to 128"),
        ]);
        assert_warned(&[
            (r#""command": "x", "required_scopes": ["offline_access"]"#, "required_scopes[0]: is what clients ask"),
            (r#""command": "x", "required_scope": ["a"]"#, "did you mean \"required_scopes\"?"),
            (r#""command": "x", "tools": {"t": {"required_scope": ["a"]}}"#, "did you mean \"required_scopes\"?"),
        ]);
    }
}
