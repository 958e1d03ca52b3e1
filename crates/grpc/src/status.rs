//! What a caller reads when something failed: a gRPC status, and in its trailing metadata the word to branch on.
//!
//! Owns the mapping from [`Code`] to gRPC codes. `caribou-code` is the same word as `code` over REST, `retry-after`
//! whole seconds, `caribou-upstream-bin` the JSON-RPC error of the MCP server as JSON, `caribou-required-scopes` what the
//! caller's token must hold. All of it must fit into the 8 KiB of headers that common clients take, so what is too long is
//! cut or left out. Holds no secret.

use std::time::Duration;

use bytes::Bytes;
use caribou_core::failure::Code;
use caribou_core::ids::RequestId;
use caribou_runtime::{UpstreamError, VerbError};
use serde::Serialize;
use serde_json::value::RawValue;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code as Grpc, Status};

/// The word to branch on.
const CARIBOU_CODE: &str = "caribou-code";

/// When trying again makes sense, in seconds.
const RETRY_AFTER: &str = "retry-after";

/// The JSON-RPC error of the server.
const UPSTREAM: &str = "caribou-upstream-bin";

/// What `busy` advises when the verb names no time: room is made by calls that end, usually within a second.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// The OAuth scopes that the caller's token must hold, parted by blanks.
const REQUIRED_SCOPES: &str = "caribou-required-scopes";

/// The longest message, in bytes: each may be written as three on the wire.
const LONGEST_MESSAGE: usize = 1_536;

/// The longest JSON of a server's error; on the wire it is a third longer.
const LONGEST_UPSTREAM: usize = 1_536;

/// The status of a verb that failed.
pub(crate) fn of(error: VerbError) -> Status {
    let retry_after = error.retry_after.or((error.code == Code::Busy).then_some(BUSY_RETRY));
    let mut metadata = MetadataMap::new();
    metadata.insert(CARIBOU_CODE, MetadataValue::from_static(error.code.as_str()));
    if let Some(wait) = retry_after {
        let seconds = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
        metadata.insert(RETRY_AFTER, seconds.into());
    }
    let scopes = error.required_scopes.as_ref().map(|scopes| scopes.join(" "));
    if let Some(scopes) = scopes.and_then(|scopes| scopes.parse().ok()) {
        metadata.insert(REQUIRED_SCOPES, scopes);
    }
    if let Some(upstream) = error.upstream.as_ref().and_then(written) {
        metadata.insert_bin(UPSTREAM, MetadataValue::from_bytes(&upstream));
    }
    Status::with_metadata(grpc_code(error.code), cut(error.detail), metadata)
}

/// A request that is well formed and means nothing we can do.
pub(crate) fn invalid(detail: impl Into<String>) -> Status {
    of(VerbError::new(Code::Invalid, detail))
}

/// Whoever asks has not shown who it is.
pub(crate) fn unauthenticated(detail: impl Into<String>) -> Status {
    with_code(Grpc::Unauthenticated, &of(VerbError::new(Code::Denied, detail)))
}

/// The caller's own deadline passed.
pub(crate) fn too_late() -> Status {
    of(VerbError::new(Code::Timeout, "the answer was not ready within the caller's `grpc-timeout`"))
}

/// Notes that the request `id` met a panic. The payload is not repeated: it may hold anything.
pub(crate) fn panicked(id: &RequestId) -> Status {
    tracing::error!(request_id = %id, "a request met a panic");
    with_code(Grpc::Internal, &of(VerbError::new(Code::Unavailable, "this is a fault of Caribou; its log says more")))
}

/// The same under a gRPC code that is not that of its word.
fn with_code(code: Grpc, status: &Status) -> Status {
    Status::with_metadata(code, status.message(), status.metadata().clone())
}

/// The gRPC code of a verb that failed with `code`.
///
/// `UNAVAILABLE`, which clients may be told to repeat, is only what surely did nothing. What a server did wrong, and
/// what nobody can tell, is `UNKNOWN`.
fn grpc_code(code: Code) -> Grpc {
    match code {
        Code::NotFound => Grpc::NotFound,
        Code::Denied => Grpc::PermissionDenied,
        Code::Invalid => Grpc::InvalidArgument,
        Code::Conflict | Code::ConfigChanged => Grpc::Aborted,
        Code::OutcomeUnknown | Code::UpstreamError => Grpc::Unknown,
        Code::Busy => Grpc::ResourceExhausted,
        Code::SessionEnded | Code::Unavailable => Grpc::Unavailable,
        Code::Timeout => Grpc::DeadlineExceeded,
    }
}

fn cut(mut detail: String) -> String {
    if detail.len() > LONGEST_MESSAGE {
        detail.truncate(detail.floor_char_boundary(LONGEST_MESSAGE));
        detail.push_str(" ... (cut)");
    }
    detail
}

/// A JSON-RPC error of a server.
#[derive(Serialize)]
struct Upstream<'e> {
    code: i64,
    message: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'e RawValue>,
}

/// Its JSON: without its data when it is too long with it, and nothing when it is too long even so.
fn written(error: &UpstreamError) -> Option<Bytes> {
    let of = |data| serde_json::to_vec(&Upstream { code: error.code, message: &error.message, data }).ok();
    let texts = [of(error.data.as_deref()), of(None)];
    texts.into_iter().flatten().find(|text| text.len() <= LONGEST_UPSTREAM).map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadatum(status: &Status, name: &str) -> Option<String> {
        status.metadata().get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn every_code_is_an_error_and_carries_its_word() {
        for code in Code::ALL {
            let status = of(VerbError::new(code, "why"));
            assert_ne!(status.code(), Grpc::Ok, "{code}");
            assert_eq!(metadatum(&status, CARIBOU_CODE).as_deref(), Some(code.as_str()));
            assert_eq!(status.message(), "why");
        }
    }

    #[test]
    fn only_what_surely_did_nothing_may_be_repeated_unasked() {
        // Invariant S2: clients may be told to repeat what is UNAVAILABLE.
        use caribou_core::failure::Class;
        for code in Code::ALL {
            assert!(grpc_code(code) != Grpc::Unavailable || code.class() == Class::Retry, "{code}");
        }
    }

    #[test]
    fn busy_always_names_a_wait_and_waits_are_whole_seconds() {
        assert_eq!(metadatum(&of(VerbError::new(Code::Busy, "full")), RETRY_AFTER).as_deref(), Some("1"));
        let wait = Some(Duration::from_millis(1_001));
        let status = of(VerbError { retry_after: wait, ..VerbError::new(Code::Unavailable, "down") });
        assert_eq!(metadatum(&status, RETRY_AFTER).as_deref(), Some("2"));
        assert_eq!(metadatum(&of(VerbError::new(Code::Timeout, "late")), RETRY_AFTER), None);
    }

    #[test]
    fn whoever_lacks_a_scope_reads_all_that_it_must_hold() {
        let scopes = ["a:read", "b"].map(str::to_owned);
        let status = of(VerbError { required_scopes: Some(scopes.into()), ..VerbError::new(Code::Denied, "why") });
        assert_eq!(status.code(), Grpc::PermissionDenied);
        assert_eq!(metadatum(&status, REQUIRED_SCOPES).as_deref(), Some("a:read b"));
        assert_eq!(metadatum(&of(VerbError::new(Code::Denied, "why")), REQUIRED_SCOPES), None);
    }

    #[test]
    fn a_status_always_fits_into_headers() {
        let upstream = |data: &str| UpstreamError {
            code: -32602,
            message: "no".to_owned(),
            data: Some(RawValue::from_string(data.to_owned()).unwrap().into()),
        };
        let status = |data: &str| {
            let detail = "\u{fc}".repeat(5_000);
            of(VerbError { upstream: Some(upstream(data)), ..VerbError::new(Code::UpstreamError, detail) })
        };
        let shown = |data: &str| {
            let status = status(data);
            assert!(status.message().len() < LONGEST_MESSAGE + 20 && status.message().ends_with("(cut)"));
            let json = status.metadata().get_bin(UPSTREAM).unwrap().to_bytes().unwrap();
            String::from_utf8(json.to_vec()).unwrap()
        };
        assert_eq!(shown(r#"{"f":1.0}"#), r#"{"code":-32602,"message":"no","data":{"f":1.0}}"#);
        assert_eq!(shown(&format!("\"{}\"", "x".repeat(5_000))), r#"{"code":-32602,"message":"no"}"#);
    }
}
