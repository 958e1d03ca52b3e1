//! Errors on the wire, translated into the port's errors.
//!
//! Owns the meaning of JSON-RPC error objects and codes (mcp.md §11). A malformed error object still fails its call:
//! what cannot be read is replaced, never dropped.

use std::sync::Arc;

use caribou_ports::mcp::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

/// JSON-RPC: the method does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters mean nothing.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// Modern era: a mirrored header is missing or differs from the body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// Modern era: a capability was needed and not declared.
pub(crate) const CAPABILITY_MISSING: i64 = -32021;
/// Modern era: the revision is not supported; `data.supported` lists what is.
pub(crate) const VERSION_UNSUPPORTED: i64 = -32022;

/// The most that is kept of an error's message: it is shown to people and models.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;

/// Whether only a server of the modern era answers with `code` (mcp.md §3.2).
pub(crate) fn is_modern(code: i64) -> bool {
    matches!(code, HEADER_MISMATCH | CAPABILITY_MISSING | VERSION_UNSUPPORTED)
}

/// The port's error for a JSON-RPC `error` member, whatever shape it has.
pub(crate) fn rpc(error: &RawValue) -> CallError {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow, default)]
        code: Option<&'a RawValue>,
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
        #[serde(default)]
        data: Option<Box<RawValue>>,
    }
    let Ok(members) = serde_json::from_str::<Members<'_>>(error.get()) else {
        return CallError::Rpc { code: 0, message: capped(error.get().to_owned()), data: None };
    };
    let code = members.code.and_then(|code| whole_number(code.get())).unwrap_or(0);
    let message = members.message.map_or_else(String::new, |message| {
        // A message that is no string, or holds a lone surrogate, is shown as its JSON text.
        serde_json::from_str(message.get()).unwrap_or_else(|_| message.get().to_owned())
    });
    CallError::Rpc { code, message: capped(message), data: members.data.map(Arc::from) }
}

/// The code as a whole number: some servers write it as `-32601.0` or as a string.
fn whole_number(text: &str) -> Option<i64> {
    let bare = text.trim_matches('"');
    bare.parse().ok().or_else(|| bare.strip_suffix(".0").and_then(|whole| whole.parse().ok()))
}

/// `message`, cut at a character boundary when it is too long to be shown.
fn capped(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push('…');
    }
    message
}

/// The error of a call whose answer is not UTF-8.
pub(crate) fn not_utf8() -> CallError {
    CallError::Unreadable("the server's answer is not valid UTF-8 and was refused".to_owned())
}

/// The error of a call whose answer holds numbers that JSON does not have.
pub(crate) fn not_json() -> CallError {
    let what = "the server's answer is not valid JSON: it holds NaN or an infinity, and was refused";
    CallError::Unreadable(what.to_owned())
}

/// The error of a call whose answer names it and then says nothing.
pub(crate) fn no_outcome() -> CallError {
    CallError::Malformed("the server's answer holds neither a result nor an error".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> (i64, String, Option<String>) {
        let raw: &RawValue = serde_json::from_str(json).expect("valid JSON");
        match rpc(raw) {
            CallError::Rpc { code, message, data } => (code, message, data.map(|data| data.get().to_owned())),
            other => panic!("not an RPC error: {other}"),
        }
    }

    #[test]
    fn an_error_object_keeps_code_message_and_raw_data() {
        let read = read(r#"{"code":-32602,"message":"bad","data":{"b":1.0,"a":2}}"#);
        assert_eq!(read, (-32602, "bad".to_owned(), Some(r#"{"b":1.0,"a":2}"#.to_owned())));
    }

    #[test]
    fn a_malformed_error_object_still_says_something() {
        assert_eq!(read(r#""boom""#), (0, r#""boom""#.to_owned(), None));
        assert_eq!(read(r#"{"code":"-5","message":7}"#), (-5, "7".to_owned(), None));
        assert_eq!(read(r#"{"code":-32000.0,"message":"\ud800"}"#).0, -32000);
        assert_eq!(read("{}"), (0, String::new(), None));
    }

    #[test]
    fn an_endless_message_is_cut_at_a_character_boundary() {
        let (_, message, _) = read(&format!("{{\"message\":\"{}\"}}", "ü".repeat(MAX_MESSAGE_BYTES)));
        assert!(message.ends_with("ü…") && message.len() <= MAX_MESSAGE_BYTES + "…".len());
    }

    #[test]
    fn only_the_three_modern_codes_are_recognised() {
        assert!([HEADER_MISMATCH, CAPABILITY_MISSING, VERSION_UNSUPPORTED].into_iter().all(is_modern));
        assert!(![METHOD_NOT_FOUND, -32602, -32000, 0].into_iter().any(is_modern));
    }
}
