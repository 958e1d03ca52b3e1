//! What a setting must look like, in words, read from the published schema so that both say the same.

use serde_json::{Number, Value};

use super::schema;

/// What the setting at this dotted path must be, such as `a whole number from 1 to 100000`.
pub(super) fn expected(path: &str) -> String {
    let schema = schema();
    let mut here = schema.as_value();
    for key in path.split('.') {
        here = &here["properties"][key];
    }
    match words_of_special(path) {
        Some(words) => words.to_owned(),
        None => words(here),
    }
}

/// Settings whose text has a form that a schema does not tell.
fn words_of_special(path: &str) -> Option<&'static str> {
    match path {
        "listen" | "grpc.listen" | "cluster.listen" => Some("an address and a port, such as 127.0.0.1:8750"),
        "redis.url" => Some("an address such as redis://host:6379"),
        "cluster.advertise" => Some("the host and port that others reach, such as caribou-0.example:8760"),
        "cluster.secret" => Some("a text of 32 characters or more, without blanks"),
        "database_url" => Some("an address such as postgres://user@host/database or sqlite:/path/caribou.db"),
        "auth.jwt.jwks_url" => Some("an https:// address; http:// only on this machine"),
        "auth.jwt.algorithms" => Some("a list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA"),
        "mcp_tasks.notify.webhook.url" => Some("an http:// or https:// address"),
        "mcp_tasks.notify.webhook.look_up_url" => Some("an http:// or https:// address with {run_id} in it"),
        "mcp_tasks.notify.webhook.secrets" => Some("a list of secrets, each whsec_ and base64"),
        "network.allow_cidrs" => Some("a list of addresses or blocks of them, such as 10.1.0.0/16"),
        "network.proxy" => Some("the address of an HTTP proxy, such as http://proxy.example:3128"),
        "threads.virtual_prefix" => Some("an absolute path without a slash at its end, such as /mnt/user-data"),
        "log.level" => Some("error, warn, info, debug, trace, or directives such as info,caribou_mcp=debug"),
        _ => None,
    }
}

fn words(schema: &Value) -> String {
    let choices = choices(schema);
    if !choices.is_empty() {
        return choices.join(" or ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("integer") => format!("a whole number{}", range(schema)),
        Some("number") => format!("a number{}", range(schema)),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => "a list of texts, none of them empty".to_owned(),
        Some("object") => "a mapping of settings".to_owned(),
        _ => "a text".to_owned(),
    }
}

/// The words an enumeration allows: documented ones are `const` members of `oneOf`.
fn choices(schema: &Value) -> Vec<&str> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    let documented = schema["oneOf"].as_array().into_iter().flatten().map(|choice| &choice["const"]);
    listed.chain(documented).filter_map(Value::as_str).collect()
}

fn range(schema: &Value) -> String {
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(least), Value::Number(most)) => format!(" from {} to {}", short(least), short(most)),
        _ => String::new(),
    }
}

/// `60` rather than `60.0`.
fn short(number: &Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_setting_is_put_in_words() {
        for (path, words) in [
            ("listen", "an address and a port, such as 127.0.0.1:8750"),
            ("data_dir", "a text"),
            ("sessions", "a mapping of settings"),
            ("sessions.max_live", "a whole number from 1 to 100000"),
            ("sessions.max_spawns", "a whole number from 1 to 10000"),
            ("calls.list_wait_seconds", "a number from 0 to 31536000"),
            ("stdio.inherit_env", "a list of texts, none of them empty"),
            ("catalog.discover_at_start", "true or false"),
            ("log.format", "human or json"),
            ("mcp_tasks.per_server", "a whole number from 1 to 64"),
            ("mcp_tasks.polls_per_second", "a whole number from 1 to 100000"),
            ("mcp_tasks.missing_tool", "fail_all or fail_server"),
            ("mcp_tasks.enabled", "true or false"),
        ] {
            assert_eq!(expected(path), words, "{path}");
        }
    }
}
