//! One JSON-RPC message of a client, taken apart without touching what it carries (invariant W1).

use std::borrow::Cow;

use caribou_core::raw::{Members, text};
use serde_json::value::RawValue;

use crate::fault::Fault;

/// One message, borrowed from the body it came in.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// The id; `None` = it wants no answer.
    pub(crate) id: Option<&'a RawValue>,
    /// The method; `None` = it is an answer to a request of ours.
    pub(crate) method: Option<Cow<'a, str>>,
    pub(crate) params: Option<&'a RawValue>,
    /// What it answers, if it is an answer and no refusal.
    pub(crate) result: Option<&'a RawValue>,
    /// Why it refuses, if it is a refusal.
    pub(crate) error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// The one message that `body` is.
    ///
    /// # Errors
    /// It is no JSON, or no message.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Fault> {
        let raw: &RawValue = serde_json::from_slice(body).map_err(|_| Fault::not_json())?;
        if raw.get().trim_ascii_start().starts_with('[') {
            return Err(Fault::invalid_request("one message a request: arrays of messages are not taken"));
        }
        let members = Members::of(raw).ok_or_else(|| Fault::invalid_request("a message is a JSON object"))?;
        if members.get("jsonrpc").is_none_or(|version| version.get() != "\"2.0\"") {
            return Err(Fault::invalid_request("`jsonrpc` must be \"2.0\""));
        }
        let id = members.get("id");
        if id.is_some_and(|id| !is_id(id)) {
            return Err(Fault::invalid_request("`id` must be a string or a whole number"));
        }
        let method = match members.get("method") {
            Some(method) => Some(text(method).ok_or_else(|| Fault::invalid_request("`method` must be a string"))?),
            None => None,
        };
        if method.is_none() && (id.is_none() || (members.get("result").is_none() && members.get("error").is_none())) {
            return Err(Fault::invalid_request("a message has a method, or an id with a result or an error"));
        }
        let params = members.get("params");
        if params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(Fault::invalid_request("`params` must be an object"));
        }
        Ok(Self { id, method, params, result: members.get("result"), error: members.get("error") })
    }
}

/// Whether it is a string or a whole number.
fn is_id(id: &RawValue) -> bool {
    id.get().starts_with('"') || id.get().parse::<i64>().is_ok() || id.get().parse::<u64>().is_ok()
}

/// A notification of ours, as it is sent.
pub(crate) fn notification(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}")
}

/// An answer of ours.
pub(crate) fn response(id: &RawValue, result: &str) -> String {
    let mut text = String::with_capacity(result.len() + id.get().len() + 40);
    for part in ["{\"jsonrpc\":\"2.0\",\"id\":", id.get(), ",\"result\":", result, "}"] {
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{INVALID_REQUEST, PARSE_ERROR};

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let read = |text: &'static str| {
            let message = Message::read(text.as_bytes()).unwrap();
            (message.id.is_some(), message.method.is_some())
        };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), (true, true));
        assert_eq!(read(r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#), (false, true));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), (true, false));
    }

    #[test]
    fn everything_else_is_refused() {
        // mcp.md §17, S10.
        assert_eq!(Message::read(b"{\"jsonrpc\":").unwrap_err().code, PARSE_ERROR);
        assert_eq!(Message::read(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}").unwrap_err().code, PARSE_ERROR);
        for text in [
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "[]",
            "7",
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
        ] {
            assert_eq!(Message::read(text.as_bytes()).unwrap_err().code, INVALID_REQUEST, "{text}");
        }
    }
}
