//! Errors of this crate, and failed requests of a bring-up translated into the port's errors.

use caribou_ports::mcp::{CallError, OpenError};

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
