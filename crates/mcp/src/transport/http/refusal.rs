//! A complete HTTP answer that refuses a request.
//!
//! Owns what such an answer says: a JSON-RPC error in its body, a lacking scope, where to authorise, a time to wait; and
//! which of the port's errors that is. Keeps B1 (little of the body is read) and O3 (what is shown of it is short and masked).

use caribou_core::era::{Era, newest_legacy_named_in};
use caribou_core::masker::Masker;
use caribou_ports::mcp::CallError;
use http::{HeaderMap, HeaderName, StatusCode, header};

use super::challenge;
use crate::error::masked;
use crate::wire::envelope::{Message, each_message};
use crate::wire::errors;
use crate::wire::excerpt::excerpt;
use crate::wire::ids::ResponseId;

/// What is read of a refusal's body: more than any JSON-RPC error needs.
const READ_BYTES: usize = 64 * 1024;

/// How servers that answer 400 say that they do not know the session: the SDKs' texts, in lower case.
const UNKNOWN_SESSION: [&str; 6] = [
    "no valid session",
    "session not found",
    "invalid session",
    "unknown session",
    "session does not exist",
    "session expired",
];

/// What is shown of a header of the server.
const SHOWN_HEADER_CHARS: usize = 200;

/// Why a request has no result.
pub(crate) enum Failure {
    /// A complete answer refuses it: it was not processed as a request.
    Refused(Refused),
    /// Everything else.
    Call(CallError),
}

/// A complete answer other than 2xx.
pub(crate) struct Refused {
    /// Its status.
    pub(crate) status: StatusCode,
    /// The JSON-RPC error in its body.
    rpc: Option<CallError>,
    /// The error names a request of ours: whoever wrote it had read the request.
    was_read: bool,
    /// What it said instead, fit to be shown; starts with a blank, or is empty.
    says: String,
    /// Where the metadata of the resource stands (RFC 9728 §5.1), fit to be shown.
    metadata: Option<String>,
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl Failure {
    /// The JSON-RPC error that the server answered with, under whatever status.
    pub(crate) fn rpc(&self) -> Option<&CallError> {
        match self {
            Self::Refused(Refused { rpc: Some(error), .. }) | Self::Call(error @ CallError::Rpc { .. }) => Some(error),
            _ => None,
        }
    }

    /// Its code.
    pub(crate) fn rpc_code(&self) -> Option<i64> {
        match self.rpc()? {
            CallError::Rpc { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The status of the refusal.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused(refused) => Some(refused.status),
            Self::Call(_) => None,
        }
    }

    /// Whether the server cannot be of `era`, in which the request was sent (mcp.md §3.2).
    pub(crate) fn denies(&self, era: Era) -> bool {
        match (self, era) {
            (Self::Refused(refused), Era::Legacy) => refused.tells_modern(),
            (Self::Refused(refused), Era::Modern) if refused.rpc.is_none() => {
                matches!(refused.status.as_u16(), 400 | 404 | 405)
            }
            _ => era == Era::Modern && self.rpc_code() == Some(errors::VERSION_UNSUPPORTED),
        }
    }

    /// As the port's error; `server` is how messages name the server.
    pub(crate) fn into_call_error(self, server: &str, method: &str) -> CallError {
        match self {
            Self::Refused(refused) => refused.to_call_error(server, method),
            Self::Call(error) => error,
        }
    }
}

impl Refused {
    /// Reads what `response` says.
    pub(crate) async fn read(mut response: reqwest::Response, masker: &Masker) -> Self {
        let status = response.status();
        let mut body = Vec::new();
        // A body that breaks off says what it said.
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(READ_BYTES - body.len())]);
            if body.len() == READ_BYTES {
                break;
            }
        }
        Self::of(status, response.headers(), &body, masker)
    }

    fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], masker: &Masker) -> Self {
        let (mut rpc, mut was_read) = (None, false);
        each_message(body, |message| {
            if let Message::Response { id, outcome: Err(error) } = message {
                was_read |= matches!(id, ResponseId::Ours(_) | ResponseId::OursAsText(_));
                rpc.get_or_insert_with(|| masked(error, masker));
            }
        });
        let metadata = text(headers, &header::WWW_AUTHENTICATE).and_then(challenge::resource_metadata);
        let metadata = metadata.map(|url| masker.mask(&url));
        Self { status, rpc, was_read, says: says(headers, body, masker), metadata }
    }

    /// Whether this says that the server does not know the session which the request named, so that the request was
    /// not processed: 404 by the rule (mcp.md §3.3), and 400 as some servers have it.
    ///
    /// A 400 has many other reasons, and what may have been processed is not sent again (S2): it counts only with one
    /// of the known texts, and never as an answer to the request itself, which a tool may have written.
    pub(crate) fn forgot_session(&self) -> bool {
        match self.status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST if !self.tells_modern() && !self.was_read => {
                let text = match &self.rpc {
                    Some(CallError::Rpc { message, .. }) => message.to_lowercase(),
                    _ => self.says.to_lowercase(),
                };
                UNKNOWN_SESSION.iter().any(|unknown| text.contains(unknown))
            }
            _ => false,
        }
    }

    /// The revision to offer when this refuses an `initialize` that offered `offered`, in words of its own.
    pub(crate) fn names_instead_of(&self, offered: &str) -> Option<&'static str> {
        let is_wrong_request = self.status == StatusCode::BAD_REQUEST && self.rpc.is_none();
        is_wrong_request.then(|| newest_legacy_named_in(&self.says.replace(offered, "")))?
    }

    /// Whether only a server of the modern era answers like this (mcp.md §3.2).
    pub(crate) fn tells_modern(&self) -> bool {
        let Some(CallError::Rpc { code, .. }) = &self.rpc else { return false };
        errors::is_modern(*code) || (self.status == StatusCode::NOT_FOUND && *code == errors::METHOD_NOT_FOUND)
    }

    /// As the port's error.
    pub(crate) fn to_call_error(&self, server: &str, method: &str) -> CallError {
        let Self { status, rpc, says, .. } = self;
        match (*status, rpc) {
            (StatusCode::UNAUTHORIZED, _) => {
                CallError::Denied(format!("{server} does not accept the credential, or wants one (HTTP 401){says}"))
            }
            (StatusCode::FORBIDDEN, _) => CallError::Denied(format!("{server} forbids `{method}` (HTTP 403){says}")),
            (_, Some(rpc)) => rpc.clone(),
            (_, None) => CallError::Malformed(format!("{server} answered `{method}` with HTTP {status}{says}")),
        }
    }

    /// What it says of where to authorise; starts with a semicolon, or is empty.
    pub(crate) fn where_to_authorise(&self) -> String {
        self.metadata.as_ref().map(|url| format!("; resource metadata: {url}")).unwrap_or_default()
    }

    /// The error when neither the access token nor a fresh one was accepted.
    pub(crate) fn asks_for_a_person(&self, server: &str) -> CallError {
        let (metadata, Self { status, says, .. }) = (self.where_to_authorise(), self);
        CallError::Denied(format!(
            "{server} accepts no access token of its `oauth` ({status}); reauthorisation needed{metadata}{says}"
        ))
    }
}

fn says(headers: &HeaderMap, body: &[u8], masker: &Masker) -> String {
    let challenge = text(headers, &header::WWW_AUTHENTICATE).unwrap_or_default();
    if challenge::parameter(challenge, "error").as_deref() == Some("insufficient_scope") {
        let scope = challenge::parameter(challenge, "scope").unwrap_or_else(|| "unnamed".to_owned());
        let scope = excerpt(scope.as_bytes(), masker);
        return format!(": the credential lacks the scope \"{scope}\"");
    }
    let mut says = String::new();
    if let Some(wait) = text(headers, &header::RETRY_AFTER) {
        says.push_str(&format!(", to be asked again after {:.40}", masker.mask(wait)));
    }
    let shown = excerpt(body, masker);
    if !shown.is_empty() {
        says.push_str(&format!(" ({}): {shown}", content_type(headers, masker)));
    }
    says
}

/// The media type of an answer, fit to be shown.
pub(crate) fn content_type(headers: &HeaderMap, masker: &Masker) -> String {
    let kind = text(headers, &header::CONTENT_TYPE).unwrap_or("no content type");
    masker.mask(kind).chars().take(SHOWN_HEADER_CHARS).collect()
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Refused {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect();
        let status = StatusCode::from_u16(status).unwrap();
        Refused::of(status, &headers, body.as_bytes(), &Masker::new(["hunter22".to_owned()]))
    }

    fn rpc(code: i64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"m"}}}}"#)
    }

    #[test]
    fn a_refused_credential_is_denied_and_a_lacking_scope_named() {
        let error = refused(401, &[], &rpc(-32000)).to_call_error("server `s`", "tools/call");
        assert!(matches!(&error, CallError::Denied(why) if why.contains("server `s`")), "{error}");
        let challenge = r#"Bearer error="insufficient_scope", scope="files:read files:write""#;
        let error = refused(403, &[("www-authenticate", challenge)], "").to_call_error("server `s`", "tools/call");
        assert!(matches!(&error, CallError::Denied(why) if why.contains("files:read files:write")), "{error}");
    }

    #[test]
    fn what_no_token_opens_asks_for_a_person_and_says_where() {
        let challenge = r#"Bearer error="invalid_token", resource_metadata="http://h/.well-known/x?k=hunter22""#;
        let error = refused(401, &[("www-authenticate", challenge)], "").asks_for_a_person("server `s`").to_string();
        assert!(error.contains("reauthorisation needed; resource metadata: http://h/.well-known/x"), "{error}");
        assert!(!error.contains("hunter22"), "{error}");
        let error = refused(401, &[], "").asks_for_a_person("server `s`").to_string();
        assert!(error.ends_with("reauthorisation needed"), "{error}");
    }

    #[test]
    fn an_error_in_the_body_is_the_servers_own() {
        let error = refused(400, &[], &rpc(-32602)).to_call_error("server `s`", "tools/call");
        assert!(matches!(error, CallError::Rpc { code: -32602, .. }), "{error}");
    }

    #[test]
    fn anything_else_shows_status_type_and_a_masked_excerpt() {
        let page = refused(502, &[("content-type", "text/html")], "<html>\nkey hunter22");
        let error = page.to_call_error("server `s`", "tools/list").to_string();
        assert_eq!(error, "server `s` answered `tools/list` with HTTP 502 Bad Gateway (text/html): <html>\\nkey ***");
    }

    #[test]
    fn the_era_is_told_by_recognised_codes_alone() {
        for code in [-32020, -32021, -32022] {
            assert!(refused(400, &[], &rpc(code)).tells_modern());
        }
        assert!(refused(404, &[], &rpc(-32601)).tells_modern());
        assert!(!refused(400, &[], &rpc(-32601)).tells_modern());
        assert!(!refused(404, &[], "").tells_modern());
        assert!(!refused(400, &[], &rpc(-32000)).tells_modern());
    }

    #[test]
    fn a_session_is_forgotten_only_where_the_answer_surely_says_so() {
        let rpc = |id: &str, code: i64, message: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
        };
        let said = |status, body: &str| refused(status, &[], body).forgot_session();
        assert!(said(404, ""));
        assert!(said(400, &rpc("null", -32000, "Bad Request: No valid session ID provided")));
        assert!(said(400, &rpc("\"server-error\"", -32600, "Session not found")));
        assert!(said(400, "Invalid session"));
        assert!(!said(500, "Invalid session"));
        assert!(!said(400, "no such file"));
        assert!(!said(400, &rpc("7", -32602, "Invalid session: log in to the shop first")), "an answer of a tool");
        assert!(!said(400, &rpc("null", -32020, "invalid session header")), "a modern error");
    }

    #[test]
    fn a_refusal_in_plain_words_may_name_other_revisions() {
        let plain = refused(400, &[], "unsupported 2025-11-25, use 2025-06-18 or 2024-11-05");
        assert_eq!(plain.names_instead_of("2025-11-25"), Some("2025-06-18"));
        assert_eq!(refused(500, &[], "2025-06-18").names_instead_of("2025-11-25"), None);
    }
}
