//! The whole of `extensions_config.json` (contract 1.1).
//!
//! Owns the top level and what refuses a load: text that is no JSON, a root or `mcpServers` that is no object, a
//! wrong server that is task-enabled. Anything else wrong is reported and the rest serves. Keys that other products
//! keep in the same file are kept as they are, references unresolved.

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value};

use super::fields::{Field, Fields};
use super::interceptor::{self, InterceptorEntry};
use super::json_text::Kind;
use super::problem::Problem;
use super::report::Report;
use super::{ServerEntry, env_refs, json_text, server_entry};

const KNOWN: [&str; 7] =
    ["mcpServers", "mcp_servers", "mcpInterceptors", "skills", "middlewares", "mcpLifecycle", "$schema"];

/// One text and where it comes from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The file, absolute: its name stands in problems, and relative working directories start at its folder.
    pub file: &'a Path,
    /// Its bytes.
    pub text: &'a [u8],
}

/// What a document says. The default is the empty document: no servers.
#[derive(Clone, Default)]
pub struct Document {
    /// All servers in document order, those left out and those switched off included.
    pub servers: Vec<ServerEntry>,
    /// `mcpInterceptors`, in order.
    pub interceptors: Vec<InterceptorEntry>,
    /// Paths of the interceptors that only a Python program can run; see [`Document::accept`].
    pub(super) unsupported: Vec<String>,
    /// `skills`, as it stands in the file.
    pub skills: Option<Value>,
    /// `middlewares`, as it stands in the file.
    pub middlewares: Option<Value>,
    /// Every other key of the top level, as it stands in the file.
    pub extra: Map<String, Value>,
    /// What is odd and why servers were left out, in the order of the text.
    pub problems: Vec<Problem>,
}

impl fmt::Debug for Document {
    /// Leaves the raw parts out: they may hold secrets of other products (invariant O3).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("servers", &self.servers)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

/// Reads a document. `env` answers what an environment variable holds, `None` when it is not set.
///
/// # Errors
/// All problems, in the order of the text, when the document is refused as a whole: it is not strict JSON in UTF-8, a
/// key stands twice, the root or `mcpServers` is no object, or a task-enabled server is wrong.
pub fn parse(source: &Source<'_>, env: &dyn Fn(&str) -> Option<String>) -> Result<Document, Vec<Problem>> {
    parsed(source, Some(env))
}

/// The same for what a user wrote, which is read literally: nothing in it refers to an environment (contract 1.8,
/// personal).
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_literally(source: &Source<'_>) -> Result<Document, Vec<Problem>> {
    parsed(source, None)
}

/// Answers what an environment variable holds.
type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

fn parsed(source: &Source<'_>, env: Option<Environment<'_>>) -> Result<Document, Vec<Problem>> {
    let text = json_text::decode(source).map_err(|problem| vec![problem])?;
    let report = Report::new(source.file, text);
    let document = read(source, text, env, &report);
    let refused = report.load_fails();
    let problems = report.finish();
    match document {
        Some(document) if !refused => Ok(Document { problems, ..document }),
        _ => Err(problems),
    }
}

/// Every problem of a document at once, in the order of the text, whether it would be served or not.
pub fn check(source: &Source<'_>, env: &dyn Fn(&str) -> Option<String>) -> Vec<Problem> {
    parse(source, env).map_or_else(|problems| problems, |document| document.problems)
}

fn read(source: &Source<'_>, text: &str, env: Option<Environment<'_>>, report: &Report<'_>) -> Option<Document> {
    let mut root = json_text::tree(text, report)?;
    let Kind::Object(members) = &mut root.kind else {
        report.fatal(root.at, "$", format!("the document must be an object, not {}", root.kind_name()), "");
        return None;
    };
    let mut document = Document::default();
    for member in &mut *members {
        match member.key.as_str() {
            "skills" => document.skills = Some(member.node.to_value()),
            "middlewares" => document.middlewares = Some(member.node.to_value()),
            "mcpServers" | "mcp_servers" | "mcpInterceptors" => match env {
                Some(env) => env_refs::resolve(&mut member.node, &mut format!("$.{}", member.key), env, report),
                None => report.read_literally(),
            },
            key => {
                document.extra.insert(key.to_owned(), member.node.to_value());
            }
        }
    }
    let root = Field::root(&root, report).as_object()?;
    root.note_extras(&KNOWN);
    document.servers = servers(&root, source.file.parent().unwrap_or(Path::new("")))?;
    (document.interceptors, document.unsupported) = interceptor::read(&root);
    Some(document)
}

fn servers(root: &Fields<'_>, dir: &Path) -> Option<Vec<ServerEntry>> {
    let alias = root.get("mcp_servers");
    let Some(field) = root.get("mcpServers").or_else(|| alias.clone()) else { return Some(Vec::new()) };
    if let Some(alias) = alias.filter(|alias| alias.path != field.path) {
        alias.warn("is ignored beside mcpServers", "move its servers there");
    }
    let Some(servers) = field.object() else {
        root.report.fail_load();
        return None;
    };
    Some(servers.iter().map(|(name, field)| server_entry::read(name, &field, dir)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::config::samples::read;

    fn names(text: &str) -> Vec<String> {
        read(text.as_bytes()).expect(text).servers.iter().map(|entry| entry.name.to_string()).collect()
    }

    #[test]
    fn servers_keep_the_order_of_the_document() {
        assert_eq!(
            names(r#"{"mcpServers": {"z": {"command": "x"}, "a": 1, "m": {"enabled": false}}}"#),
            ["z", "a", "m"]
        );
    }

    #[test]
    fn both_spellings_of_the_map_are_read_and_the_first_wins() {
        // Contract 1.1.
        assert_eq!(names(r#"{"mcp_servers": {"a": {"command": "x"}}}"#), ["a"]);
        let both = r#"{"mcp_servers": {"a": {"command": "x"}}, "mcpServers": {}}"#;
        assert!(names(both).is_empty());
        assert!(read(both.as_bytes()).unwrap().problems[0].what.contains("ignored beside mcpServers"));
    }

    #[test]
    fn what_other_products_keep_is_kept_as_it_stands() {
        // Contract 1.1.
        let text =
            r#"{"skills": {"s": {"enabled": false}}, "middlewares": ["m:C"], "other": "$TOKEN", "mcpLifecycle": {}}"#;
        let document = read(text.as_bytes()).unwrap();
        assert_eq!(document.skills, Some(json!({"s": {"enabled": false}})));
        assert_eq!(document.middlewares, Some(json!(["m:C"])));
        assert_eq!(json!(document.extra), json!({"other": "$TOKEN", "mcpLifecycle": {}}));
        assert!(!format!("{document:?}").contains("TOKEN"));
    }

    #[test]
    fn problems_come_in_the_order_of_the_text() {
        let text = "{\"mcpServers\": {\n\"b\": {\"type\": \"http\"},\n\"a\": {\"comand\": 1}}, \"mcpInterceptor\": []}";
        let lines: Vec<_> = read(text.as_bytes()).unwrap().problems.iter().map(|p| (p.line, p.column)).collect();
        assert_eq!(lines, [(2, 6), (3, 6), (3, 7), (3, 22)]);
    }
}
