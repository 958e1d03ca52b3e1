//! Arguments that a tool wants mirrored as `Mcp-Param-*` headers (SEP-2243, mcp.md §3.1).
//!
//! Owns reading `x-mcp-header` annotations from a tool's raw `inputSchema`, their rules, and the values of one call.
//! Does not own dropping the tool, nor sending. A tool with a bad annotation is an error that says why, for the
//! warning; arguments that fit no header are left out and are the server's to judge. Schemas and arguments are read,
//! never rewritten (W1); the walk keeps its own stack, so that no schema overflows ours (B1).

use std::borrow::Cow;
use std::fmt;

use http::{HeaderName, HeaderValue};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::headers::{mirrored, unmirrored};

const ANNOTATION: &str = "x-mcp-header";

/// One argument that is mirrored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredParam {
    /// Property names from the root of the arguments.
    path: Vec<String>,
    /// `Mcp-Param-…`.
    header: HeaderName,
}

/// Why a tool must not be shown to callers over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnnotation {
    /// The schema cannot be searched.
    #[error("its input schema holds `x-mcp-header` but cannot be read: {0}")]
    Unreadable(String),
    /// Not reachable from the root through `properties` only.
    #[error("an `x-mcp-header` stands where no argument does: only members of `properties` may carry it")]
    Misplaced,
    /// No string, empty, or not an HTTP token.
    #[error("`x-mcp-header` of `{0}` is not an HTTP token")]
    NoToken(String),
    /// On something else than a string, an integer or a boolean.
    #[error("`x-mcp-header` of `{0}` stands on an argument that is no string, integer or boolean")]
    WrongType(String),
    /// Two arguments claim one header; names are compared without case.
    #[error("two arguments claim the header `Mcp-Param-{0}`")]
    Twice(String),
}

/// The arguments of `tool` (a raw `Tool` object) that are mirrored. Most tools have none and cost one text search.
///
/// # Errors
/// An annotation breaks a rule: the tool must be left out of lists over HTTP.
pub fn mirrored_params(tool: &RawValue) -> Result<Vec<MirroredParam>, BadAnnotation> {
    if !tool.get().contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    let Some(schema) = member(tool, "inputSchema") else { return Ok(Vec::new()) };
    if !schema.get().contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    // Nesting is bounded by the parser; a deeper schema with annotations is refused instead of half read.
    let schema: Value =
        serde_json::from_str(schema.get()).map_err(|error| BadAnnotation::Unreadable(error.to_string()))?;
    let mut found = Vec::new();
    for annotated in annotations(&schema)? {
        found.push(checked(&annotated, &found)?);
    }
    Ok(found)
}

/// The headers of one call with these raw arguments. Absent and `null` arguments have none (mcp.md §3.1).
pub(crate) fn param_headers<'p>(
    params: &'p [MirroredParam],
    arguments: Option<&'p RawValue>,
) -> impl Iterator<Item = (HeaderName, HeaderValue)> + 'p {
    params.iter().filter_map(move |param| {
        let value = param.path.iter().try_fold(arguments?, |object, name| member(object, name))?;
        Some((param.header.clone(), header_value(value)?))
    })
}

impl MirroredParam {
    /// The header that carries it.
    pub fn header(&self) -> &HeaderName {
        &self.header
    }

    /// Whether `sent` says what these raw arguments hold: for whoever receives a call (mcp.md §3.1). Numbers are
    /// compared as such, and an argument that is absent or `null` has no header.
    pub fn agrees(&self, arguments: Option<&RawValue>, sent: Option<&HeaderValue>) -> bool {
        let value = arguments.and_then(|all| self.path.iter().try_fold(all, |object, name| member(object, name)));
        let value = value.filter(|value| value.get() != "null");
        match (value, sent) {
            (None, None) => true,
            (Some(value), Some(sent)) => match (unmirrored(sent), value.get().as_bytes().first()) {
                (Some(sent), Some(b'"')) => {
                    serde_json::from_str::<Cow<'_, str>>(value.get()).is_ok_and(|value| value == sent)
                }
                (Some(sent), Some(b't' | b'f')) => value.get() == sent,
                (Some(sent), _) => match (value.get().parse::<f64>(), sent.parse::<f64>()) {
                    (Ok(value), Ok(sent)) => value == sent,
                    // What fits no header is the server's to judge.
                    (Err(_), _) => true,
                    (Ok(_), Err(_)) => false,
                },
                (None, _) => false,
            },
            _ => false,
        }
    }
}

/// An annotation and where it stands.
struct Annotated<'s> {
    path: Vec<&'s str>,
    schema: &'s Value,
    header: &'s Value,
}

/// What a member of a schema holds, as far as the search is concerned.
enum Holds {
    /// Names mapped to schemas.
    NamedSchemas,
    /// A schema, or a list of schemas.
    Schemas,
    /// Data or something unknown: not searched.
    Nothing,
}

fn holds(keyword: &str) -> Holds {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => {
            Holds::NamedSchemas
        }
        "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "then"
        | "else"
        | "items"
        | "prefixItems"
        | "additionalItems"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Holds::Schemas,
        _ => Holds::Nothing,
    }
}

/// All annotations in document order; `Misplaced` if one stands off the chain of `properties`.
fn annotations(root: &Value) -> Result<Vec<Annotated<'_>>, BadAnnotation> {
    let mut found = Vec::new();
    // The path of a schema that is off the chain is `None`.
    let mut open: Vec<(Option<Vec<&str>>, &Value)> = vec![(Some(Vec::new()), root)];
    while let Some((path, schema)) = open.pop() {
        let Some(members) = schema.as_object() else { continue };
        if let Some(header) = members.get(ANNOTATION) {
            match &path {
                Some(path) if !path.is_empty() => found.push(Annotated { path: path.clone(), schema, header }),
                _ => return Err(BadAnnotation::Misplaced),
            }
        }
        for (keyword, value) in members.iter().rev() {
            match (holds(keyword), value) {
                (Holds::NamedSchemas, Value::Object(named)) => {
                    let chain = path.as_ref().filter(|_| keyword == "properties");
                    let longer = |name| chain.map(|path| path.iter().copied().chain([name]).collect());
                    open.extend(named.iter().rev().map(|(name, schema)| (longer(name.as_str()), schema)));
                }
                (Holds::Schemas, Value::Array(list)) => open.extend(list.iter().map(|schema| (None, schema))),
                (Holds::Schemas, schema) => open.push((None, schema)),
                _ => {}
            }
        }
    }
    Ok(found)
}

fn checked(annotated: &Annotated<'_>, earlier: &[MirroredParam]) -> Result<MirroredParam, BadAnnotation> {
    let property = || annotated.path.join(".");
    let name = annotated.header.as_str().unwrap_or_default();
    if !matches!(annotated.schema["type"].as_str(), Some("string" | "integer" | "boolean")) {
        return Err(BadAnnotation::WrongType(property()));
    }
    if name.is_empty() {
        return Err(BadAnnotation::NoToken(property()));
    }
    let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes())
        .map_err(|_| BadAnnotation::NoToken(property()))?;
    if earlier.iter().any(|param| param.header == header) {
        return Err(BadAnnotation::Twice(name.to_owned()));
    }
    Ok(MirroredParam { path: annotated.path.iter().map(|&name| name.to_owned()).collect(), header })
}

/// Numbers go as they were written: the server compares them as numbers, and we change nothing.
fn header_value(value: &RawValue) -> Option<HeaderValue> {
    match value.get().as_bytes().first()? {
        b'"' => Some(mirrored(&serde_json::from_str::<Cow<'_, str>>(value.get()).ok()?)),
        b'n' | b'{' | b'[' => None,
        _ => HeaderValue::from_str(value.get()).ok(),
    }
}

/// The member `name` of a raw object; of doubles the last, as most parsers have it. `None` if there is none.
pub(crate) fn member<'r>(object: &'r RawValue, name: &str) -> Option<&'r RawValue> {
    Member(name).deserialize(&mut serde_json::Deserializer::from_str(object.get())).ok()?
}

struct Member<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            if key == self.0 {
                found = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: &str) -> Box<RawValue> {
        RawValue::from_string(format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).unwrap()
    }

    fn of(schema: &str) -> Result<Vec<MirroredParam>, BadAnnotation> {
        mirrored_params(&tool(schema))
    }

    fn sent(schema: &str, arguments: &str) -> Vec<(String, String)> {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        let params = of(schema).unwrap();
        let text = |(name, value): (HeaderName, HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
        param_headers(&params, Some(&arguments)).map(text).collect()
    }

    const REGION: &str = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "limit":{"type":"integer","x-mcp-header":"Limit"},
        "where":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}}"#;

    #[test]
    fn annotated_arguments_are_mirrored_in_order() {
        let headers = sent(REGION, r#"{"limit":42.0,"region":"s\u00fcd","where":{"dry":true}}"#);
        let expected =
            [("mcp-param-region", "=?base64?c8O8ZA==?="), ("mcp-param-limit", "42.0"), ("mcp-param-dry", "true")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_a_caller_mirrors_is_compared_by_value() {
        // mcp.md §3.1: `42.0` = `42`; absent and null arguments have no header.
        let params = of(REGION).unwrap();
        let agrees = |index: usize, arguments: &str, sent: Option<&'static str>| {
            let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
            params[index].agrees(Some(&arguments), sent.map(HeaderValue::from_static).as_ref())
        };
        assert!(agrees(0, r#"{"region":"s\u00fcd"}"#, Some("=?base64?c8O8ZA==?=")));
        assert!(agrees(1, r#"{"limit":42.0}"#, Some("42")) && !agrees(1, r#"{"limit":42}"#, Some("43")));
        assert!(agrees(0, "{}", None) && agrees(0, r#"{"region":null}"#, None));
        assert!(!agrees(0, "{}", Some("x")) && !agrees(0, r#"{"region":"x"}"#, None));
    }

    #[test]
    fn null_absent_and_nested_arguments_have_no_header() {
        assert_eq!(sent(REGION, r#"{"region":null,"limit":[1],"where":"x"}"#), []);
        assert_eq!(param_headers(&of(REGION).unwrap(), None).count(), 0);
    }

    #[test]
    fn a_tool_without_annotations_has_no_mirrored_arguments() {
        assert_eq!(of(r#"{"type":"object"}"#), Ok(Vec::new()));
        assert_eq!(of(r#"{"properties":{"a":{"default":{"x-mcp-header":"A"}}}}"#), Ok(Vec::new()));
        assert_eq!(of(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#), Ok(Vec::new()));
    }

    #[test]
    fn each_broken_rule_is_told() {
        let property = |schema: &str| of(&format!(r#"{{"properties":{{"a":{schema}}}}}"#));
        assert_eq!(property(r#"{"type":"number","x-mcp-header":"A"}"#), Err(BadAnnotation::WrongType("a".into())));
        assert_eq!(property(r#"{"x-mcp-header":"A"}"#), Err(BadAnnotation::WrongType("a".into())));
        for name in [r#""""#, r#""a b""#, r#""a\r\nb""#, "7", "null", r#""ü""#] {
            let schema = format!(r#"{{"type":"string","x-mcp-header":{name}}}"#);
            assert_eq!(property(&schema), Err(BadAnnotation::NoToken("a".into())), "{name}");
        }
        for place in ["items", "anyOf", "not", "$defs", "if"] {
            let inner = r#"{"type":"string","x-mcp-header":"A"}"#;
            let value = match place {
                "anyOf" => format!("[{inner}]"),
                "$defs" => format!(r#"{{"d":{inner}}}"#),
                _ => inner.to_owned(),
            };
            assert_eq!(property(&format!(r#"{{"{place}":{value}}}"#)), Err(BadAnnotation::Misplaced), "{place}");
        }
        assert_eq!(of(r#"{"type":"string","x-mcp-header":"A"}"#), Err(BadAnnotation::Misplaced));
    }

    #[test]
    fn one_header_belongs_to_one_argument_whatever_the_case() {
        let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"Same"},
                                      "b":{"type":"string","x-mcp-header":"sAME"}}}"#;
        assert_eq!(of(twice), Err(BadAnnotation::Twice("sAME".into())));
    }

    #[test]
    fn a_bottomless_schema_is_passed_over_or_refused_but_never_overflows() {
        let deep = |leaf: &str| format!("{}{leaf}{}", r#"{"items":"#.repeat(5_000), "}".repeat(5_000));
        assert_eq!(of(&deep("{}")), Ok(Vec::new()));
        assert!(matches!(of(&deep(r#"{"x-mcp-header":"A"}"#)), Err(BadAnnotation::Unreadable(_))));
    }
}
