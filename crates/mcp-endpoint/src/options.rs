//! The settings of the MCP side, with their defaults.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_ports::store::ClientSessions;
use tokio_util::sync::CancellationToken;

use crate::protected::Protected;

/// Bounds of requests, and what the endpoint keeps sessions in.
#[derive(Clone)]
pub struct EndpointOptions {
    /// Where sessions of legacy clients are kept.
    pub sessions: Arc<dyn ClientSessions>,
    /// How many there may be.
    pub max_sessions: u32,
    /// One that nobody used for this long is gone.
    pub session_idle: Duration,
    /// A larger request body is refused with 413.
    pub max_body_bytes: usize,
    /// How long a client may take to send its body.
    pub body_timeout: Duration,
    /// The longest silence of an event stream: proxies cut idle ones, the strictest common ones after 30 s.
    pub keep_alive: Duration,
    /// How many standing event streams may be open.
    pub max_streams: usize,
    /// Cancelled when the replica stops: standing streams end, so that nobody waits for them.
    pub stopping: CancellationToken,
    /// Whether clients of HTTP+SSE (2024-11-05) are served too.
    pub http_sse: bool,
    /// What stands before the paths of this endpoint where clients see them: the path of a proxy without a slash at its
    /// end; usually empty.
    pub base_path: String,
    /// What clients are told of where tokens come from; `None` = callers have no tokens of an issuer.
    pub protected: Option<Protected>,
}

impl EndpointOptions {
    /// The defaults, with sessions kept in `sessions`.
    pub fn new(sessions: Arc<dyn ClientSessions>) -> Self {
        Self {
            sessions,
            max_sessions: 100_000,
            session_idle: Duration::from_secs(24 * 3_600),
            max_body_bytes: bounds::MAX_MESSAGE_BYTES,
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            max_streams: bounds::MAX_CALLS,
            stopping: CancellationToken::new(),
            http_sse: false,
            base_path: String::new(),
            protected: None,
        }
    }
}
