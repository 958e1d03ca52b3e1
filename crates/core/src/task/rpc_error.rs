//! The JSON-RPC error that a call ended with which became a task: kept with the task, so that whoever asks for its outcome
//! is answered as the call would have been (mcp.md §9.1, tasks/result; §9.2, `error`).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json::{compact, cut};
use super::limits::{MAX_ERROR_CHARS, MAX_INPUT_BYTES};

/// An error object. Its data is kept as its server wrote it, or, where it is too large, not at all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// Its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl PartialEq for RpcError {
    fn eq(&self, other: &Self) -> bool {
        let data = |error: &'_ Self| error.data.as_deref().map(|data| data.get().to_owned());
        (self.code, &self.message, data(self)) == (other.code, &other.message, data(other))
    }
}

impl Eq for RpcError {}

impl RpcError {
    /// What is stored of it: compact JSON, bounded.
    pub fn text(&self) -> String {
        let data = self.data.as_deref().filter(|data| data.get().len() <= MAX_INPUT_BYTES);
        let data = data.and_then(|data| RawValue::from_string(compact(data)).ok());
        let kept = Self { code: self.code, message: cut(&self.message, MAX_ERROR_CHARS), data };
        // A number, a string and raw JSON always become JSON.
        serde_json::to_string(&kept).unwrap_or_default()
    }

    /// The error that [`Self::text`] is of; `None` = it is of none.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Option<Box<RawValue>> {
        RawValue::from_string(text.to_owned()).ok()
    }

    #[test]
    fn an_error_is_kept_with_its_data_unless_that_is_too_large() {
        let error = |data: &str| RpcError { code: -5, message: "no \"x\"".to_owned(), data: raw(data) };
        let kept = error(r#"{ "b": 1.0, "a": 9223372036854775809 }"#).text();
        assert_eq!(kept, r#"{"code":-5,"message":"no \"x\"","data":{"b":1.0,"a":9223372036854775809}}"#);
        let read = RpcError::parse(&kept).unwrap();
        assert_eq!((read.code, read.message.as_str(), read.text()), (-5, "no \"x\"", kept));
        let large = error(&format!("\"{}\"", "x".repeat(MAX_INPUT_BYTES)));
        assert_eq!(large.text(), r#"{"code":-5,"message":"no \"x\""}"#);
        let long = RpcError { code: 0, message: "\u{e9}".repeat(5_000), data: None };
        assert_eq!(RpcError::parse(&long.text()).unwrap().message.chars().count(), MAX_ERROR_CHARS);
        assert!(RpcError::parse("7").is_none());
    }
}
