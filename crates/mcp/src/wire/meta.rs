//! Parameters of our requests, with the `_meta` that a hop writes itself (mcp.md §2.2, §14.2).
//!
//! Owns the composition of `params`; every payload in it is raw text (invariant W1).

use caribou_ports::mcp::CallError;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// The token of a call's progress in `_meta`.
const PROGRESS_TOKEN: &str = "progressToken";

/// The members of one `_meta`. What the protocol writes wins over what a caller brings.
#[derive(Clone, Copy, Default)]
pub(crate) struct Meta<'a> {
    /// The fields of the modern era; empty in the legacy era.
    pub(crate) protocol: &'a [(&'static str, Box<RawValue>)],
    /// What the caller brings.
    pub(crate) extra: &'a [(String, Box<RawValue>)],
    /// The progress token.
    pub(crate) progress: Option<u64>,
}

impl Meta<'_> {
    fn is_empty(&self) -> bool {
        self.protocol.is_empty() && self.extra.is_empty() && self.progress.is_none()
    }

    fn is_ours(&self, key: &str) -> bool {
        key == PROGRESS_TOKEN || self.protocol.iter().any(|(ours, _)| *ours == key)
    }
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.protocol {
            map.serialize_entry(key, value)?;
        }
        for (key, value) in self.extra.iter().filter(|(key, _)| !self.is_ours(key)) {
            map.serialize_entry(key, value)?;
        }
        if let Some(token) = self.progress {
            map.serialize_entry(PROGRESS_TOKEN, &token)?;
        }
        map.end()
    }
}

/// Parameters: some members, then `_meta`.
struct Params<'a> {
    members: &'a [(&'a str, Member<'a>)],
    meta: Meta<'a>,
}

/// The value of one parameter.
#[derive(Clone, Copy)]
pub(crate) enum Member<'a> {
    /// A string of ours.
    Text(&'a str),
    /// JSON text of somebody else.
    Raw(&'a RawValue),
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Raw(raw) => raw.serialize(serializer),
        }
    }
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.members {
            map.serialize_entry(key, value)?;
        }
        if !self.meta.is_empty() {
            map.serialize_entry("_meta", &self.meta)?;
        }
        map.end()
    }
}

/// The `params` of one request.
///
/// # Errors
/// Never in practice: everything in it is text or JSON already.
pub(crate) fn params(members: &[(&str, Member<'_>)], meta: Meta<'_>) -> Result<Box<RawValue>, CallError> {
    serde_json::value::to_raw_value(&Params { members, meta })
        .map_err(|error| CallError::NotSent(format!("the request cannot be composed: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("valid JSON")
    }

    #[test]
    fn arguments_stand_in_params_as_the_caller_wrote_them() {
        let arguments = raw("{ \"b\":1.0,\n\"a\":null }");
        let members = [("name", Member::Text("t\"x")), ("arguments", Member::Raw(&arguments))];
        let params = params(&members, Meta::default()).expect("composed");
        assert_eq!(params.get(), "{\"name\":\"t\\\"x\",\"arguments\":{ \"b\":1.0,\n\"a\":null }}");
    }

    #[test]
    fn what_the_protocol_writes_in_meta_wins() {
        let protocol = [("io.modelcontextprotocol/protocolVersion", raw("\"2026-07-28\""))];
        let extra = [
            ("progressToken".to_owned(), raw("\"theirs\"")),
            ("io.modelcontextprotocol/protocolVersion".to_owned(), raw("\"1\"")),
            ("traceparent".to_owned(), raw("\"00-1\"")),
        ];
        let meta = Meta { protocol: &protocol, extra: &extra, progress: Some(4) };
        let expected = concat!(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""traceparent":"00-1","progressToken":4}}"#
        );
        assert_eq!(params(&[], meta).expect("composed").get(), expected);
    }
}
