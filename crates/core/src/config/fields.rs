//! Typed access to the keys of one object.
//!
//! Owns how a wrong type is told and how paths are written; which keys exist and what they mean is said by the
//! readers. A reader that meets a wrong value gets nothing (or the default it named) and goes on, so that all problems
//! of a document are found at once. Messages hold names and kinds, never values (O3).

use std::time::Duration;

use serde_json::{Map, Value};

use super::env_refs::Text;
use super::json_text::{Kind, Member, Node, object_value};
use super::near_miss;
use super::problem::Severity;
use super::report::Report;

/// Runs `inside` with `path` extended by a key.
pub(super) fn key_path<T>(path: &mut String, key: &str, inside: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(plain) {
        path.push('.');
        path.push_str(key);
    } else {
        path.push_str(&format!("[{}]", Value::from(key)));
    }
    let result = inside(path);
    path.truncate(length);
    result
}

/// Runs `inside` with `path` extended by a position in a list.
pub(super) fn index_path<T>(path: &mut String, index: usize, inside: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push_str(&format!("[{index}]"));
    let result = inside(path);
    path.truncate(length);
    result
}

/// One value with its place in the document.
#[derive(Clone)]
pub(super) struct Field<'a> {
    node: &'a Node,
    pub(super) at: usize,
    pub(super) path: String,
    pub(super) report: &'a Report<'a>,
}

/// The keys of one object.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    members: &'a [Member],
    at: usize,
    pub(super) path: String,
    pub(super) report: &'a Report<'a>,
}

impl<'a> Fields<'a> {
    /// The value of `key`, `null` included.
    pub(super) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.members.iter().find(|member| member.key == key).map(|member| self.field(member))
    }

    /// The value of `key`; `null` counts as absent.
    pub(super) fn get_set(&self, key: &str) -> Option<Field<'a>> {
        self.get(key).filter(|field| !field.is_null())
    }

    /// All keys with their values, in document order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        self.members.iter().map(|member| (member.key.as_str(), self.field(member)))
    }

    fn field(&self, member: &'a Member) -> Field<'a> {
        let path = key_path(&mut self.path.clone(), &member.key, |path| path.clone());
        Field { node: &member.node, at: member.node.at, path, report: self.report }
    }

    pub(super) fn boolean(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(|field| field.boolean()).unwrap_or(default)
    }

    /// A string that may be `null`.
    pub(super) fn text(&self, key: &str) -> Option<&'a Text> {
        self.get_set(key)?.text()
    }

    /// A string that may be `null`, without its origin.
    pub(super) fn string(&self, key: &str) -> Option<String> {
        self.text(key).map(|text| text.value.clone())
    }

    /// A string that must not be blank; `requirement` says what misses it, `mend` what to write.
    pub(super) fn required(&self, key: &str, requirement: &str, mend: &str) -> Option<&'a Text> {
        let Some(field) = self.get_set(key) else {
            self.error(requirement, mend);
            return None;
        };
        let text = field.text()?;
        if text.value.trim().is_empty() {
            let empty = match &text.variable {
                Some(variable) => format!("{requirement}: the variable `{variable}` is empty or not set"),
                None => format!("{requirement}: it is empty"),
            };
            field.error(&empty, mend);
            return None;
        }
        Some(text)
    }

    /// A list of strings, empty when absent.
    pub(super) fn texts(&self, key: &str) -> Vec<&'a Text> {
        let items = self.get(key).and_then(|field| field.list()).into_iter().flatten();
        items.filter_map(|item| item.text()).collect()
    }

    /// A map to strings, in document order, empty when absent.
    pub(super) fn text_map(&self, key: &str) -> Vec<(&'a str, Field<'a>, &'a Text)> {
        let Some(fields) = self.get(key).and_then(|field| field.object()) else { return Vec::new() };
        fields.iter().filter_map(|(key, field)| field.text().map(|text| (key, field, text))).collect()
    }

    /// Seconds above zero; `None` when `null`, absent or wrong.
    pub(super) fn seconds(&self, key: &str) -> Option<Duration> {
        self.get_set(key)?.seconds()
    }

    /// One of these words; reports any other.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let field = self.get(key)?;
        let text = field.text()?;
        let found = words.iter().find(|(word, _)| *word == text.value).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            field.error(&format!("must be {}", words.join(" or ")), "");
        }
        found
    }

    /// Refuses every key beside `known`.
    pub(super) fn refuse_extras(&self, known: &[&str]) {
        for member in self.members.iter().filter(|member| !known.contains(&member.key.as_str())) {
            let mend = match near_miss::meant(&member.key, known) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("allowed are {}", known.join(", ")),
            };
            let field = self.field(member);
            self.report.add(
                Severity::Error,
                member.key_at,
                &field.path,
                "is not a known key and none is allowed here",
                &mend,
            );
        }
    }

    /// Tells of keys beside `known`: a likely typo is a warning, others are kept and only noted.
    pub(super) fn note_extras(&self, known: &[&str]) {
        let extras = self.members.iter().filter(|member| !known.contains(&member.key.as_str()));
        for member in extras.take_while(|_| self.report.keeps(Severity::Note)) {
            let path = self.field(member).path;
            let (severity, mend) = match near_miss::meant(&member.key, known) {
                Some(meant) => (Severity::Warning, format!("did you mean \"{meant}\"?")),
                None => (Severity::Note, String::new()),
            };
            self.report.add(severity, member.key_at, &path, "is not a known key: kept, without effect", &mend);
        }
    }

    /// An error about the object itself.
    pub(super) fn error(&self, what: &str, mend: &str) {
        self.report.add(Severity::Error, self.at, &self.path, what, mend);
    }

    /// A warning about the object itself.
    pub(super) fn warn(&self, what: &str, mend: &str) {
        self.report.add(Severity::Warning, self.at, &self.path, what, mend);
    }
}

impl<'a> Field<'a> {
    pub(super) fn root(node: &'a Node, report: &'a Report<'a>) -> Self {
        Self { node, at: node.at, path: "$".to_owned(), report }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.node.kind, Kind::Null)
    }

    /// Whether nothing is said by it: `null`, an empty string, list or object.
    pub(super) fn is_empty(&self) -> bool {
        match &self.node.kind {
            Kind::Null => true,
            Kind::Text(text) => text.value.is_empty(),
            Kind::List(items) => items.is_empty(),
            Kind::Object(members) => members.is_empty(),
            Kind::Bool(_) | Kind::Number(_) => false,
        }
    }

    /// The string, if it is one; reports nothing.
    pub(super) fn as_text(&self) -> Option<&'a Text> {
        match &self.node.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if it is a list; reports nothing.
    pub(super) fn as_list(&self) -> Option<impl Iterator<Item = Field<'a>> + use<'a>> {
        let Kind::List(items) = &self.node.kind else { return None };
        let (mut path, report) = (self.path.clone(), self.report);
        Some(items.iter().enumerate().map(move |(i, node)| {
            let path = index_path(&mut path, i, |path| path.clone());
            Field { node, at: node.at, path, report }
        }))
    }

    /// The keys, if it is an object; reports nothing.
    pub(super) fn as_object(&self) -> Option<Fields<'a>> {
        let Kind::Object(members) = &self.node.kind else { return None };
        Some(Fields { members, at: self.at, path: self.path.clone(), report: self.report })
    }

    /// Seconds above zero, if it is a number of them; reports nothing.
    pub(super) fn as_seconds(&self) -> Option<Duration> {
        let seconds = match &self.node.kind {
            Kind::Number(number) => number.as_f64()?,
            Kind::Text(text) if text.from_env => text.value.trim().parse().ok()?,
            _ => return None,
        };
        Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
    }

    pub(super) fn text(&self) -> Option<&'a Text> {
        self.as_text().or_else(|| self.wrong("a string", "write it in double quotes"))
    }

    pub(super) fn list(&self) -> Option<impl Iterator<Item = Field<'a>> + use<'a>> {
        self.as_list().or_else(|| self.wrong("a list", "write it as [ … ]"))
    }

    pub(super) fn object(&self) -> Option<Fields<'a>> {
        self.as_object().or_else(|| self.wrong("an object", "write it as { … }"))
    }

    /// The value as plain JSON, environment references resolved.
    pub(super) fn value(&self) -> Value {
        self.node.to_value()
    }

    /// The object as plain JSON, environment references resolved.
    pub(super) fn object_value(&self) -> Option<Map<String, Value>> {
        self.object().map(|fields| object_value(fields.members))
    }

    /// `true` or `false`; a variable may spell them.
    pub(super) fn boolean(&self) -> Option<bool> {
        match &self.node.kind {
            Kind::Bool(value) => Some(*value),
            Kind::Text(text) if text.from_env => match text.value.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => self.wrong_variable("true or false"),
            },
            _ => self.wrong("true or false", "write it without quotes"),
        }
    }

    /// A number; a variable may spell it.
    fn number(&self, wanted: &str) -> Option<f64> {
        match &self.node.kind {
            Kind::Number(number) => number.as_f64(),
            Kind::Text(text) if text.from_env => text.value.trim().parse().ok().or_else(|| self.wrong_variable(wanted)),
            _ => self.wrong(wanted, "write it without quotes"),
        }
    }

    /// A whole number.
    pub(super) fn whole(&self) -> Option<i64> {
        const WANTED: &str = "a whole number";
        let number = self.number(WANTED)?;
        // Beyond 2^53 a float no longer tells neighbours apart; no setting needs such numbers.
        if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
            return Some(number as i64);
        }
        self.error("must be a whole number", "");
        None
    }

    /// Seconds, finite and above zero (architecture.md §9).
    pub(super) fn seconds(&self) -> Option<Duration> {
        let number = self.number("a number of seconds")?;
        let duration = Duration::try_from_secs_f64(number).ok().filter(|duration| !duration.is_zero());
        if duration.is_none() {
            self.error("must be a finite number of seconds above 0", "null means no bound of its own");
        }
        duration
    }

    pub(super) fn error(&self, what: &str, mend: &str) {
        self.report.add(Severity::Error, self.at, &self.path, what, mend);
    }

    pub(super) fn warn(&self, what: &str, mend: &str) {
        self.report.add(Severity::Warning, self.at, &self.path, what, mend);
    }

    fn wrong<T>(&self, wanted: &str, mend: &str) -> Option<T> {
        self.error(&format!("must be {wanted}, not {}", self.node.kind_name()), mend);
        None
    }

    fn wrong_variable<T>(&self, wanted: &str) -> Option<T> {
        self.error(&format!("must be {wanted}, and the variable it refers to holds something else or is not set"), "");
        None
    }
}
