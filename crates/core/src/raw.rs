//! Looking into raw JSON without changing it: an object's members, in order, each still raw.
//!
//! Never recursive: a schema nested thousands of levels deep is split at its first level only.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The members of one object, in document order, doubles included.
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of `raw`, or `None` when it is not an object.
    pub fn of(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// The last member of that name: what a JSON reader would take.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(member, _)| member == name).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// A string, borrowed where it holds no escape.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;

        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Borrowing)
    }
}

/// The string that `raw` is, or `None` when it is none.
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// The elements of an array, each still raw, or `None` when `raw` is none.
pub fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    struct InOrder;

    impl<'de> Visitor<'de> for InOrder {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = seq.next_element()? {
                elements.push(element);
            }
            Ok(elements)
        }
    }

    serde_json::Deserializer::from_str(raw.get()).deserialize_seq(InOrder).ok()
}

/// Writes members back as an object; every value stays as it was.
pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a RawValue)>) -> String {
    let mut text = String::from("{");
    for (name, value) in members {
        if text.len() > 1 {
            text.push(',');
        }
        push_member(&mut text, name, value.get());
    }
    text.push('}');
    text
}

/// Writes one member behind what is there: its name, a colon, and its value, which is JSON text.
pub fn push_member(text: &mut String, name: &str, value: &str) {
    // Names hold hardly ever anything that must be escaped.
    if name.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        text.push('"');
        text.push_str(name);
        text.push('"');
    } else {
        text.push_str(&serde_json::Value::from(name).to_string());
    }
    text.push(':');
    text.push_str(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn members_keep_order_numbers_and_doubles() {
        let object = raw(r#"{"b":9223372036854775809,"a":1.0,"b":{"x":null}}"#);
        let members = Members::of(&object).unwrap();
        let names: Vec<&str> = members.0.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(names, ["b", "a", "b"]);
        assert_eq!(members.get("b").unwrap().get(), r#"{"x":null}"#);
        assert_eq!(members.get("a").unwrap().get(), "1.0");
    }

    #[test]
    fn what_is_no_object_has_no_members_and_depth_is_no_matter() {
        assert!(Members::of(&raw("[1]")).is_none());
        let deep = raw(&format!(r#"{{"a":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000)));
        assert_eq!(Members::of(&deep).unwrap().0.len(), 1);
    }

    #[test]
    fn names_are_escaped_where_they_must_be() {
        for name in ["a", "", "s\u{fc}d \u{7f}", "a\"b", "a\\b", "a\nb", "\u{0}", "\u{1f}"] {
            let mut text = String::new();
            push_member(&mut text, name, "1");
            assert_eq!(text, format!("{}:1", serde_json::Value::from(name)));
        }
    }

    #[test]
    fn an_object_is_written_back_as_it_was() {
        let before = raw(r#"{"a":1.0,"b":"\ud800"}"#);
        let members = Members::of(&before).unwrap();
        assert_eq!(object(members.0.iter().map(|(n, v)| (n.as_ref(), *v))), before.get());
    }
}
