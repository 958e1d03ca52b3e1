//! Fields of a server as the command line gives them: `KEY=VALUE`, a key being a path of names joined by dots.

use anyhow::Context as _;
use serde_json::{Map, Value};

use crate::commands::usage::Usage;

/// Lays fields over `server`, one after the other. A value that is JSON means itself, any other is a text; objects on
/// the way to a key are made.
///
/// # Errors
/// When a field lacks its `=`, or its key leads through what is no object.
pub(super) fn lay(server: &mut Map<String, Value>, fields: &[String]) -> anyhow::Result<()> {
    for field in fields {
        let (key, text) = field.split_once('=').context(Usage("write a field as KEY=VALUE"))?;
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        *slot(server, key)? = value;
    }
    Ok(())
}

fn slot<'s>(server: &'s mut Map<String, Value>, key: &str) -> anyhow::Result<&'s mut Value> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let value = server.entry(first).or_insert(Value::Null);
    let Some(rest) = rest else { return Ok(value) };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    slot(value.as_object_mut().context(Usage("a key leads through a field that holds no others"))?, rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn laid(server: Value, fields: &[&str]) -> anyhow::Result<Value> {
        let mut server = server.as_object().unwrap().clone();
        let fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
        lay(&mut server, &fields).map(|()| Value::Object(server))
    }

    #[test]
    fn a_value_is_json_if_it_is_json_and_a_key_makes_its_way() {
        let fields =
            ["command=npx", r#"args=["-y", "x"]"#, "env.TOKEN=$TOKEN", "routing.priority=5", "description=a=b"];
        let expected = json!({"env": {"A": "***", "TOKEN": "$TOKEN"}, "command": "npx", "args": ["-y", "x"],
            "routing": {"priority": 5}, "description": "a=b"});
        assert_eq!(laid(json!({"env": {"A": "***"}, "routing": null}), &fields).unwrap(), expected);
    }

    #[test]
    fn what_is_no_field_is_refused_without_repeating_it() {
        for wrong in ["hunter2", "command.hunter2=x"] {
            let error = laid(json!({"command": "x"}), &[wrong]).unwrap_err();
            assert!(error.is::<Usage>() && !format!("{error:#}").contains("hunter2"), "{error:#}");
        }
    }
}
