//! Where the secrets of a server entry stand, and what is shown in their place (contract 1.12).
//!
//! Owns one table for both directions: what GET hides is exactly what a write restores. Works on the entry as it
//! stands in the file, right or wrong; a part of a wrong kind is hidden whole, since nobody can say what it holds.
//! Never mutates what it is given. Keeps O3.

use serde_json::{Map, Value};

use super::mask::is_secret_shaped;
use crate::masker::MASK;

/// How one value is shown.
pub(super) enum Hiding {
    /// As it is.
    Clear,
    /// As `null`.
    Null,
    /// A map: its keys are shown, its values hidden.
    Values,
    /// An object: these keys by their own rule, every other key by its name.
    Fields(&'static [(&'static str, Hiding)]),
    /// A map to objects of one kind.
    Each(&'static Hiding),
    /// What we do not know: values of secret-shaped keys are hidden, at any depth.
    ByName,
}

/// A whole server entry.
pub(super) static SERVER: Hiding = Hiding::Fields(&[
    ("enabled", Hiding::Clear),
    ("type", Hiding::Clear),
    ("command", Hiding::Clear),
    ("args", Hiding::Clear),
    ("env", Hiding::Values),
    ("cwd", Hiding::Clear),
    ("url", Hiding::Clear),
    ("headers", Hiding::Values),
    ("oauth", OAUTH),
    ("user_auth", USER_AUTH),
    ("headers_from_context", HEADERS_FROM_CONTEXT),
    ("description", Hiding::Clear),
    ("routing", Hiding::Clear),
    ("tools", Hiding::Each(&Hiding::Fields(&[("routing", Hiding::Clear)]))),
    ("tool_name_prefix", Hiding::Clear),
    ("tool_call_timeout", Hiding::Clear),
    ("session_init_timeout", Hiding::Clear),
    ("task_toolsets", Hiding::Clear),
]);

const OAUTH: Hiding = Hiding::Fields(&[
    ("enabled", Hiding::Clear),
    ("token_url", Hiding::Clear),
    ("grant_type", Hiding::Clear),
    ("client_id", Hiding::Clear),
    ("client_secret", Hiding::Null),
    ("refresh_token", Hiding::Null),
    ("scope", Hiding::Clear),
    ("audience", Hiding::Clear),
    ("token_field", Hiding::Clear),
    ("token_type_field", Hiding::Clear),
    ("expires_in_field", Hiding::Clear),
    ("default_token_type", Hiding::Clear),
    ("refresh_skew_seconds", Hiding::Clear),
    ("extra_token_params", Hiding::Values),
    ("reuse_leeway_seconds", Hiding::Clear),
    ("unknown_outcome", Hiding::Clear),
    ("token_endpoint_auth_method", Hiding::Clear),
]);

const USER_AUTH: Hiding = Hiding::Fields(&[
    ("enabled", Hiding::Clear),
    ("header", Hiding::Clear),
    ("users", Hiding::Values),
    ("on_missing", Hiding::Clear),
]);

const HEADERS_FROM_CONTEXT: Hiding =
    Hiding::Fields(&[("enabled", Hiding::Clear), ("headers", Hiding::Clear), ("on_missing", Hiding::Clear)]);

/// The rule of one key of an object: its own, or by its name.
pub(super) fn rule_of(table: &'static [(&'static str, Hiding)], key: &str) -> Option<&'static Hiding> {
    table.iter().find(|(name, _)| *name == key).map(|(_, rule)| rule)
}

/// `value` with its secrets hidden.
pub(super) fn hidden(value: &Value, rule: &Hiding) -> Value {
    match (rule, value) {
        (Hiding::Clear, value) => value.clone(),
        (Hiding::Null, _) | (Hiding::Values | Hiding::Fields(_) | Hiding::Each(_), Value::Null) => Value::Null,
        (Hiding::Values, Value::Object(members)) => each(members, |_, _| MASK.into()),
        (Hiding::Each(rule), Value::Object(members)) => each(members, |_, value| hidden(value, rule)),
        (Hiding::Fields(table), Value::Object(members)) => each(members, |key, value| match rule_of(table, key) {
            Some(rule) => hidden(value, rule),
            None => hidden_by_name(key, value),
        }),
        (Hiding::Values | Hiding::Fields(_) | Hiding::Each(_), _) => MASK.into(),
        (Hiding::ByName, Value::Object(members)) => each(members, hidden_by_name),
        (Hiding::ByName, Value::Array(items)) => items.iter().map(|item| hidden(item, &Hiding::ByName)).collect(),
        (Hiding::ByName, value) => value.clone(),
    }
}

fn hidden_by_name(key: &str, value: &Value) -> Value {
    if is_secret_shaped(key) { MASK.into() } else { hidden(value, &Hiding::ByName) }
}

fn each(members: &Map<String, Value>, show: impl Fn(&str, &Value) -> Value) -> Value {
    members.iter().map(|(key, value)| (key.clone(), show(key, value))).collect()
}

/// The path of a mask that stands where a secret belongs, if there is one.
pub(super) fn mask_left(value: &Value, rule: &Hiding, path: &str) -> Option<String> {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let by_name = |(key, value): (&String, &Value)| {
        if is_secret_shaped(key) && holds_mask(value) {
            return Some(below(key));
        }
        mask_left(value, &Hiding::ByName, &below(key))
    };
    match (rule, value) {
        (Hiding::Clear, _) => None,
        (Hiding::Values, Value::Object(members)) => {
            members.iter().find(|(_, value)| *value == MASK).map(|(key, _)| below(key))
        }
        (Hiding::Each(rule), Value::Object(members)) => {
            members.iter().find_map(|(key, value)| mask_left(value, rule, &below(key)))
        }
        (Hiding::Fields(table), Value::Object(members)) => {
            members.iter().find_map(|(key, value)| match rule_of(table, key) {
                Some(rule) => mask_left(value, rule, &below(key)),
                None => by_name((key, value)),
            })
        }
        (Hiding::ByName, Value::Object(members)) => members.iter().find_map(by_name),
        (Hiding::ByName, Value::Array(items)) => {
            items.iter().enumerate().find_map(|(i, item)| mask_left(item, &Hiding::ByName, &format!("{path}[{i}]")))
        }
        (Hiding::ByName, _) => None,
        (Hiding::Null | Hiding::Values | Hiding::Fields(_) | Hiding::Each(_), value) => {
            (value == MASK).then(|| path.to_owned())
        }
    }
}

fn holds_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text == MASK,
        Value::Array(items) => items.iter().any(holds_mask),
        Value::Object(members) => members.values().any(holds_mask),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::defaults::SERVER_FIELDS;

    fn shown(server: Value) -> Value {
        let before = server.clone();
        let shown = hidden(&server, &SERVER);
        assert_eq!(server, before);
        shown
    }

    #[test]
    fn every_field_of_the_contract_has_a_rule() {
        let Hiding::Fields(table) = &SERVER else { panic!("an object") };
        let keys: Vec<&str> = table.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, SERVER_FIELDS);
    }

    #[test]
    fn values_of_env_headers_users_and_token_parameters_are_hidden_and_their_keys_shown() {
        // Contract 1.12.
        let server = json!({
            "env": {"A": "s", "B": 1}, "headers": {"X": "s"}, "user_auth": {"header": "X", "users": {"ann": "s"}},
            "oauth": {"token_url": "u", "client_id": "c", "client_secret": "s", "refresh_token": "s",
                      "extra_token_params": {"k": "s"}},
        });
        let expected = json!({
            "env": {"A": "***", "B": "***"}, "headers": {"X": "***"},
            "user_auth": {"header": "X", "users": {"ann": "***"}},
            "oauth": {"token_url": "u", "client_id": "c", "client_secret": null, "refresh_token": null,
                      "extra_token_params": {"k": "***"}},
        });
        assert_eq!(shown(server), expected);
    }

    #[test]
    fn extras_are_hidden_by_the_shape_of_their_keys_at_any_depth() {
        // Contract 1.12.
        let server = json!({
            "refreshToken": "s", "customFlag": "c", "password": {"deep": "s"}, "list": [{"api_key": "s", "n": 1}, "c"],
            "oauth": {"x": {"secret": "s"}}, "user_auth": {"token": "s"}, "headers_from_context": {"bearer": "s"},
            "tools": {"t": {"routing": {}, "credential": "s", "note": "c"}},
        });
        let expected = json!({
            "refreshToken": "***", "customFlag": "c", "password": "***", "list": [{"api_key": "***", "n": 1}, "c"],
            "oauth": {"x": {"secret": "***"}}, "user_auth": {"token": "***"},
            "headers_from_context": {"bearer": "***"},
            "tools": {"t": {"routing": {}, "credential": "***", "note": "c"}},
        });
        assert_eq!(shown(server), expected);
    }

    #[test]
    fn what_is_no_secret_is_clear() {
        // Contract 1.12.
        let server = json!({
            "url": "http://h?k=1", "args": ["--token", "t"], "command": "x", "cwd": "/w", "description": "d",
            "headers_from_context": {"headers": {"Authorization": "token"}}, "task_toolsets": [{"name": "n"}],
            "env": null, "oauth": null, "user_auth": null,
        });
        assert_eq!(shown(server.clone()), server);
    }

    #[test]
    fn a_part_of_a_wrong_kind_is_hidden_whole() {
        let server =
            json!({"env": "s", "headers": ["s"], "oauth": "s", "tools": {"t": "s"}, "user_auth": {"users": "s"}});
        assert_eq!(
            shown(server),
            json!({"env": "***", "headers": "***", "oauth": "***", "tools": {"t": "***"}, "user_auth": {"users": "***"}})
        );
    }

    #[test]
    fn a_mask_that_is_left_is_found_where_a_secret_belongs_and_nowhere_else() {
        // Contract 1.13.
        for (server, left) in [
            (json!({"env": {"A": "***"}}), Some("env.A")),
            (json!({"oauth": {"client_secret": "***"}}), Some("oauth.client_secret")),
            (json!({"x": [{"token": "***"}]}), Some("x[0].token")),
            (json!({"tools": {"t": {"secret": ["***"]}}}), Some("tools.t.secret")),
            (json!({"headers": "***"}), Some("headers")),
            (json!({"args": ["***"], "customFlag": "***", "x": ["***"], "description": "***"}), None),
        ] {
            assert_eq!(mask_left(&server, &SERVER, "").as_deref(), left, "{server}");
        }
    }
}
