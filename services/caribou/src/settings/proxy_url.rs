//! The address of a proxy, which may hold a password: it is checked when it is read, and never printed (invariant O3).

use std::borrow::Cow;

use caribou_core::config::Secret;
use caribou_core::masker::MASK;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An address that requests can be sent through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl(Secret);

impl ProxyUrl {
    /// The address, for the one place that connects to it.
    pub fn address(&self) -> &Secret {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ProxyUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match caribou_egress::proxy_address(&text) {
            Some(_) => Ok(Self(Secret::new(text))),
            None => Err(serde::de::Error::custom("not the address of a proxy")),
        }
    }
}

impl Serialize for ProxyUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl JsonSchema for ProxyUrl {
    fn schema_name() -> Cow<'static, str> {
        "ProxyUrl".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_address_is_printed_or_written() {
        // Invariant O3.
        let url: ProxyUrl = serde_json::from_str(r#""http://ann:hunter2@proxy:3128""#).unwrap();
        assert_eq!(format!("{url:?} {}", serde_json::to_string(&url).unwrap()), r#"ProxyUrl(***) "***""#);
        let wrong = serde_json::from_str::<ProxyUrl>(r#""socks5://ann:hunter2@proxy""#).unwrap_err();
        assert!(!wrong.to_string().contains("hunter2"), "{wrong}");
    }
}
