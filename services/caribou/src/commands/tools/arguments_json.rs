//! A tool's arguments as the command line gives them, turned into JSON text without touching a value.

use anyhow::{Context as _, bail};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::commands::usage::Usage;

/// Arguments written `key=value`, in their order.
struct Pairs(Vec<(String, Box<RawValue>)>);

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// The arguments given as `key=value` or as one JSON object; `None` when there are none at all.
///
/// # Errors
/// When a pair lacks its `=`, a key stands twice, or the object is none.
pub(in crate::commands) fn arguments(pairs: &[String], whole: Option<&str>) -> anyhow::Result<Option<Box<RawValue>>> {
    if let Some(text) = whole {
        return object(text).map(Some);
    }
    if pairs.is_empty() {
        return Ok(None);
    }
    let mut parsed: Vec<(String, Box<RawValue>)> = Vec::new();
    for pair in pairs {
        let (key, value) = pair.split_once('=').context(Usage("write --arg as key=value"))?;
        if parsed.iter().any(|(known, _)| known == key) {
            bail!(Usage("an argument is given twice"));
        }
        parsed.push((key.to_owned(), json_or_text(value)?));
    }
    Ok(Some(serde_json::value::to_raw_value(&Pairs(parsed))?))
}

fn object(text: &str) -> anyhow::Result<Box<RawValue>> {
    let raw: Box<RawValue> = serde_json::from_str(text).context(Usage("--args-json is not JSON"))?;
    if !raw.get().starts_with('{') {
        bail!(Usage("--args-json is not a JSON object"));
    }
    Ok(raw)
}

/// `2`, `true` and `[1]` mean themselves; `hello` means the text.
fn json_or_text(value: &str) -> serde_json::Result<Box<RawValue>> {
    match serde_json::from_str(value) {
        Ok(json) => Ok(json),
        Err(_) => serde_json::value::to_raw_value(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(pairs: &[&str]) -> Option<String> {
        let pairs: Vec<_> = pairs.iter().map(|&pair| pair.to_owned()).collect();
        arguments(&pairs, None).unwrap().map(|raw| raw.get().to_owned())
    }

    #[test]
    fn a_value_is_json_if_it_is_json_and_text_otherwise() {
        let pairs = ["z=9223372036854775809", "a=1.0", "t=hello there", "e=", "o={\"b\": [1]}", "eq=a=b"];
        let text = r#"{"z":9223372036854775809,"a":1.0,"t":"hello there","e":"","o":{"b": [1]},"eq":"a=b"}"#;
        assert_eq!(composed(&pairs).as_deref(), Some(text));
        assert_eq!(composed(&[]), None);
    }

    #[test]
    fn an_object_is_taken_as_it_is_written() {
        let text = r#"{ "b": 1.0, "a": 2 }"#;
        assert_eq!(arguments(&[], Some(text)).unwrap().unwrap().get(), text);
        for wrong in ["[1]", "{", "3"] {
            arguments(&[], Some(wrong)).unwrap_err();
        }
    }

    #[test]
    fn a_pair_without_its_sign_or_given_twice_is_refused() {
        arguments(&["a".to_owned()], None).unwrap_err();
        arguments(&["a=1".to_owned(), "a=2".to_owned()], None).unwrap_err();
    }
}
