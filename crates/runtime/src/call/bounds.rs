//! How long one call may take: the bound of the whole, and the longest silence, renewed by each progress report
//! (contract 4.5).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::ServerConfig;
use caribou_core::failure::Code;
use caribou_ports::mcp::ProgressSink;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::VerbError;

/// The bound of one call as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) deadline: Instant,
    /// How long that was from the start, for people.
    pub(crate) whole: Duration,
}

impl Bound {
    /// From now on.
    pub(crate) fn of(whole: Duration) -> Self {
        Self { deadline: Instant::now() + whole, whole }
    }

    /// It passed before anything was sent.
    pub(crate) fn not_called(&self, tool: &str, why: &str) -> VerbError {
        let bound = self.whole.as_secs_f64();
        VerbError::new(
            Code::Timeout,
            format!("tool `{tool}` was not called within {bound} s (the bound of the call): {why}"),
        )
    }

    /// It passed after the call was sent.
    pub(super) fn passed(&self, server: &ServerConfig, tool: &str) -> VerbError {
        timed_out(server, tool, "the bound of the call", self.whole)
    }

    /// It passed while an interceptor was shown the result.
    pub(super) fn not_shown(&self, tool: &str) -> VerbError {
        let bound = self.whole.as_secs_f64();
        let detail = format!(
            "tool `{tool}` was called and may have had effects, but an interceptor did not let its result pass within \
             {bound} s (the bound of the call)"
        );
        VerbError::new(Code::Timeout, detail)
    }
}

/// A bound passed after the call was sent.
pub(super) fn timed_out(server: &ServerConfig, tool: &str, which: &str, bound: Duration) -> VerbError {
    VerbError::new(
        Code::Timeout,
        format!(
            "tool `{tool}` of server `{}` did not answer within {} s ({which}); it was told to cancel, but it may \
             have had effects",
            server.shown_name(),
            bound.as_secs_f64()
        ),
    )
}

/// The longest silence of a call.
pub(super) struct Silence {
    longest: Duration,
    heard: Arc<Notify>,
}

impl Silence {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, heard: Arc::new(Notify::new()) }
    }
}

/// Where progress goes: to the caller, if one listens, and to the silence, if one is bounded.
pub(super) fn heard(caller: Option<ProgressSink>, silence: Option<&Silence>) -> Option<ProgressSink> {
    let Some(silence) = silence else { return caller };
    let heard = silence.heard.clone();
    Some(Arc::new(move |progress| {
        heard.notify_one();
        if let Some(caller) = &caller {
            caller(progress);
        }
    }))
}

/// Resolves with the bound when nothing was heard for that long; never without a bound.
pub(super) async fn too_silent(silence: Option<&Silence>) -> Duration {
    let Some(silence) = silence else { return std::future::pending().await };
    while tokio::time::timeout(silence.longest, silence.heard.notified()).await.is_ok() {}
    silence.longest
}
