//! What a caller reads when something failed: status, headers and the one body of all errors.
//!
//! Owns the mapping from [`Code`] to HTTP status. A problem does not know its request: it travels to `envelope`
//! inside the response and is written there, with the request id. Holds no secret, and nothing of a request body.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caribou_core::failure::Code;
use caribou_core::ids::RequestId;
use caribou_runtime::{UpstreamError, VerbError};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};

/// What `busy` advises when the verb names no time: room is made by calls that end, usually within a second.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// One failure on its way to the caller.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: Code,
    detail: String,
    retry_after: Option<Duration>,
    challenge: Option<Challenge>,
    upstream: Option<UpstreamError>,
}

/// What `WWW-Authenticate` asks the caller for (RFC 6750 §3).
#[derive(Clone, Debug)]
pub(crate) enum Challenge {
    /// A credential: it sent none.
    Credential,
    /// Another credential: the one it sent is nobody's.
    Other,
    /// One that holds all these scopes.
    Scopes(Arc<[String]>),
}

impl Challenge {
    fn header(&self) -> Option<HeaderValue> {
        match self {
            Self::Credential => Some(HeaderValue::from_static("Bearer")),
            Self::Other => Some(HeaderValue::from_static("Bearer error=\"invalid_token\"")),
            Self::Scopes(scopes) => {
                let scopes = scopes.join(" ");
                HeaderValue::try_from(format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"")).ok()
            }
        }
    }
}

impl Problem {
    /// A failure whose status is not that of its code.
    pub(crate) fn new(status: StatusCode, code: Code, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after: None, challenge: None, upstream: None }
    }

    /// With the time after which trying again makes sense.
    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// With what the caller is asked to send (RFC 9110 §11.6.1).
    pub(crate) fn challenge(self, challenge: Challenge) -> Self {
        Self { challenge: Some(challenge), ..self }
    }

    /// A request that is well formed and means nothing we can do.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid, detail)
    }

    /// A fault of ours. What it was stays in the log.
    pub(crate) fn bug() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Unavailable, "this is a fault of Caribou; its log says more")
    }

    /// The body, for the request `id`.
    pub(crate) fn body<'p>(&'p self, id: &'p RequestId) -> ProblemBody<'p> {
        let upstream = self.upstream.as_ref().map(|error| UpstreamBody {
            code: error.code,
            message: &error.message,
            data: error.data.as_deref(),
        });
        let required_scopes = match &self.challenge {
            Some(Challenge::Scopes(scopes)) => Some(&**scopes),
            _ => None,
        };
        ProblemBody { detail: &self.detail, code: self.code, request_id: id, required_scopes, upstream }
    }

    /// Writes the body into the response that carried this problem, keeping its headers (such as `Allow`).
    pub(crate) fn write(&self, id: &RequestId, response: &mut Response) {
        let text = serde_json::to_vec(&self.body(id)).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
        *response.body_mut() = Body::from(text);
    }
}

impl From<VerbError> for Problem {
    fn from(error: VerbError) -> Self {
        let retry_after = error.retry_after.or((error.code == Code::Busy).then_some(BUSY_RETRY));
        let VerbError { code, detail, upstream, required_scopes, .. } = error;
        let challenge = required_scopes.map(Challenge::Scopes);
        Self { status: status(code), code, detail, retry_after, challenge, upstream }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if let Some(challenge) = self.challenge.as_ref().and_then(Challenge::header) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The status of a verb that failed with `code`.
///
/// What the upstream server did wrong is 502, so that 4xx always means the caller's own request; `busy` is 503 and
/// not 429, because the bound is the replica's and not the caller's.
fn status(code: Code) -> StatusCode {
    match code {
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Denied => StatusCode::FORBIDDEN,
        Code::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Conflict | Code::ConfigChanged => StatusCode::CONFLICT,
        Code::OutcomeUnknown | Code::SessionEnded | Code::UpstreamError => StatusCode::BAD_GATEWAY,
        Code::Busy | Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Why a request could not be done.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem, example = json!({
    "detail": "there is no tool `time_now`; GET /api/mcp/tools lists all",
    "code": "not_found",
    "request_id": "0198f3c2-6a1b-7c3e-9d2f-5b8e7a1c4d60"
}))]
pub(crate) struct ProblemBody<'p> {
    /// What happened, where, and what to do about it; for people.
    detail: &'p str,
    /// The word to branch on.
    #[schema(schema_with = code_schema)]
    code: Code,
    /// Names this request in logs and traces.
    #[schema(value_type = String)]
    request_id: &'p RequestId,
    /// The OAuth scopes that the caller's token must hold, all of them, when it was refused for want of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    required_scopes: Option<&'p [String]>,
    /// The JSON-RPC error of the MCP server, when it answered with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    upstream: Option<UpstreamBody<'p>>,
}

/// A JSON-RPC error of an MCP server.
#[derive(Serialize, ToSchema)]
#[schema(as = UpstreamError)]
struct UpstreamBody<'p> {
    /// Its code.
    code: i64,
    /// Its message.
    message: &'p str,
    /// Its data, byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    data: Option<&'p RawValue>,
}

fn code_schema() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(Code::ALL.map(Code::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_after(error: VerbError) -> Option<String> {
        let response = Problem::from(error).into_response();
        response.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn every_code_is_in_the_document_and_has_an_error_status() {
        for code in Code::ALL {
            assert!(status(code).is_client_error() || status(code).is_server_error(), "{code}");
        }
        let words: std::collections::BTreeSet<_> = Code::ALL.map(Code::as_str).into();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds() {
        let error = |wait| VerbError { retry_after: wait, ..VerbError::new(Code::Unavailable, "down") };
        assert_eq!(retry_after(error(Some(Duration::from_millis(1_001)))).as_deref(), Some("2"));
        assert_eq!(retry_after(error(Some(Duration::ZERO))).as_deref(), Some("1"));
        assert_eq!(retry_after(error(None)), None);
    }

    #[test]
    fn busy_always_names_a_wait() {
        assert_eq!(retry_after(VerbError::new(Code::Busy, "full")).as_deref(), Some("1"));
    }

    #[test]
    fn the_error_of_the_server_is_shown_as_it_came() {
        let data = RawValue::from_string(r#"{"big":9223372036854775809,"f":1.0}"#.to_owned()).unwrap();
        let upstream = UpstreamError { code: -32602, message: "no".to_owned(), data: Some(data.into()) };
        let problem = Problem::from(VerbError { upstream: Some(upstream), ..VerbError::new(Code::UpstreamError, "d") });
        let text = serde_json::to_string(&problem.body(&RequestId::new("r"))).unwrap();
        assert_eq!(
            text,
            r#"{"detail":"d","code":"upstream_error","request_id":"r","upstream":{"code":-32602,"message":"no","data":{"big":9223372036854775809,"f":1.0}}}"#
        );
    }
}
