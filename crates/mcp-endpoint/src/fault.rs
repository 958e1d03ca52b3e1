//! What a client reads when something failed: a JSON-RPC error and, where the era says so, an HTTP status.
//!
//! Owns the mapping from the runtime's [`Code`] to both (mcp.md §3.1, §11). Failures of our own have codes outside the
//! range that the protocol reserves, so that none looks like a peer's; `data.code` holds the word to branch on.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caribou_core::failure::Code;
use caribou_core::task::RpcError;
use caribou_core::task::native::TASKS_EXTENSION;
use caribou_runtime::{UpstreamError, VerbError};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

pub(crate) const PARSE_ERROR: i64 = -32_700;
pub(crate) const INVALID_REQUEST: i64 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
pub(crate) const INVALID_PARAMS: i64 = -32_602;
pub(crate) const INTERNAL_ERROR: i64 = -32_603;
/// What SDKs of the legacy era answer for a session that is not there.
const SESSION_NOT_FOUND: i64 = -32_001;
/// A resource that is not there, in the legacy era; the modern one says [`INVALID_PARAMS`].
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32_002;
const HEADER_MISMATCH: i64 = -32_020;
const CAPABILITY_MISSING: i64 = -32_021;
const VERSION_UNSUPPORTED: i64 = -32_022;

/// One failure on its way to the client.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The status in the modern era; in the legacy era only of what fails before a method is reached.
    pub(crate) status: StatusCode,
    /// Whether the request never reached a method.
    pub(crate) is_envelopes: bool,
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Box<RawValue>>,
    pub(crate) retry_after: Option<Duration>,
    /// What the token of the client must hold, if it lacks some of it.
    pub(crate) required_scopes: Option<Arc<[String]>>,
}

impl Fault {
    fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self {
            status,
            is_envelopes: false,
            code,
            message: message.into(),
            data: None,
            retry_after: None,
            required_scopes: None,
        }
    }

    /// A failure of the envelope: told by status in both eras.
    pub(crate) fn of_envelope(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self { is_envelopes: true, ..Self::new(status, code, message) }
    }

    fn with(self, data: &Value) -> Self {
        Self { data: to_raw_value(data).ok(), ..self }
    }

    /// The body is no JSON.
    pub(crate) fn not_json() -> Self {
        Self::of_envelope(StatusCode::BAD_REQUEST, PARSE_ERROR, "the body is not JSON")
    }

    /// The body is no JSON-RPC message, or none that may be sent here.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::of_envelope(StatusCode::BAD_REQUEST, INVALID_REQUEST, message)
    }

    /// Parameters that mean nothing.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_PARAMS, message)
    }

    /// A resource that is not there.
    pub(crate) fn no_resource(why: &str, uri: &str) -> Self {
        Self::new(StatusCode::OK, RESOURCE_NOT_FOUND, why).with(&json!({ "uri": uri }))
    }

    /// A method that there is not, or that is not offered here.
    pub(crate) fn no_method(method: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, METHOD_NOT_FOUND, format!("there is no method `{method:.100}` here"))
    }

    /// A header of the modern era that is missing, broken, or says something else than the body.
    pub(crate) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::of_envelope(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message)
    }

    /// A revision that is not served statelessly.
    pub(crate) fn unsupported(requested: &str, supported: &[&str]) -> Self {
        let fault = Self::of_envelope(StatusCode::BAD_REQUEST, VERSION_UNSUPPORTED, "this revision is not served");
        fault.with(&json!({ "supported": supported, "requested": requested }))
    }

    /// A session that there is not, or not for this caller (invariant P1).
    pub(crate) fn no_session() -> Self {
        let why = "there is no such session: initialize again";
        Self::of_envelope(StatusCode::NOT_FOUND, SESSION_NOT_FOUND, why)
    }

    /// The bound of sessions or streams is reached.
    pub(crate) fn no_room(message: &str) -> Self {
        let fault = Self::of_envelope(StatusCode::SERVICE_UNAVAILABLE, own_code(Code::Busy), message);
        Self { retry_after: Some(Duration::from_secs(1)), ..fault }.with(&json!({ "code": Code::Busy.as_str() }))
    }

    /// A question of a server that its client did not answer.
    pub(crate) fn not_answered(message: &str) -> Self {
        VerbError::new(Code::Unavailable, message).into()
    }

    /// A request about tasks of a modern client that did not declare the extension (mcp.md §9.2).
    pub(crate) fn tasks_undeclared() -> Self {
        let why = format!("declare the extension `{TASKS_EXTENSION}` with the request");
        let needed = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
        Self::new(StatusCode::BAD_REQUEST, CAPABILITY_MISSING, why).with(&needed)
    }

    /// A legacy client asks for a task of a tool that makes none (mcp.md §9.1, tool level).
    pub(crate) fn no_task(tool: &str) -> Self {
        let why = format!("the tool `{tool:.200}` cannot be called as a task: leave `params.task` out");
        Self::new(StatusCode::NOT_FOUND, METHOD_NOT_FOUND, why)
    }

    /// The outcome of a task that has none.
    pub(crate) fn cancelled(task: &str) -> Self {
        VerbError::new(Code::Conflict, format!("the task `{task}` was cancelled")).into()
    }

    /// A fault of ours. What it was stays in the log.
    pub(crate) fn bug() -> Self {
        let why = "this is a fault of Caribou; its log says more";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, why)
    }

    /// The error object.
    pub(crate) fn error(&self) -> String {
        let message = Value::from(self.message.as_str());
        let data = self.data.as_ref().map_or_else(String::new, |data| format!(",\"data\":{}", data.get()));
        format!("{{\"code\":{},\"message\":{message}{data}}}", self.code)
    }

    /// The whole answer to the request of this id; without one, when it could not be read.
    pub(crate) fn answer(&self, id: Option<&RawValue>) -> String {
        let id = id.map_or_else(String::new, |id| format!(",\"id\":{}", id.get()));
        format!("{{\"jsonrpc\":\"2.0\"{id},\"error\":{}}}", self.error())
    }

    /// The HTTP answer with this status.
    pub(crate) fn respond(&self, status: StatusCode, id: Option<&RawValue>) -> Response {
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut response = (status, [json], self.answer(id)).into_response();
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        // Where tokens come from is added by whoever serves this (RFC 9728 §5.1).
        let challenge = self.required_scopes.as_ref().map(|scopes| insufficient_scope(scopes));
        if let Some(challenge) = challenge.and_then(|challenge| HeaderValue::try_from(challenge).ok()) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The challenge to a client whose token lacks some of these (RFC 6750 §3.1).
fn insufficient_scope(scopes: &[String]) -> String {
    format!("Bearer error=\"insufficient_scope\", scope=\"{}\"", scopes.join(" "))
}

/// The code of a failure of our own: outside what JSON-RPC and the protocol reserve.
fn own_code(code: Code) -> i64 {
    let place = Code::ALL.iter().position(|each| *each == code).unwrap_or_default();
    -31_000 - i64::try_from(place).unwrap_or_default()
}

impl From<VerbError> for Fault {
    fn from(error: VerbError) -> Self {
        if let Some(upstream) = error.upstream {
            return of_upstream(upstream);
        }
        let (status, code) = match error.code {
            Code::Invalid | Code::NotFound => (StatusCode::BAD_REQUEST, INVALID_PARAMS),
            Code::Busy => (StatusCode::SERVICE_UNAVAILABLE, own_code(error.code)),
            // A client can do something about it, by the status and the challenge that comes with it (mcp.md 10.1).
            Code::Denied if error.required_scopes.is_some() => (StatusCode::FORBIDDEN, own_code(error.code)),
            // The status would tell of our own hop, and the failure is behind it.
            other => (StatusCode::OK, own_code(other)),
        };
        let mut data = json!({ "code": error.code.as_str() });
        if let Some(scopes) = &error.required_scopes {
            data["required_scopes"] = json!(**scopes);
        }
        let is_envelopes = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::FORBIDDEN);
        let fault = Self::new(status, code, error.detail).with(&data);
        Self { retry_after: error.retry_after, is_envelopes, required_scopes: error.required_scopes, ..fault }
    }
}

impl From<RpcError> for Fault {
    fn from(RpcError { code, message, data }: RpcError) -> Self {
        of_upstream(UpstreamError { code, message, data: data.map(Into::into) })
    }
}

/// The error of a server as it came, unless its code speaks of a hop: that one was ours, not the client's.
fn of_upstream(UpstreamError { code, message, data }: UpstreamError) -> Fault {
    let (status, code) = match code {
        METHOD_NOT_FOUND => (StatusCode::NOT_FOUND, code),
        INVALID_PARAMS | CAPABILITY_MISSING => (StatusCode::BAD_REQUEST, code),
        PARSE_ERROR | INVALID_REQUEST | HEADER_MISMATCH | VERSION_UNSUPPORTED => (StatusCode::OK, INTERNAL_ERROR),
        other => (StatusCode::OK, other),
    };
    Fault { data: data.map(|data| (*data).to_owned()), ..Fault::new(status, code, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_object_holds_what_the_server_said_byte_for_byte() {
        let data = RawValue::from_string(r#"{"b":1.0,"a":2}"#.to_owned()).unwrap();
        let upstream = UpstreamError { code: -5, message: "no \"x\"".to_owned(), data: Some(data.into()) };
        let fault = Fault::from(VerbError { upstream: Some(upstream), ..VerbError::new(Code::UpstreamError, "d") });
        let id = RawValue::from_string("\"a\"".to_owned()).unwrap();
        let expected = r#"{"jsonrpc":"2.0","id":"a","error":{"code":-5,"message":"no \"x\"","data":{"b":1.0,"a":2}}}"#;
        assert_eq!(fault.answer(Some(&id)), expected);
    }

    #[test]
    fn a_client_without_the_scopes_is_told_all_of_them_by_status_and_challenge() {
        // RFC 6750 §3.1; mcp.md §17, S22.
        let scopes = ["a:read", "b"].map(str::to_owned);
        let error = VerbError { required_scopes: Some(scopes.into()), ..VerbError::new(Code::Denied, "d") };
        let fault = Fault::from(error);
        assert!(fault.is_envelopes, "told by status in both eras");
        assert!(fault.answer(None).ends_with(r#""data":{"code":"denied","required_scopes":["a:read","b"]}}}"#));
        let response = fault.respond(fault.status, None);
        let challenge = response.headers()[header::WWW_AUTHENTICATE].to_str().unwrap();
        assert_eq!(challenge, r#"Bearer error="insufficient_scope", scope="a:read b""#);
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        let other = Fault::from(VerbError::new(Code::Denied, "d"));
        assert!(!other.respond(other.status, None).headers().contains_key(header::WWW_AUTHENTICATE));
    }

    #[test]
    fn codes_of_our_own_lie_outside_what_the_protocol_reserves() {
        // mcp.md §11.
        for code in Code::ALL {
            let fault = Fault::from(VerbError::new(code, "d"));
            assert!(fault.code == INVALID_PARAMS || fault.code > -32_000, "{code}: {}", fault.code);
        }
    }
}
