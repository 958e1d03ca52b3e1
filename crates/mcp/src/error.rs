//! Errors of this crate, and failed requests of a bring-up translated into the port's errors.

use std::sync::Arc;

use caribou_core::masker::Masker;
use caribou_ports::mcp::{CallError, OpenError};
use serde_json::value::RawValue;

/// Why upstream servers cannot be reached at all.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamsError {
    /// The HTTP client cannot be built: no TLS provider, no system certificates.
    #[error("the HTTP client for upstream servers cannot be set up: {0}")]
    HttpClient(String),
}

/// The error of a bring-up whose request `asked` failed.
pub(crate) fn opening(server: &str, asked: &str, error: CallError) -> OpenError {
    match error {
        CallError::Disconnected { disconnect, .. } => OpenError::Exited(disconnect),
        CallError::NotSent(message) => OpenError::Unreachable(message),
        CallError::Denied(message) => OpenError::Denied(message),
        other => OpenError::Protocol(format!("server `{server}` did not accept `{asked}`: {other}")),
    }
}

/// The error without the secrets that a server repeats in it (invariant O3). Data that would be no JSON any more goes.
pub(crate) fn masked(error: CallError, masker: &Masker) -> CallError {
    let CallError::Rpc { code, message, data } = error else { return error };
    let data = data.and_then(|data| match masker.mask(data.get()) {
        same if same == data.get() => Some(data),
        masked => RawValue::from_string(masked).ok().map(Arc::from),
    });
    CallError::Rpc { code, message: masker.mask(&message), data }
}
