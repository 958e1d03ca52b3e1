//! Servers as a caller writes them, by whichever door: a map from name to object, in its order.
//!
//! Owns the shape only; what stands in an entry is judged with the change. A name that stands twice is refused,
//! because one of the two would be lost without a word.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Servers by name, in the order in which they are written.
pub struct ServersByName(pub Map<String, Value>);

impl<'de> Deserialize<'de> for ServersByName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByName)
    }
}

struct ByName;

impl<'de> Visitor<'de> for ByName {
    type Value = ServersByName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of servers by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<ServersByName, A::Error> {
        let mut servers = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let server: Map<String, Value> = members.next_value()?;
            if servers.insert(name, Value::Object(server)).is_some() {
                return Err(A::Error::custom("a name stands twice, expected each once"));
            }
        }
        Ok(ServersByName(servers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Map<String, Value>, String> {
        serde_json::from_str::<ServersByName>(text).map(|servers| servers.0).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_keep_their_order_and_must_be_objects_of_distinct_names() {
        // Contract 2.2, PUT and POST, 422.
        let servers = read(r#"{"z": {"command": "x"}, "a": {}}"#).unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["z", "a"]);
        for wrong in ["[]", r#"{"a": 1}"#, r#"{"a": null}"#, r#"{"a": {}, "a": {}}"#] {
            assert!(read(wrong).unwrap_err().contains("expected"), "{wrong}");
        }
    }
}
