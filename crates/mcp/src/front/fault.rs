//! What the client reads when its request has no answer: a JSON-RPC error with the word to branch on and the next step.

use caribou_core::failure::Code;
use caribou_ports::mcp::CallError;
use http::StatusCode;
use serde_json::json;
use serde_json::value::RawValue;

/// What JSON-RPC says of a text that is no JSON.
const PARSE_ERROR: i64 = -32_700;

/// A failure between client and server: outside what JSON-RPC and the protocol reserve, as at Caribou's own endpoint.
const OWN: i64 = -31_000;

/// Why a request has no answer.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    rpc: i64,
    code: Code,
    message: String,
}

impl Fault {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { rpc: OWN, code, message: message.into() }
    }

    /// A line of the client is no message.
    pub(super) fn not_a_message() -> Self {
        let message = "this line is no JSON-RPC message: write each message as JSON on one line".to_owned();
        Self { rpc: PARSE_ERROR, code: Code::Invalid, message }
    }

    /// As many requests as may be are waiting for their answers.
    pub(super) fn busy(most: usize) -> Self {
        Self::new(Code::Busy, format!("{most} requests wait for their answers; wait for one of them"))
    }

    /// The server did not answer in the longest time that a call may take.
    pub(super) fn late(server: &str) -> Self {
        let message = format!("{server} was silent for too long; whether the request took effect is unknown");
        Self::new(Code::OutcomeUnknown, message)
    }

    /// The server refuses by this status; `says` is what its body says, fit to be shown.
    pub(super) fn refused(server: &str, status: StatusCode, says: &str) -> Self {
        let (code, next) = match status.as_u16() {
            401 => (
                Code::Denied,
                "set CARIBOU_API_KEY to a key that it accepts (`caribou keys create` makes one), or name a file by \
                 --key-file",
            ),
            403 => (Code::Denied, "ask for a key that may do this"),
            404 | 405 => (
                Code::NotFound,
                "see that --server is the address of an MCP endpoint over streamable HTTP; Caribou's ends in /mcp",
            ),
            429 => (Code::Busy, "wait a little and ask again"),
            400..500 => (Code::Invalid, "see whether the server speaks the client's revision of the protocol"),
            _ => (Code::Unavailable, "look at the log of the server"),
        };
        Self::new(code, format!("{server} answered with HTTP {status}{says}; {next}"))
    }

    /// The whole message; without an id when it could not be read.
    pub(super) fn line(&self, id: Option<&RawValue>) -> String {
        let error = json!({ "code": self.rpc, "message": self.message, "data": { "code": self.code.as_str() } });
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.map_or("null", RawValue::get))
    }
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Self {
        let next = match &error {
            CallError::NotSent(_) => "; see that it runs (`caribou serve`) and that --server is its address",
            CallError::StreamEnded(_) => "; look whether it was done before you ask again",
            _ => "",
        };
        Self::new(error.code(), format!("{error}{next}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_request_a_word_to_branch_on_and_the_next_step() {
        let id: &RawValue = serde_json::from_str(r#""a\u0031""#).unwrap();
        let line = Fault::from(CallError::NotSent("nobody \"listens\"".to_owned())).line(Some(id));
        assert!(line.starts_with(r#"{"jsonrpc":"2.0","id":"a\u0031","error":"#), "{line}");
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["error"]["data"]["code"], "unavailable");
        assert!(message["error"]["message"].as_str().unwrap().contains("caribou serve"), "{line}");
        assert!(Fault::not_a_message().line(None).contains(r#""id":null"#));
        let refused = Fault::refused("it", StatusCode::UNAUTHORIZED, "").line(None);
        assert!(refused.contains("denied") && refused.contains("CARIBOU_API_KEY"), "{refused}");
    }
}
