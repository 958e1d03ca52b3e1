//! How a call that failed is told. Whatever a server says of it, no secret of its configuration or of the call comes
//! along (invariant O3).

use std::sync::Arc;

use caribou_core::config::{Secret, ServerConfig};
use caribou_core::failure::Code;
use caribou_core::guardrails;
use caribou_core::masker::Masker;
use caribou_ports::mcp::CallError;
use serde_json::value::RawValue;

use crate::api::call_tool::CallTool;
use crate::error::{UpstreamError, VerbError};

/// The refusal of a call that guardrails do not let through.
pub(crate) fn kept_back(call: &CallTool, reason: guardrails::Reason) -> VerbError {
    tracing::info!(tool = call.name, session = %call.scope, request_id = %call.request_id, "denied: {reason}");
    VerbError::new(Code::Denied, format!("tool `{}` may not be called: {reason}", call.name))
}

/// The failure of a call with these header values.
pub(crate) fn call_failed<'v>(
    server: &ServerConfig,
    tool: &str,
    error: CallError,
    values: impl Iterator<Item = &'v Secret>,
) -> VerbError {
    let masker = server.masker.with(values.map(Secret::expose));
    let detail = masker.mask(&format!("tool `{tool}` of server `{}`: {error}", server.shown_name()));
    let code = error.code();
    let upstream = match error {
        CallError::Rpc { code, message, data } => {
            let data = data.and_then(|data| masked(data, &masker));
            Some(UpstreamError { code, message: masker.mask(&message), data })
        }
        _ => None,
    };
    VerbError { upstream, ..VerbError::new(code, detail) }
}

/// The data as it came, unless a secret stands in it; `None` when what is left would be no JSON.
fn masked(data: Arc<RawValue>, masker: &Masker) -> Option<Arc<RawValue>> {
    let text = masker.mask(data.get());
    if text == data.get() {
        return Some(data);
    }
    RawValue::from_string(text).ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use caribou_core::config::{Source, parse};

    use super::*;

    #[test]
    fn a_secret_that_a_server_repeats_is_masked_and_all_else_left_as_it_came() {
        // Invariants O3, W1.
        let text = br#"{"mcpServers": {"s": {"command": "x", "env": {"KEY": "hunter22"}}}}"#;
        let document = parse(&Source { file: Path::new("/test.json"), text }, &|_| None).unwrap();
        let server = document.servers[0].config.clone().unwrap();
        let failed = |data: &str| {
            let data = Some(Arc::from(RawValue::from_string(data.to_owned()).unwrap()));
            let error = CallError::Rpc { code: -1, message: "no hunter22 for Bearer of-ann".to_owned(), data };
            call_failed(&server, "t", error, [Secret::new("Bearer of-ann")].iter())
        };
        let error = failed(r#"{"b":1.0,"a":"of-ann"}"#);
        assert!(error.detail.ends_with("error -1: no *** for ***"), "{}", error.detail);
        let upstream = error.upstream.unwrap();
        assert_eq!(
            (upstream.message.as_str(), upstream.data.unwrap().get()),
            ("no *** for ***", r#"{"b":1.0,"a":"***"}"#)
        );
        assert_eq!(failed(r#"{"b":1.0}"#).upstream.unwrap().data.unwrap().get(), r#"{"b":1.0}"#);
    }
}
