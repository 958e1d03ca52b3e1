//! The address of the database, which may hold a password: it is checked when it is read, and never printed
//! (invariant O3).

use std::borrow::Cow;
use std::fmt;

use caribou_core::masker::MASK;
use caribou_store::Location;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An address that the store understands.
#[derive(Clone)]
pub struct DatabaseUrl {
    text: String,
    location: Location,
}

impl DatabaseUrl {
    /// Where that is.
    pub fn location(&self) -> &Location {
        &self.location
    }
}

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let location = Location::parse(&text).map_err(serde::de::Error::custom)?;
        Ok(Self { text, location })
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl PartialEq for DatabaseUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl JsonSchema for DatabaseUrl {
    fn schema_name() -> Cow<'static, str> {
        "DatabaseUrl".into()
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
        let url: DatabaseUrl = serde_json::from_str(r#""postgres://ann:hunter2@db/caribou""#).unwrap();
        assert_eq!(format!("{url:?} {}", serde_json::to_string(&url).unwrap()), r#"*** "***""#);
        let wrong = serde_json::from_str::<DatabaseUrl>(r#""mysql://ann:hunter2@db/caribou""#).unwrap_err();
        assert!(!wrong.to_string().contains("hunter2"), "{wrong}");
    }
}
