//! The fields of a server entry that are always written out, with their defaults (contract 1.2, 1.5 to 1.7).
//!
//! Owns what GET shows and PUT stores for a field nobody wrote. Works on the entry as it stands in the file,
//! references unresolved, and never changes a value that is there, right or wrong: judging is the readers'. Our own
//! fields and keys of others are kept behind the known ones. What is filled in means the same as leaving it out, so
//! the overrides in `tools` are left as written: there an absent field falls back to the server's (contract 1.3).

use serde_json::{Map, Value, json};

/// The fields of contract 1.2, in its order; every other key of an entry is an extra.
pub(super) const SERVER_FIELDS: [&str; 18] = [
    "enabled",
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "oauth",
    "user_auth",
    "headers_from_context",
    "description",
    "routing",
    "tools",
    "tool_name_prefix",
    "tool_call_timeout",
    "session_init_timeout",
    "task_toolsets",
];

/// The entry with every field written out.
pub(super) fn filled(server: &Map<String, Value>) -> Map<String, Value> {
    let mut filled = over(server_defaults(transport_word(server)), server);
    for (key, defaults) in [
        ("routing", routing_defaults as fn() -> Value),
        ("oauth", oauth_defaults),
        ("user_auth", user_auth_defaults),
        ("headers_from_context", headers_from_context_defaults),
    ] {
        if let Some(Value::Object(written)) = filled.get(key) {
            let written = over(defaults(), written);
            filled.insert(key.to_owned(), Value::Object(written));
        }
    }
    filled
}

/// `defaults` with what is written laid over them; further keys follow in their own order.
fn over(defaults: Value, written: &Map<String, Value>) -> Map<String, Value> {
    let Value::Object(mut fields) = defaults else { return written.clone() };
    for (key, value) in written {
        let promoted = key == "type" && is_empty(value) && fields.contains_key("type");
        if !promoted {
            fields.insert(key.clone(), value.clone());
        }
    }
    fields
}

/// What `type` means when it is missing or empty: its alias `transport`, else http for a lone url, else stdio.
fn transport_word(server: &Map<String, Value>) -> Value {
    let set = |key: &str| server.get(key).is_some_and(|value| !value.is_null());
    match server.get("transport").filter(|transport| !is_empty(transport)) {
        Some(transport) => transport.clone(),
        None if set("url") && !set("command") => json!("http"),
        None => json!("stdio"),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn server_defaults(transport: Value) -> Value {
    json!({
        "enabled": true,
        "type": transport,
        "command": null,
        "args": [],
        "env": {},
        "cwd": null,
        "url": null,
        "headers": {},
        "oauth": null,
        "user_auth": null,
        "headers_from_context": null,
        "description": "",
        "routing": routing_defaults(),
        "tools": {},
        "tool_name_prefix": true,
        "tool_call_timeout": null,
        "session_init_timeout": 60.0,
        "task_toolsets": [],
    })
}

fn routing_defaults() -> Value {
    json!({"mode": "off", "priority": 0, "keywords": []})
}

fn oauth_defaults() -> Value {
    json!({
        "enabled": true,
        "token_url": "",
        "grant_type": "client_credentials",
        "client_id": null,
        "client_secret": null,
        "refresh_token": null,
        "scope": null,
        "audience": null,
        "token_field": "access_token",
        "token_type_field": "token_type",
        "expires_in_field": "expires_in",
        "default_token_type": "Bearer",
        "refresh_skew_seconds": 60,
        "extra_token_params": {},
    })
}

fn user_auth_defaults() -> Value {
    json!({"enabled": true, "header": "Authorization", "users": {}, "on_missing": "deny"})
}

fn headers_from_context_defaults() -> Value {
    json!({"enabled": true, "headers": {}, "on_missing": "deny"})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_from(server: Value) -> Value {
        Value::Object(filled(server.as_object().unwrap()))
    }

    #[test]
    fn every_field_of_the_contract_is_there_in_its_order_and_extras_follow() {
        // Contract 2.2.
        let filled = filled_from(json!({"icon": "i", "transport": "sse", "url": "http://h"}));
        let keys: Vec<&str> = filled.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: Vec<&str> = SERVER_FIELDS.into_iter().chain(["icon", "transport"]).collect();
        assert_eq!(keys, expected);
        assert_eq!(filled["session_init_timeout"].to_string(), "60.0");
        assert_eq!((&filled["type"], &filled["transport"]), (&json!("sse"), &json!("sse")));
    }

    #[test]
    fn a_missing_or_empty_type_is_its_alias_or_what_the_fields_mean() {
        // Contract 1.2, `transport`.
        for (server, word) in [
            (json!({}), json!("stdio")),
            (json!({"type": "", "transport": "http"}), json!("http")),
            (json!({"type": null, "transport": "$T"}), json!("$T")),
            (json!({"type": "sse", "transport": "http"}), json!("sse")),
            (json!({"type": 1}), json!(1)),
            (json!({"url": "http://h"}), json!("http")),
            (json!({"url": "http://h", "command": "x"}), json!("stdio")),
            (json!({"url": null}), json!("stdio")),
        ] {
            assert_eq!(filled_from(server.clone())["type"], word, "{server}");
        }
    }

    #[test]
    fn parts_that_are_written_are_filled_and_overrides_of_tools_are_not() {
        // Contract 1.3, 1.5 to 1.7.
        let filled = filled_from(json!({
            "oauth": {"token_url": "https://t", "x": 1}, "user_auth": {"enabled": false}, "headers_from_context": {},
            "routing": {"priority": 3}, "tools": {"t": {"routing": {"priority": 1}}},
        }));
        assert_eq!(filled["oauth"]["refresh_skew_seconds"], 60);
        assert_eq!(filled["oauth"]["x"], 1);
        assert_eq!(
            filled["user_auth"],
            json!({"enabled": false, "header": "Authorization", "users": {}, "on_missing": "deny"})
        );
        assert_eq!(filled["routing"], json!({"mode": "off", "priority": 3, "keywords": []}));
        assert_eq!(filled["tools"], json!({"t": {"routing": {"priority": 1}}}));
        assert_eq!(filled_from(json!({}))["oauth"], Value::Null);
    }

    #[test]
    fn wrong_values_are_left_as_they_are() {
        let wrong = json!({"args": null, "env": "x", "oauth": [], "routing": null, "enabled": "yes"});
        let filled = filled_from(wrong.clone());
        for (key, value) in wrong.as_object().unwrap() {
            assert_eq!(&filled[key], value, "{key}");
        }
    }
}
