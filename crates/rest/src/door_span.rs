//! The span of one request to the API (OpenTelemetry's conventions for HTTP servers), in the trace that its caller names.
//!
//! Names the route as it is declared, never the path: a path may hold anything. MCP requests have spans of their own; probes
//! and pages of documents have none.

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use caribou_core::ids::RequestId;
use caribou_trace::of_headers;
use tracing::field::Empty;
use tracing::instrument::Instrumented;
use tracing::{Instrument as _, Span};

/// What paths of the API begin with.
const API: &str = "/api/";

/// The span of one request, if anybody exports it.
pub(crate) struct DoorSpan(Span);

impl DoorSpan {
    /// Begins with what is known of the request.
    pub(crate) fn begin(request: &Request, id: &RequestId) -> Self {
        let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let Some(route) = route.filter(|route| route.starts_with(API)) else { return Self(Span::none()) };
        let method = method(request.method());
        let span = tracing::info_span!(
            "request",
            otel.name = %format_args!("{method} {route}"),
            otel.kind = "server",
            otel.status_code = Empty,
            http.request.method = method,
            http.route = route,
            http.response.status_code = Empty,
            "error.type" = Empty,
            request_id = %id,
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

    /// Notes how it was answered. Only what is our fault is a failure of the server (HTTP conventions, status).
    pub(crate) fn answered(&self, status: StatusCode) {
        self.0.record("http.response.status_code", status.as_u16());
        if status.is_server_error() {
            self.0.record("otel.status_code", "ERROR");
            self.0.record("error.type", status.as_str());
        }
    }
}

/// The method as the conventions name it: callers may send any word.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| method.as_str() == *known).unwrap_or("_OTHER")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_known_method_names_no_span() {
        assert_eq!(method(&Method::PATCH), "PATCH");
        assert_eq!(method(&Method::from_bytes(b"SECRET-123").unwrap()), "_OTHER");
    }
}
