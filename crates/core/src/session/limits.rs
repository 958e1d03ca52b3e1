//! How long one call may take (contract 4.5, architecture.md §9 and §10).

use std::time::Duration;

use crate::config::ServerConfig;

/// The bounds of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// From the moment the call is sent to its answer.
    pub total: Duration,
    /// The longest silence: renewed by each progress report.
    pub idle: Option<Duration>,
}

/// The bounds of one call to `server`: the caller's own, the server's, the transport's, and never more than `max`.
///
/// `tool_call_timeout` binds stdio calls; ordinary HTTP and SSE calls are bounded by `http` (contract 1.2).
pub fn call_limits(server: &ServerConfig, asked: Option<Duration>, http: Duration, max: Duration) -> CallLimits {
    let of_transport = if server.transport.owns_process() { server.tool_call_timeout } else { Some(http) };
    let total = [asked, of_transport].into_iter().flatten().fold(max, Duration::min);
    CallLimits { total, idle: server.tool_call_idle_timeout }
}
