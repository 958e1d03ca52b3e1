//! JSON of a task without what means nothing: blanks between tokens, and for comparing the order of members.
//!
//! Numbers and strings stay as they were written, so that nothing is lost of a number that no float can hold.

use serde_json::value::RawValue;

use crate::raw::{self, Members};

/// How deep members are put in order; what lies deeper is compared as it was written, so that a document nested a
/// thousand levels deep is not read a thousand times.
const SORTED_DEPTH: usize = 16;

/// The same JSON without blanks between its tokens.
pub(super) fn compact(raw: &RawValue) -> String {
    let mut text = String::with_capacity(raw.get().len());
    let (mut in_string, mut escaped) = (false, false);
    for character in raw.get().chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            in_string = character == '"';
        }
        text.push(character);
    }
    text
}

/// Compact JSON with the members of every object by name: equal for documents that mean the same.
pub(super) fn sorted(raw: &RawValue) -> String {
    let mut text = String::new();
    write_sorted(raw, SORTED_DEPTH, &mut text);
    text
}

fn write_sorted(raw: &RawValue, depth: usize, text: &mut String) {
    let next = if depth == 0 { None } else { Members::of(raw) };
    if let Some(Members(mut members)) = next {
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        text.push('{');
        for (at, (name, value)) in members.iter().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            text.push_str(&serde_json::Value::from(name.as_ref()).to_string());
            text.push(':');
            write_sorted(value, depth - 1, text);
        }
        text.push('}');
    } else if let Some(elements) = if depth == 0 { None } else { raw::elements(raw) } {
        text.push('[');
        for (at, element) in elements.into_iter().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            write_sorted(element, depth - 1, text);
        }
        text.push(']');
    } else {
        text.push_str(&compact(raw));
    }
}

/// The first `most` characters, without the one that PostgreSQL cannot store.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).map(|character| if character == '\0' { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn blanks_vanish_between_tokens_only() {
        let text = raw("{ \"a b\" :\n[ 1.0 ,\t\"x \\\" \\\\\" , \" \" ] }");
        assert_eq!(compact(&text), r#"{"a b":[1.0,"x \" \\"," "]}"#);
    }

    #[test]
    fn members_in_another_order_mean_the_same_and_numbers_stay() {
        let one = sorted(&raw(r#"{"b":[{"y":1.0,"x":9223372036854775809123}],"a":"\u00e9"}"#));
        let other = sorted(&raw(r#"{ "a":"\u00e9", "b":[{"x":9223372036854775809123,"y":1.0}]}"#));
        assert_eq!(one, other);
        assert_eq!(one, r#"{"a":"\u00e9","b":[{"x":9223372036854775809123,"y":1.0}]}"#);
    }

    #[test]
    fn what_is_nested_deep_is_left_as_it_is() {
        let deep = raw(&format!("{}{{\"b\":1,\"a\":2}}{}", "[".repeat(5_000), "]".repeat(5_000)));
        assert_eq!(sorted(&deep), deep.get());
    }

    #[test]
    fn a_cut_text_has_whole_characters_and_no_nul() {
        assert_eq!(cut("a\0é€", 3), "a\u{fffd}é");
    }
}
