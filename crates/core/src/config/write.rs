//! The text of a document whose servers changed: JSON with an indent of 2, no byte-order mark (contract 1.11, 2.2).
//!
//! Owns the layout only. What was not changed keeps its text, numbers and inner layout included; the order of keys is
//! kept, and servers stand under `mcpServers` whatever spelling they had. Never fails in practice: everything that is
//! written was read as JSON before.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::stored::{SERVER_MAPS, Stored};

/// A server to write: as it stands, or anew. Without `Debug`: it holds secrets.
pub(super) enum Server<'a> {
    AsStored(&'a RawValue),
    Anew(&'a Value),
}

/// Servers by name, in order.
pub(super) type Servers<'a> = Vec<(&'a str, Server<'a>)>;

/// The document `stored` with its servers replaced by `servers`.
pub(super) fn document(stored: &Stored<'_>, servers: &Servers<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec_pretty(&Document { stored, servers })?;
    text.push(b'\n');
    Ok(text)
}

struct Document<'a> {
    stored: &'a Stored<'a>,
    servers: &'a Servers<'a>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (at, (key, value)) in self.stored.members.iter().enumerate() {
            if self.stored.servers_at == Some(at) {
                map.serialize_entry(SERVER_MAPS[0], &ServerMap(self.servers))?;
            } else {
                map.serialize_entry(key, value)?;
            }
        }
        if self.stored.servers_at.is_none() {
            map.serialize_entry(SERVER_MAPS[0], &ServerMap(self.servers))?;
        }
        map.end()
    }
}

struct ServerMap<'a>(&'a Servers<'a>);

impl Serialize for ServerMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, server)| (name, server)))
    }
}

impl Serialize for Server<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::AsStored(text) => text.serialize(serializer),
            Self::Anew(value) => value.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::config::Source;

    #[test]
    fn everything_but_the_servers_keeps_its_place_and_its_text() {
        // Contract 1.13, other top-level keys.
        let text =
            "\u{feff}{\"n\": 12345678901234567890123, \"mcp_servers\": {\"a\": {\"x\":1.0}}, \"skills\": {\"s\":  {}}}";
        let stored = Stored::read(&Source { file: Path::new("x"), text: text.as_bytes() }).unwrap();
        let anew = json!({"env": {"T": "$T"}, "args": []});
        let servers = vec![("a", Server::AsStored(stored.server("a").unwrap())), ("b", Server::Anew(&anew))];
        let written = String::from_utf8(document(&stored, &servers).unwrap()).unwrap();
        let expected = r#"{
  "n": 12345678901234567890123,
  "mcpServers": {
    "a": {"x":1.0},
    "b": {
      "env": {
        "T": "$T"
      },
      "args": []
    }
  },
  "skills": {"s":  {}}
}
"#;
        assert_eq!(written, expected);
    }

    #[test]
    fn a_document_without_servers_gets_its_map_at_the_end() {
        let stored = Stored::read(&Source { file: Path::new("x"), text: b"{\"z\": 1}" }).unwrap();
        assert_eq!(document(&stored, &Vec::new()).unwrap(), b"{\n  \"z\": 1,\n  \"mcpServers\": {}\n}\n");
        assert_eq!(document(&Stored::default(), &Vec::new()).unwrap(), b"{\n  \"mcpServers\": {}\n}\n");
    }
}
