//! Why a verb could not do what it was asked: one error for all ways in.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::identity::Refusal;
use serde_json::value::RawValue;

/// A verb that failed. Holds no secret; may be shown to whoever asked.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct VerbError {
    /// The word to branch on.
    pub code: Code,
    /// What happened, where, and what to do about it.
    pub detail: String,
    /// When trying again makes sense.
    pub retry_after: Option<Duration>,
    /// The JSON-RPC error of the upstream server, if it answered with one.
    pub upstream: Option<UpstreamError>,
    /// The OAuth scopes that the caller's token must hold, all of them, if it was refused for want of one.
    pub required_scopes: Option<Arc<[String]>>,
}

/// A JSON-RPC error of an upstream server, as it came.
#[derive(Clone, Debug)]
pub struct UpstreamError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// Its data.
    pub data: Option<Arc<RawValue>>,
}

impl VerbError {
    /// An error with nothing beside code and detail.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), retry_after: None, upstream: None, required_scopes: None }
    }

    /// A fault of ours, told by the log.
    pub(crate) fn fault() -> Self {
        Self::new(Code::Unavailable, "this is a fault of Caribou; its log says more")
    }
}

impl From<Refusal> for VerbError {
    fn from(refusal: Refusal) -> Self {
        let error = Self::new(Code::Denied, refusal.to_string());
        match refusal {
            Refusal::Scopes(required) => Self { required_scopes: Some(required), ..error },
            _ => error,
        }
    }
}
