//! The span of one request (OpenTelemetry's conventions for gRPC servers), in the trace that its caller names.
//!
//! A request of another replica has one only when it stands in a trace: their hints would drown everything else. Standing
//! streams of watchers have none, since they end when their watcher does.

use caribou_trace::of_headers;
use http::{HeaderMap, Request};
use tonic::Code;
use tracing::field::Empty;
use tracing::instrument::Instrumented;
use tracing::{Instrument as _, Span};

use crate::peer::is_exchange;
use crate::server::is_conversation;

/// What paths of our public services begin with.
const PUBLIC: &str = "/caribou.v1.";

/// What paths of requests between replicas begin with.
const PEERS: &str = "/caribou.peer.v1.";

/// The longest name of a method: that of none of ours is as long, and callers may send any.
const LONGEST: usize = 64;

/// The span of one request, if anybody exports it.
pub(crate) struct DoorSpan(Span);

impl DoorSpan {
    /// Begins with what is known of the request.
    pub(crate) fn begin<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        let method = path.strip_prefix('/').filter(|method| method.len() <= LONGEST);
        let Some(method) = method.filter(|_| is_spanned(path, request.headers())) else { return Self(Span::none()) };
        let span = tracing::info_span!(
            "request",
            otel.name = method,
            otel.kind = "server",
            otel.status_code = Empty,
            rpc.system.name = "grpc",
            rpc.method = method,
            rpc.response.status_code = Empty,
            "error.type" = Empty,
        );
        if !span.is_disabled() {
            of_headers(request.headers()).becomes_parent_of(&span);
        }
        Self(span)
    }

    /// Does the work of the request within the span.
    pub(crate) fn within<F: Future>(&self, work: F) -> Instrumented<F> {
        work.instrument(self.0.clone())
    }

    /// Notes how it was refused: the head of an answer says so when nothing else follows it.
    pub(crate) fn answered(&self, headers: &HeaderMap) {
        let Some(status) = headers.get("grpc-status") else { return };
        let code = Code::from_bytes(status.as_bytes());
        let name = name(code);
        self.0.record("rpc.response.status_code", name);
        if matches!(code, Code::Unknown | Code::DeadlineExceeded | Code::Internal | Code::Unavailable | Code::DataLoss)
        {
            self.0.record("otel.status_code", "ERROR");
            self.0.record("error.type", name);
        }
    }
}

fn is_spanned(path: &str, headers: &HeaderMap) -> bool {
    let is_watched = is_conversation(path) && !is_exchange(path);
    (path.starts_with(PUBLIC) && !is_watched) || (path.starts_with(PEERS) && headers.contains_key("traceparent"))
}

/// The code as the specification of gRPC spells it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn hints_of_replicas_and_watchers_have_no_span() {
        let mut headers = HeaderMap::new();
        assert!(is_spanned("/caribou.v1.ToolService/CallTool", &headers));
        assert!(!is_spanned("/caribou.v1.TaskService/Watch", &headers), "it ends when its watcher does");
        assert!(!is_spanned("/grpc.health.v1.Health/Check", &headers));
        assert!(!is_spanned("/caribou.peer.v1.SessionService/Nudge", &headers));
        headers.insert("traceparent", HeaderValue::from_static("00"));
        assert!(is_spanned("/caribou.peer.v1.SessionService/Exchange", &headers));
    }
}
