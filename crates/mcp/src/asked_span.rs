//! The span of one request to a server, and what the server is told of it.
//!
//! Owns its attributes (OpenTelemetry's conventions for MCP, client side) and its outcome. Server, method and tool are
//! named; arguments, results, URLs and session ids never are (invariant O3). The context goes into `_meta`, which both
//! eras pass on (mcp.md §2.2), and into the headers of the same request, in the place of what a caller brought: that named
//! the span of an earlier hop. Without an exporter there is no span, and what a caller brought passes unchanged (W1).

use caribou_core::config::{Secret, ServerConfig};
use caribou_ports::mcp::CallError;
use caribou_trace::{KEYS, TraceContext};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tracing::field::{Empty, display};
use tracing::instrument::Instrumented;
use tracing::{Instrument as _, Span};

/// What calls a tool.
const TOOLS_CALL: &str = "tools/call";

/// Members of `_meta`.
type Members = Vec<(String, Box<RawValue>)>;

/// The span of one request.
pub(crate) struct AskedSpan {
    span: Span,
    is_call: bool,
}

/// Who is asked.
pub(crate) struct AskedServer {
    name: String,
    transport: &'static str,
}

impl AskedServer {
    /// This one.
    pub(crate) fn of(server: &ServerConfig) -> Self {
        let transport = if server.transport.owns_process() { "pipe" } else { "tcp" };
        Self { name: server.name.to_string(), transport }
    }
}

impl AskedSpan {
    /// Of a request of this method in the revision `version`; `tool` is the raw name of what a call calls.
    pub(crate) fn begin(server: &AskedServer, version: &str, method: &str, tool: Option<&str>) -> Self {
        let span = tracing::info_span!(
            "mcp_request",
            otel.name = %named(method, tool),
            otel.kind = "client",
            otel.status_code = Empty,
            mcp.method.name = method,
            mcp.protocol.version = version,
            gen_ai.operation.name = tool.map(|_| "execute_tool"),
            gen_ai.tool.name = tool,
            network.transport = server.transport,
            caribou.server = server.name,
            "error.type" = Empty,
            rpc.response.status_code = Empty,
        );
        Self { span, is_call: method == TOOLS_CALL }
    }

    /// Tells the server which span asks it.
    pub(crate) fn tell(&self, meta: &mut Members, headers: &mut Vec<(String, Secret)>) {
        let Some(context) = TraceContext::within(&self.span) else { return };
        meta.retain(|(key, _)| !KEYS.contains(&key.as_str()));
        headers.retain(|(name, _)| !KEYS.iter().any(|key| name.eq_ignore_ascii_case(key)));
        for (key, value) in context.members() {
            meta.extend(to_raw_value(value).map(|value| (key.to_owned(), value)));
            headers.push((key.to_owned(), Secret::new(value)));
        }
    }

    /// Waits for the answer within the span.
    pub(crate) fn within<F: Future>(&self, answer: F) -> Instrumented<F> {
        answer.instrument(self.span.clone())
    }

    /// Notes how a request went.
    pub(crate) fn answered(&self, answer: &Result<Box<RawValue>, CallError>) {
        self.ended(answer);
        if let Ok(result) = answer
            && self.is_call
            && !self.span.is_disabled()
            && is_failed_tool(result)
        {
            self.failed("tool_error");
        }
    }

    /// The same for whatever is answered.
    pub(crate) fn ended<T>(&self, answer: &Result<T, CallError>) {
        match answer {
            Ok(_) => {}
            Err(_) if self.span.is_disabled() => {}
            Err(CallError::Rpc { code, .. }) => {
                self.span.record("rpc.response.status_code", display(code));
                self.failed(&code.to_string());
            }
            Err(error) => self.failed(error.code().as_str()),
        }
    }

    fn failed(&self, kind: &str) {
        self.span.record("error.type", kind);
        self.span.record("otel.status_code", "ERROR");
    }
}

fn named(method: &str, tool: Option<&str>) -> String {
    tool.map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"))
}

/// Whether a result says that its tool failed.
fn is_failed_tool(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Failed {
        #[serde(default)]
        is_error: bool,
    }
    serde_json::from_str::<Failed>(result.get()).is_ok_and(|result| result.is_error)
}
