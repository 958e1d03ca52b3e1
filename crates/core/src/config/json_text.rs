//! Strict JSON with the position of every key and value.
//!
//! Owns what counts as a readable document: UTF-8 with or without a byte-order mark, the JSON of RFC 8259 without
//! comments or trailing commas, no key twice in one object, at most 128 levels. serde_json decides about the syntax;
//! jsonc-parser then only tells where things stand. Every failure costs the whole document, so that a half-written
//! file is never taken for an empty one. Messages hold no text of the document but keys (O3).

use std::collections::HashMap;

use jsonc_parser::ast::Value as Ast;
use jsonc_parser::common::Ranged;
use serde_json::{Map, Number, Value};

use super::Source;
use super::env_refs::Text;
use super::fields::{index_path, key_path};
use super::problem::{Problem, Severity};
use super::report::Report;

/// The largest document: thousands of servers need less than a megabyte.
pub const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// A value and the byte offset it starts at. Without `Debug`: it holds secrets.
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

/// What a value is.
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// One key of an object with its value.
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_at: usize,
    pub(super) node: Node,
}

impl Node {
    /// What it is, for messages: with its article.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }

    /// The same value without positions.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.value.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Kind::Object(members) => Value::Object(object_value(members)),
        }
    }
}

/// The members of an object without positions, in document order.
pub(super) fn object_value(members: &[Member]) -> Map<String, Value> {
    members.iter().map(|member| (member.key.clone(), member.node.to_value())).collect()
}

/// The document's bytes as text, without the byte-order mark.
pub(super) fn decode<'t>(source: &Source<'t>) -> Result<&'t str, Problem> {
    let refuse = |text: &str, what: String, mend: &str| {
        let report = Report::new(source.file, text);
        let (line, column) = report.position(text.len());
        Problem {
            severity: Severity::Error,
            file: source.file.display().to_string(),
            line,
            column,
            path: "$".to_owned(),
            what,
            mend: mend.to_owned(),
        }
    };
    if source.text.len() > MAX_DOCUMENT_BYTES {
        let what = format!("the file is larger than {MAX_DOCUMENT_BYTES} bytes");
        return Err(refuse("", what, ""));
    }
    match std::str::from_utf8(source.text) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let before = std::str::from_utf8(&source.text[..error.valid_up_to()]).unwrap_or_default();
            Err(refuse(before, "the file is not valid JSON: it is not UTF-8".to_owned(), "save it as UTF-8"))
        }
    }
}

/// The document as a tree; `None` when it is refused, with the reasons in `report`.
pub(super) fn tree(text: &str, report: &Report<'_>) -> Option<Node> {
    if let Err(error) = serde_json::from_str::<Value>(text) {
        refuse_syntax(text, &error, report);
        return None;
    }
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &Default::default());
    let Some(ast) = parsed.ok().and_then(|parsed| parsed.value) else {
        report.fatal(0, "$", "the file is not valid JSON", "");
        return None;
    };
    let root = node(ast, &mut "$".to_owned(), report);
    (!report.load_fails()).then_some(root)
}

fn refuse_syntax(text: &str, error: &serde_json::Error, report: &Report<'_>) {
    if text.trim().is_empty() {
        report.fatal(0, "$", "the file is empty", "write {} for a document without servers");
        return;
    }
    let at = report.offset(error.line(), error.column());
    let full = error.to_string();
    // serde_json ends its sentence with the position in bytes; ours counts characters and stands in front.
    let what = full.rsplit_once(" at line ").map_or(full.as_str(), |(sentence, _)| sentence);
    report.fatal(at, "$", format!("the file is not valid JSON: {what}"), syntax_hint(&text[at..], what));
}

/// How to mend the likeliest slip at the place where the syntax breaks.
fn syntax_hint(rest: &str, what: &str) -> &'static str {
    if what.starts_with("trailing comma") {
        return "remove the comma before it: trailing commas are not allowed";
    }
    if what.starts_with("EOF") {
        return "the text ends too early: was it cut off?";
    }
    if what.starts_with("recursion limit") {
        return "at most 128 levels are allowed";
    }
    match rest.chars().next() {
        Some('/' | '#') => "comments are not allowed",
        Some('\'') => "write strings and keys in double quotes",
        Some('N' | 'I' | '+' | '.') => "JSON has only finite decimal numbers",
        Some('\0') => "save the file as UTF-8",
        Some('\n' | '\t') if what.starts_with("control character") => {
            "write line ends and tabs in strings as \\n and \\t"
        }
        _ => "",
    }
}

fn node(ast: Ast<'_>, path: &mut String, report: &Report<'_>) -> Node {
    let at = ast.range().start;
    let kind = match ast {
        Ast::NullKeyword(_) => Kind::Null,
        Ast::BooleanLit(literal) => Kind::Bool(literal.value),
        // serde_json has accepted every number of this text, so the default is never taken.
        Ast::NumberLit(literal) => Kind::Number(literal.value.parse().unwrap_or_else(|_| Number::from(0))),
        Ast::StringLit(literal) => Kind::Text(Text::literal(literal.value.into_owned())),
        Ast::Array(array) => Kind::List(
            array
                .elements
                .into_iter()
                .enumerate()
                .map(|(i, item)| index_path(path, i, |path| node(item, path, report)))
                .collect(),
        ),
        Ast::Object(object) => Kind::Object(members(object, path, report)),
    };
    Node { at, kind }
}

fn members(object: jsonc_parser::ast::Object<'_>, path: &mut String, report: &Report<'_>) -> Vec<Member> {
    let mut seen = HashMap::new();
    let mut members = Vec::with_capacity(object.properties.len());
    for property in object.properties {
        let key_at = property.name.range().start;
        let key = property.name.into_string();
        let member = key_path(path, &key, |path| {
            if let Some(first) = seen.insert(key.clone(), key_at) {
                let what = if report.keeps(Severity::Error) { twice(report.position(first)) } else { String::new() };
                report.fatal(key_at, path, what, "remove one of the two");
            }
            node(property.value, path, report)
        });
        members.push(Member { key, key_at, node: member });
    }
    members
}

fn twice((line, column): (usize, usize)) -> String {
    format!("this key stands twice in one object, first at line {line}, column {column}")
}
