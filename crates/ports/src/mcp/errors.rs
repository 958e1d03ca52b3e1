//! Why a session was not opened, why a call has no result, and how a session ended by itself. Messages hold no secret.

use std::fmt;
use std::sync::Arc;

use caribou_core::failure::Code;
use serde_json::value::RawValue;

use crate::guard::Exit;

/// How a session ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disconnect {
    /// What happened, for people; holds no secret.
    pub reason: String,
    /// How the child exited, if there was one.
    pub exit: Option<Exit>,
    /// The child's last stderr lines, secrets masked.
    pub stderr: String,
}

impl fmt::Display for Disconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if let Some(exit) = self.exit {
            write!(f, " ({exit})")?;
        }
        if !self.stderr.is_empty() {
            write!(f, "; last lines of its stderr:\n{}", self.stderr)?;
        }
        Ok(())
    }
}

/// Why a session was not opened. Messages name server and bound, and hold no secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The bring-up took longer than its bound.
    #[error("{message}")]
    Timeout {
        /// Names the server, the bound, what was waited for, and the last stderr lines.
        message: String,
    },
    /// The child ended before it answered.
    #[error("{0}")]
    Exited(Disconnect),
    /// The child cannot be started at all.
    #[error("{0}")]
    NotStartable(String),
    /// The server cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The server refused the credential, or there is none for it.
    #[error("{0}")]
    Denied(String),
    /// The server does not speak a protocol that we do.
    #[error("{0}")]
    Protocol(String),
    /// The bound passed for the most part in a queue of ours: it says nothing about the server.
    #[error("{0}")]
    Queued(String),
    /// Nobody wanted the session any more.
    #[error("the session was closed while it was being opened")]
    Abandoned,
}

impl OpenError {
    /// The word a caller branches on.
    pub fn code(&self) -> Code {
        match self {
            Self::Timeout { .. } => Code::Timeout,
            Self::Exited(_) | Self::NotStartable(_) | Self::Unreachable(_) => Code::Unavailable,
            Self::Denied(_) => Code::Denied,
            Self::Protocol(_) => Code::UpstreamError,
            Self::Queued(_) => Code::Busy,
            Self::Abandoned => Code::SessionEnded,
        }
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with error {code}: {message}")]
    Rpc {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
        /// Its data.
        data: Option<Arc<RawValue>>,
    },
    /// The session ended before the answer. `sent` tells whether the server may have seen the call.
    #[error("connection closed: {disconnect}")]
    Disconnected {
        /// How it ended.
        disconnect: Disconnect,
        /// Whether bytes of the call may have reached the server.
        sent: bool,
    },
    /// The call surely did not reach the server.
    #[error("{0}")]
    NotSent(String),
    /// As many calls are in flight as may be; the call surely did not reach the server.
    #[error("{0}")]
    Busy(String),
    /// The answer's stream broke off before the answer; the session is still usable.
    #[error("{0}")]
    StreamEnded(String),
    /// The server refused the credential.
    #[error("{0}")]
    Denied(String),
    /// The call that is to go on does not wait here; nothing was sent. Says why.
    #[error("{0}")]
    NotParked(String),
    /// The server answered with something that is not an answer.
    #[error("{0}")]
    Malformed(String),
    /// The answer came and cannot be read, by anybody: it is not UTF-8, or not JSON.
    #[error("{0}")]
    Unreadable(String),
    /// The answer is larger than the bound; nothing of it is passed on.
    #[error("the answer is larger than {limit} bytes and was refused; raise `max_tool_result_bytes` of this server")]
    TooLarge {
        /// The bound in bytes.
        limit: usize,
    },
}

impl CallError {
    /// The word a caller branches on.
    pub fn code(&self) -> Code {
        match self {
            Self::Rpc { .. } | Self::Malformed(_) | Self::Unreadable(_) | Self::TooLarge { .. } => Code::UpstreamError,
            Self::Disconnected { sent: true, .. } | Self::StreamEnded(_) => Code::OutcomeUnknown,
            Self::Disconnected { sent: false, .. } | Self::NotParked(_) => Code::SessionEnded,
            Self::NotSent(_) => Code::Unavailable,
            Self::Busy(_) => Code::Busy,
            Self::Denied(_) => Code::Denied,
        }
    }
}
