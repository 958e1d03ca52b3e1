//! The span of one request of an MCP client (OpenTelemetry's conventions for MCP, server side), in the trace that the
//! client names: in `_meta` of the request, else in the headers of its POST (mcp.md §2.2).
//!
//! Names the method and the tool; arguments, results and the ids of sessions never (invariant O3).

use axum::http::HeaderMap;
use caribou_core::era::Era;
use caribou_core::raw::{Members, text};
use caribou_trace::{TraceContext, of_headers};
use serde_json::value::RawValue;
use tracing::field::{Empty, display};
use tracing::instrument::Instrumented;
use tracing::{Instrument as _, Span};

use crate::fault::Fault;
use crate::meta::RequestMeta;

/// Methods that name a span; clients may send any word.
const KNOWN: [&str; 19] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// The span of one request, if anybody exports it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WorkSpan(Span);

impl WorkSpan {
    /// Begins with what is known of the request.
    pub(crate) fn begin(
        (era, headers): (Era, &HeaderMap),
        (method, id, params): (&str, &RawValue, Option<&RawValue>),
        meta: &RequestMeta,
        request_id: &str,
    ) -> Self {
        let method = KNOWN.into_iter().find(|known| *known == method).unwrap_or("_OTHER");
        let span = tracing::info_span!(
            "mcp_request",
            otel.name = method,
            otel.kind = "server",
            otel.status_code = Empty,
            mcp.method.name = method,
            gen_ai.operation.name = Empty,
            gen_ai.tool.name = Empty,
            jsonrpc.request.id = id.get(),
            network.protocol.name = "http",
            network.transport = "tcp",
            %era,
            request_id,
            "error.type" = Empty,
            rpc.response.status_code = Empty,
        );
        if !span.is_disabled() {
            said(meta, headers).becomes_parent_of(&span);
            let tool = || text(Members::of(params?)?.get("name")?);
            if let Some(tool) = Some(method).filter(|method| *method == "tools/call").and_then(|_| tool()) {
                span.record("otel.name", display(format_args!("{method} {tool}")));
                span.record("gen_ai.operation.name", "execute_tool");
                span.record("gen_ai.tool.name", &*tool);
            }
        }
        Self(span)
    }

    /// Does the work of the request within the span.
    pub(crate) fn within<F: Future>(&self, work: F) -> Instrumented<F> {
        work.instrument(self.0.clone())
    }

    /// Notes how it went.
    pub(crate) fn ended<T>(&self, done: &Result<T, Fault>) {
        let Err(fault) = done else { return };
        self.0.record("rpc.response.status_code", display(fault.code));
        self.0.record("error.type", display(fault.code));
        self.0.record("otel.status_code", "ERROR");
    }
}

/// The context that a request brings. What stands in `_meta` is nearer to it than what its connection carries.
fn said(meta: &RequestMeta, headers: &HeaderMap) -> TraceContext {
    let of_meta = TraceContext::of(|key| {
        let (_, value) = meta.passed.iter().find(|(known, _)| known == key)?;
        Some(text(value)?.into_owned())
    });
    if of_meta.is_some() { of_meta } else { of_headers(headers) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_request_itself_counts_more_than_its_connection() {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static("of the connection"));
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let mut meta = RequestMeta::default();
        let parent = |meta: &RequestMeta| said(meta, &headers).members().next().map(|(_, value)| value.to_owned());
        assert_eq!(parent(&meta).as_deref(), Some("of the connection"));
        meta.passed.push(("traceparent".to_owned(), raw("7")));
        assert_eq!(parent(&meta).as_deref(), Some("of the connection"), "what is no text names nothing");
        meta.passed[0].1 = raw(r#""of the request""#);
        assert_eq!(parent(&meta).as_deref(), Some("of the request"));
    }
}
