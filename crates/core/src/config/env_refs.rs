//! `$NAME`: values that come from the environment (contract 1.8).
//!
//! Owns which strings are references and what they become: a string that starts with `$` names a variable with all
//! that follows, an unset variable gives the empty string, values are replaced and keys never, and what a variable
//! holds is not looked at again. Does not read the environment: a function is handed in. Never fails; what is odd is
//! reported as a warning. A variable's name is shown only when it looks like one, since a password may start with `$`
//! too (O3).

use super::fields::{index_path, key_path};
use super::json_text::{Kind, Node};
use super::problem::Severity;
use super::report::Report;

/// A string of the document. Without `Debug`: it may be a secret.
pub(super) struct Text {
    /// The value after resolution.
    pub(super) value: String,
    /// Whether it came from the environment.
    pub(super) from_env: bool,
    /// The variable it came from, when its name may be shown.
    pub(super) variable: Option<String>,
}

impl Text {
    pub(super) fn literal(value: String) -> Self {
        Self { value, from_env: false, variable: None }
    }
}

/// Replaces every reference below `node`.
pub(super) fn resolve(node: &mut Node, path: &mut String, env: &dyn Fn(&str) -> Option<String>, report: &Report<'_>) {
    let at = node.at;
    match &mut node.kind {
        Kind::Text(text) => resolve_text(text, at, path, env, report),
        Kind::List(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                index_path(path, i, |path| resolve(item, path, env, report));
            }
        }
        Kind::Object(members) => {
            for member in members {
                let node = &mut member.node;
                key_path(path, &member.key, |path| resolve(node, path, env, report));
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
    }
}

fn resolve_text(text: &mut Text, at: usize, path: &str, env: &dyn Fn(&str) -> Option<String>, report: &Report<'_>) {
    let warn = |what: String, mend: &str| report.add(Severity::Warning, at, path, what, mend);
    let Some(name) = text.value.strip_prefix('$') else {
        if holds_inline_reference(&text.value) {
            let what = "a reference inside a longer string is not expanded: the text is used as it is".to_owned();
            warn(what, "only a whole string $NAME is replaced; put the whole value into a variable");
        }
        return;
    };
    let value = env(name);
    let variable = looks_like_a_variable(name).then(|| name.to_owned());
    if value.is_none() {
        let named = variable.as_deref().map_or("it names".to_owned(), |name| format!("`{name}`"));
        let mend = if name.starts_with('{') {
            "only $NAME is supported, without braces or default"
        } else {
            "set it, or write the value itself; a value cannot start with $"
        };
        warn(format!("the environment variable {named} is not set: the value is empty"), mend);
    }
    *text = Text { value: value.unwrap_or_default(), from_env: true, variable };
}

/// Whether a shell or another tool would expand something here: `${NAME}`, or `$NAME` in capitals.
pub(super) fn holds_inline_reference(text: &str) -> bool {
    text.match_indices('$').any(|(at, _)| {
        let rest = &text[at + 1..];
        match rest.strip_prefix('{') {
            Some(braced) => braced.contains('}'),
            None => rest.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').count() > 1,
        }
    })
}

fn looks_like_a_variable(name: &str) -> bool {
    let conventional = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') && name.len() <= 64 && name.chars().all(conventional)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::config::json_text;

    fn resolved(text: &str) -> (serde_json::Value, Vec<String>) {
        let env = |name: &str| match name {
            "TOKEN" => Some("tok-123".to_owned()),
            "EMPTY" => Some(String::new()),
            "DOLLAR" => Some("pa$$TOKEN".to_owned()),
            "A/b" => Some("odd name".to_owned()),
            _ => None,
        };
        let report = Report::new(Path::new("x"), text);
        let mut root = json_text::tree(text, &report).unwrap();
        resolve(&mut root, &mut "$".to_owned(), &env, &report);
        (root.to_value(), report.finish().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_whole_strings_are_replaced_once_and_anywhere_but_in_keys() {
        // Contract 1.8.
        for (input, output) in [
            (r#""$TOKEN""#, json!("tok-123")),
            (r#""$UNSET""#, json!("")),
            (r#""$EMPTY""#, json!("")),
            (r#""$A/b""#, json!("odd name")),
            (r#""$DOLLAR""#, json!("pa$$TOKEN")),
            (r#""Bearer $TOKEN""#, json!("Bearer $TOKEN")),
            (r#""a${TOKEN}b""#, json!("a${TOKEN}b")),
            (r#""cost 5$""#, json!("cost 5$")),
            (r#""${TOKEN}""#, json!("")),
            (r#""$$TOKEN""#, json!("")),
            (r#"{"$TOKEN": ["$TOKEN", {"k": "$TOKEN"}]}"#, json!({"$TOKEN": ["tok-123", {"k": "tok-123"}]})),
            ("[true, 1.5, null]", json!([true, 1.5, null])),
        ] {
            assert_eq!(resolved(input).0, output, "{input}");
        }
    }

    #[test]
    fn unset_and_unsupported_references_are_warned_about_by_path_and_variable() {
        let warnings = resolved(r#"{"env": {"T": "$NOT_SET"}, "a": ["${TOKEN:-x}", "--t=$TOKEN"]}"#).1;
        assert_eq!(warnings.len(), 3, "{warnings:#?}");
        assert!(warnings[0].contains("$.env.T: the environment variable `NOT_SET` is not set"), "{}", warnings[0]);
        assert!(warnings[1].contains("$.a[0]") && warnings[1].contains("without braces"), "{}", warnings[1]);
        assert!(warnings[2].contains("$.a[1]") && warnings[2].contains("not expanded"), "{}", warnings[2]);
    }

    #[test]
    fn a_password_that_starts_with_a_dollar_is_not_shown_as_a_variable() {
        let warnings = resolved(r#"{"password": "$ecret-word"}"#).1;
        assert!(warnings[0].contains("not set") && !warnings[0].contains("ecret"), "{}", warnings[0]);
    }

    #[test]
    fn ordinary_dollars_are_not_taken_for_references() {
        for text in ["", "5$", "$", "US$5", "a $x b", "{$}", "${"] {
            assert!(!holds_inline_reference(text), "{text}");
        }
    }
}
