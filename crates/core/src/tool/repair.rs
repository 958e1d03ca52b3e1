//! Slips in a `Tool` object that are mended, so that one careless server does not lose its tools.
//!
//! Only what strict clients choke on, and only where the meaning is plain: `required: null` is absent,
//! `properties: []` is `{}`, a missing `inputSchema` takes any object, `description: null` is absent. Every other
//! member stays byte for byte; a sound tool is not touched at all (invariant W1).

use serde_json::value::RawValue;

use crate::raw::{self, Members};

/// A `Tool` that was mended.
pub(super) struct Repaired {
    /// The whole object as it is shown.
    pub(super) tool: Box<RawValue>,
    /// The members that were mended.
    pub(super) members: Vec<String>,
}

/// The mended form of a tool, or `None` when nothing needs mending.
pub(super) fn repair(tool: &Members<'_>) -> Option<Repaired> {
    let mut mended = Vec::new();
    let schema = match tool.get("inputSchema") {
        Some(schema) if schema.get() != "null" => repaired_schema(schema, &mut mended),
        _ => {
            mended.push("inputSchema".to_owned());
            RawValue::from_string(r#"{"type":"object"}"#.to_owned()).ok()
        }
    };
    let drop_description = tool.get("description").is_some_and(|d| d.get() == "null");
    if drop_description {
        mended.push("description".to_owned());
    }
    if mended.is_empty() {
        return None;
    }
    let kept = tool
        .0
        .iter()
        .filter(|(name, _)| !(drop_description && name == "description"))
        .filter(|(name, _)| !(schema.is_some() && name == "inputSchema"))
        .map(|(name, value)| (name.as_ref(), *value));
    let object = raw::object(kept.chain(schema.as_deref().map(|schema| ("inputSchema", schema))));
    RawValue::from_string(object).ok().map(|tool| Repaired { tool, members: mended })
}

fn repaired_schema(schema: &RawValue, mended: &mut Vec<String>) -> Option<Box<RawValue>> {
    let members = Members::of(schema)?;
    let before = mended.len();
    let empty = RawValue::from_string("{}".to_owned()).ok()?;
    let mut kept: Vec<(&str, &RawValue)> = Vec::with_capacity(members.0.len());
    for (name, value) in &members.0 {
        match (name.as_ref(), value.get()) {
            ("required", "null") => mended.push("inputSchema.required".to_owned()),
            ("properties", "null") => mended.push("inputSchema.properties".to_owned()),
            ("properties", text) if raw::elements(value).is_some_and(|e| e.is_empty()) && text.starts_with('[') => {
                mended.push("inputSchema.properties".to_owned());
                kept.push((name, &empty));
            }
            _ => kept.push((name, value)),
        }
    }
    if mended.len() == before {
        return None;
    }
    RawValue::from_string(raw::object(kept)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(tool: &str) -> Option<(String, Vec<String>)> {
        let raw = RawValue::from_string(tool.to_owned()).unwrap();
        repair(&Members::of(&raw).unwrap()).map(|r| (r.tool.get().to_owned(), r.members))
    }

    #[test]
    fn a_sound_tool_is_not_touched() {
        assert!(repaired(r#"{"name":"a","inputSchema":{"type":"object","x":1.0}}"#).is_none());
        assert!(repaired(r#"{"name":"a","inputSchema":true}"#).is_none());
    }

    #[test]
    fn each_slip_is_mended_and_named_and_the_rest_stays() {
        let (tool, members) =
            repaired(r#"{"name":"a","description":null,"inputSchema":{"required":null,"properties":[],"z":1.0}}"#)
                .unwrap();
        assert_eq!(tool, r#"{"name":"a","inputSchema":{"properties":{},"z":1.0}}"#);
        assert_eq!(members, ["inputSchema.required", "inputSchema.properties", "description"]);
        let (tool, _) = repaired(r#"{"name":"a","x":[1]}"#).unwrap();
        assert_eq!(tool, r#"{"name":"a","x":[1],"inputSchema":{"type":"object"}}"#);
    }
}
