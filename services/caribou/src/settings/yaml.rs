//! A YAML document as a tree that knows where each of its parts stands.
//!
//! serde-saphyr is the authority for syntax, duplicate keys and limits; what a key means is decided by the layers.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    fn of(location: serde_saphyr::Location) -> Self {
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Self { line: number(location.line()), column: number(location.column()) }
    }
}

/// One key of a document that holds no further keys: its dotted path, its value, and where it stands.
#[derive(Debug, PartialEq)]
pub(super) struct Leaf {
    pub(super) path: String,
    pub(super) value: Value,
    pub(super) place: Place,
}

/// Why a text is no YAML document. Holds nothing of the text.
#[derive(Debug)]
pub(super) struct NotYaml {
    pub(super) what: String,
    pub(super) place: Option<Place>,
}

/// The leaves of a document in its order. An empty document has none; an empty mapping is a leaf of its own.
pub(super) fn leaves(text: &str) -> Result<Vec<Leaf>, NotYaml> {
    let root: Option<Spanned<Node>> = serde_saphyr::from_str(text).map_err(|error| NotYaml {
        what: wording(error.without_snippet()).to_owned(),
        place: error.location().map(Place::of),
    })?;
    let mut leaves = Vec::new();
    if let Some(root) = root {
        collect(String::new(), root, &mut leaves);
    }
    Ok(leaves)
}

/// What is wrong, without the text the parser would quote.
fn wording(error: &serde_saphyr::Error) -> &'static str {
    match error {
        serde_saphyr::Error::DuplicateMappingKey { .. } => "a key is written twice in one mapping",
        serde_saphyr::Error::MultipleDocuments { .. } => "the file holds more than one YAML document",
        serde_saphyr::Error::Eof { .. } => "the document ends too early",
        _ => "this is not valid YAML",
    }
}

fn collect(path: String, node: Spanned<Node>, leaves: &mut Vec<Leaf>) {
    let place = Place::of(node.referenced);
    match node.value {
        Node::Mapping(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                collect(path, value, leaves);
            }
        }
        node => leaves.push(Leaf { path, value: node.into_value(), place }),
    }
}

#[derive(Debug)]
enum Node {
    Scalar(Value),
    Sequence(Vec<Spanned<Node>>),
    Mapping(Vec<(String, Spanned<Node>)>),
}

impl Node {
    fn into_value(self) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::Sequence(items) => items.into_iter().map(|item| item.value.into_value()).collect(),
            Self::Mapping(entries) => entries.into_iter().map(|(key, item)| (key, item.value.into_value())).collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Node::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = mapping.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_leaf_knows_its_path_and_place() {
        let found = leaves("listen: 127.0.0.1:1\nsessions:\n  max_live: 4\nstdio: {inherit_env: [A, B]}\n").unwrap();
        let expected = [
            ("listen", json!("127.0.0.1:1"), (1, 9)),
            ("sessions.max_live", json!(4), (3, 13)),
            ("stdio.inherit_env", json!(["A", "B"]), (4, 22)),
        ]
        .map(|(path, value, (line, column))| Leaf {
            path: path.to_owned(),
            value,
            place: Place { line, column },
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn an_empty_document_has_no_leaves() {
        for text in ["", "# nothing\n", "---\n"] {
            assert_eq!(leaves(text).unwrap(), [], "{text:?}");
        }
    }

    #[test]
    fn a_broken_document_is_refused_with_its_place_and_without_its_text() {
        let twice = leaves("a: hunter2\na: 2\n").unwrap_err();
        assert_eq!(
            (twice.what.as_str(), twice.place.map(|p| p.line)),
            ("a key is written twice in one mapping", Some(2))
        );
        let broken = leaves("a: [hunter2\n").unwrap_err();
        assert!(broken.place.is_some() && !broken.what.contains("hunter2"), "{broken:?}");
    }
}
