//! Whether an answer has the form that a question asks for: the part of JSON Schema that such forms are made of (mcp.md
//! §8: flat forms of strings, numbers, booleans and choices; a toolset's own question may nest them).
//!
//! What a form says beyond that part, or by reference, is the remote's to check: no answer is refused for a keyword that
//! is not understood. Refusals name the place and what is wrong there, never a value. A form comes from a server, so the
//! work is bounded: by the depth of JSON that is read at all, by the size of patterns, and by a number of steps, after
//! which the rest is the remote's too (invariant B1).

mod format;

use std::fmt::Write as _;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use self::format::has_format;

/// Steps of one check: more than any form that a person fills in.
const STEPS: u32 = 50_000;

/// What one pattern costs of them: it is compiled where it is met.
const PATTERN_STEPS: u32 = 500;

/// The largest program of a pattern, in bytes.
const PATTERN_BYTES: usize = 256 * 1024;

/// The longest place that is told, in characters: names in it are the server's.
const PLACE_CHARS: usize = 200;

/// Whether `answer` has the form `schema`.
///
/// # Errors
/// What is wrong, and where.
pub(super) fn fits(schema: &Value, answer: &Value) -> Result<(), String> {
    Check { left: STEPS, place: String::new() }.value(schema, answer)
}

/// One check on its way through an answer.
struct Check {
    left: u32,
    /// Where it is: `a.b[2]`; empty = at the whole answer.
    place: String,
}

type Verdict = Result<(), String>;

impl Check {
    fn value(&mut self, schema: &Value, value: &Value) -> Verdict {
        // `true`, or no schema at all.
        let Some(form) = schema.as_object() else {
            return if *schema == Value::Bool(false) { self.wrong("is not asked for") } else { Ok(()) };
        };
        if !self.goes_on(1) || form.contains_key("$ref") {
            return Ok(());
        }
        self.kind(form, value)?;
        self.choice(form, value)?;
        match value {
            Value::String(text) => self.text(form, text)?,
            Value::Number(number) => self.number(form, number.as_f64().unwrap_or_default())?,
            Value::Array(items) => self.items(form, items)?,
            Value::Object(members) => self.members(form, members)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.parts(form, value)
    }

    /// Takes so many steps; false = there are none left.
    fn goes_on(&mut self, steps: u32) -> bool {
        let is_enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        is_enough
    }

    fn wrong(&self, what: &str) -> Verdict {
        let place: String = self.place.chars().take(PLACE_CHARS).collect();
        Err(if place.is_empty() { format!("the answer {what}") } else { format!("`{place}` in the answer {what}") })
    }

    fn within(&mut self, part: &str, check: impl FnOnce(&mut Self) -> Verdict) -> Verdict {
        let length = self.place.len();
        self.place.push_str(if length > 0 && !part.starts_with('[') { "." } else { "" });
        self.place.push_str(part);
        let verdict = check(self);
        self.place.truncate(length);
        verdict
    }

    fn kind(&self, form: &Map<String, Value>, value: &Value) -> Verdict {
        let kinds: Vec<&str> = match form.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        if kinds.is_empty() || kinds.iter().any(|kind| is(value, kind)) {
            return Ok(());
        }
        self.wrong(&format!("is no {}", kinds.join(" or ").chars().take(PLACE_CHARS).collect::<String>()))
    }

    fn choice(&mut self, form: &Map<String, Value>, value: &Value) -> Verdict {
        let chosen = match form.get("enum") {
            Some(Value::Array(choices)) if self.goes_on(u32::try_from(choices.len()).unwrap_or(u32::MAX)) => {
                choices.iter().any(|choice| equal(choice, value))
            }
            _ => true,
        };
        let chosen = chosen && form.get("const").is_none_or(|only| equal(only, value));
        if chosen { Ok(()) } else { self.wrong("is none of the choices") }
    }

    fn text(&mut self, form: &Map<String, Value>, text: &str) -> Verdict {
        let length = text.chars().count();
        if let Some(least) = count(form, "minLength").filter(|least| length < *least) {
            return self.wrong(&format!("has fewer than {least} characters"));
        }
        if let Some(most) = count(form, "maxLength").filter(|most| length > *most) {
            return self.wrong(&format!("has more than {most} characters"));
        }
        if let Some(pattern) = form.get("pattern").and_then(Value::as_str)
            && self.goes_on(PATTERN_STEPS)
            && let Ok(pattern) = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build()
            && !pattern.is_match(text)
        {
            return self.wrong("does not have the form of its `pattern`");
        }
        match form.get("format").and_then(Value::as_str) {
            Some(format @ ("email" | "uri" | "date" | "date-time")) if !has_format(format, text) => {
                self.wrong(&format!("is no {format}"))
            }
            _ => Ok(()),
        }
    }

    fn number(&self, form: &Map<String, Value>, number: f64) -> Verdict {
        let bound = |name: &str| form.get(name).and_then(Value::as_f64);
        if let Some(least) = bound("minimum").filter(|least| number < *least) {
            return self.wrong(&format!("is less than {least}"));
        }
        if let Some(most) = bound("maximum").filter(|most| number > *most) {
            return self.wrong(&format!("is more than {most}"));
        }
        if let Some(above) = bound("exclusiveMinimum").filter(|above| number <= *above) {
            return self.wrong(&format!("is not more than {above}"));
        }
        if let Some(below) = bound("exclusiveMaximum").filter(|below| number >= *below) {
            return self.wrong(&format!("is not less than {below}"));
        }
        Ok(())
    }

    fn items(&mut self, form: &Map<String, Value>, items: &[Value]) -> Verdict {
        if let Some(least) = count(form, "minItems").filter(|least| items.len() < *least) {
            return self.wrong(&format!("has fewer than {least} items"));
        }
        if let Some(most) = count(form, "maxItems").filter(|most| items.len() > *most) {
            return self.wrong(&format!("has more than {most} items"));
        }
        if form.get("uniqueItems") == Some(&Value::Bool(true)) {
            for (at, item) in items.iter().enumerate() {
                if self.goes_on(u32::try_from(at).unwrap_or(u32::MAX)) && items[..at].iter().any(|one| equal(one, item))
                {
                    return self.wrong("has an item twice");
                }
            }
        }
        let Some(each) = form.get("items") else { return Ok(()) };
        for (at, item) in items.iter().enumerate() {
            let mut part = String::new();
            // Writing into a string never fails.
            let _ = write!(part, "[{at}]");
            self.within(&part, |check| check.value(each, item))?;
        }
        Ok(())
    }

    fn members(&mut self, form: &Map<String, Value>, members: &Map<String, Value>) -> Verdict {
        for name in form.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                let mut place = self.place.clone();
                place.push_str(if place.is_empty() { "" } else { "." });
                let place: String = place.chars().chain(name.chars()).take(PLACE_CHARS).collect();
                return Err(format!("`{place}` is missing in the answer"));
            }
        }
        let named = form.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            match named.and_then(|named| named.get(name)) {
                Some(form) => self.within(name, |check| check.value(form, value))?,
                // Names that a pattern stands for are the remote's to check.
                None if form.contains_key("patternProperties") => {}
                None => {
                    if let Some(others) = form.get("additionalProperties") {
                        self.within(name, |check| check.value(others, value))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// `allOf`, `anyOf`, `oneOf`: how titled choices are written.
    fn parts(&mut self, form: &Map<String, Value>, value: &Value) -> Verdict {
        for part in form.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.value(part, value)?;
        }
        for (name, is_only) in [("anyOf", false), ("oneOf", true)] {
            let Some(parts) = form.get(name).and_then(Value::as_array).filter(|parts| !parts.is_empty()) else {
                continue;
            };
            let fitting = parts.iter().filter(|part| self.value(part, value).is_ok()).count();
            // What could not be followed to its end fits, so that it may fit more than once.
            if fitting == 0 || (is_only && fitting > 1 && self.left > 0) {
                return self.wrong("is none of the choices");
            }
        }
        Ok(())
    }
}

fn count(form: &Map<String, Value>, name: &str) -> Option<usize> {
    form.get(name).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}

/// Whether two values are one: numbers by what they are, not by how they are written.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

/// Whether a value is of this kind; of an unknown kind is everything.
fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: Value, answer: Value) -> Option<String> {
        fits(&schema, &answer).err()
    }

    #[test]
    fn each_keyword_of_a_form_is_checked_and_names_its_place() {
        // mcp.md §8, elicitation: the requested schema.
        let asked = |form: Value| json!({ "type": "object", "properties": { "a": form } });
        for (form, right, wrong, what) in [
            (json!({ "type": "string" }), json!("x"), json!(1), "is no string"),
            (json!({ "type": "integer" }), json!(3.0), json!(3.5), "is no integer"),
            (json!({ "type": ["number", "null"] }), json!(null), json!("1"), "is no number or null"),
            (json!({ "minLength": 2 }), json!("éé"), json!("é"), "has fewer than 2 characters"),
            (json!({ "maxLength": 1 }), json!("é"), json!("ab"), "has more than 1 characters"),
            (json!({ "pattern": "^[a-c]+$" }), json!("abc"), json!("abd"), "does not have the form of its `pattern`"),
            (json!({ "format": "email" }), json!("a@b.c"), json!("a b@c"), "is no email"),
            (json!({ "format": "uri" }), json!("https://a/b"), json!("a/b"), "is no uri"),
            (json!({ "format": "date" }), json!("2028-02-29"), json!("2026-02-29"), "is no date"),
            (
                json!({ "format": "date-time" }),
                json!("2026-01-31T10:00:00.5+02:00"),
                json!("2026-01-31"),
                "is no date-time",
            ),
            (json!({ "minimum": 1 }), json!(1), json!(0), "is less than 1"),
            (json!({ "maximum": 1.5 }), json!(1.5), json!(2), "is more than 1.5"),
            (json!({ "exclusiveMinimum": 0 }), json!(0.1), json!(0), "is not more than 0"),
            (json!({ "exclusiveMaximum": 9 }), json!(8), json!(9), "is not less than 9"),
            (json!({ "enum": ["red", 1] }), json!(1.0), json!("blue"), "is none of the choices"),
            (json!({ "const": true }), json!(true), json!(false), "is none of the choices"),
            (
                json!({ "oneOf": [{ "const": "r" }, { "const": "g" }] }),
                json!("g"),
                json!("b"),
                "is none of the choices",
            ),
            (json!({ "anyOf": [{ "type": "null" }, { "minimum": 5 }] }), json!(6), json!(4), "is none of the choices"),
            (json!({ "allOf": [{ "minimum": 1 }, { "maximum": 2 }] }), json!(2), json!(3), "is more than 2"),
            (json!({ "minItems": 1 }), json!([0]), json!([]), "has fewer than 1 items"),
            (json!({ "maxItems": 1 }), json!([0]), json!([0, 1]), "has more than 1 items"),
            (json!({ "uniqueItems": true }), json!([1, 2]), json!([1, 2, 1.0]), "has an item twice"),
        ] {
            assert_eq!(told(asked(form.clone()), json!({ "a": right })), None, "{form}");
            let expected = format!("`a` in the answer {what}");
            assert_eq!(told(asked(form.clone()), json!({ "a": wrong })), Some(expected), "{form}");
        }
    }

    #[test]
    fn places_lead_to_what_is_wrong_and_no_value_is_repeated() {
        // Invariant O3.
        let schema = json!({ "type": "object", "required": ["who"], "additionalProperties": false, "properties": {
            "who": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" },
                "tags": { "items": { "enum": ["a"] } } } } } });
        for (answer, what) in [
            (json!([]), "the answer is no object"),
            (json!({}), "`who` is missing in the answer"),
            (json!({ "who": {} }), "`who.name` is missing in the answer"),
            (json!({ "who": { "name": 8812 } }), "`who.name` in the answer is no string"),
            (
                json!({ "who": { "name": "n", "tags": ["a", "8812"] } }),
                "`who.tags[1]` in the answer is none of the choices",
            ),
            (json!({ "who": { "name": "n" }, "more": 8812 }), "`more` in the answer is not asked for"),
        ] {
            assert_eq!(told(schema.clone(), answer), Some(what.to_owned()));
        }
    }

    #[test]
    fn what_is_not_understood_is_the_remotes_to_check() {
        for schema in [
            json!({ "$ref": "#/$defs/x", "type": "string" }),
            json!({ "type": "date" }),
            json!({ "pattern": "(?=lookahead)", "if": { "type": "string" }, "then": false }),
            json!({ "patternProperties": { "^x": {} }, "additionalProperties": false }),
            json!({ "minLength": "two", "enum": 1, "required": [7], "properties": 3 }),
            json!(true),
            json!("no schema"),
        ] {
            assert_eq!(told(schema.clone(), json!({ "a": 1 })), None, "{schema}");
        }
    }

    #[test]
    fn a_form_that_would_take_for_ever_is_given_up_in_the_answers_favour() {
        // Invariant B1.
        let parts: Vec<Value> = (0..2_000).map(|_| json!({ "anyOf": [{ "type": "string" }] })).collect();
        let schema = json!({ "items": { "anyOf": parts } });
        let answer: Value = (0..10_000).collect::<Vec<u32>>().into();
        assert_eq!(told(schema, answer.clone()), Some("`[0]` in the answer is none of the choices".to_owned()));
        let unique = json!({ "uniqueItems": true });
        assert_eq!(told(unique, answer), None);
        let endless = json!({ "items": { "allOf": (0..2_000).map(|_| json!({ "minimum": 0 })).collect::<Vec<_>>() } });
        assert_eq!(told(endless, (0..10_000).collect::<Vec<u32>>().into()), None);
        let huge = json!({ "pattern": "(a{1000}){1000}" });
        assert_eq!(told(huge, json!("b")), None, "a pattern that does not fit is not judged");
    }
}
