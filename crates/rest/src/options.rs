//! The settings of the HTTP side, with their defaults.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use caribou_core::bounds;
use tokio_util::sync::CancellationToken;

/// Writes all metrics in the Prometheus text format.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// Tells whether new work is welcome; the error says why not and is shown to whoever asks.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What a refused caller is told beside the challenge, at a path with these headers (RFC 9728 §5.1); `None` = nothing.
pub type ChallengeMore = Arc<dyn Fn(&HeaderMap, &str) -> Option<String> + Send + Sync>;

/// Bounds of requests, and what the routes beside the verbs answer with.
#[derive(Clone)]
pub struct RestOptions {
    /// The answer of `/metrics`. Must not block.
    pub metrics: MetricsText,
    /// The answer of `/readyz`. Must not block.
    pub ready: Readiness,
    /// A larger request body is refused with 413.
    pub max_body_bytes: usize,
    /// How long a caller may take to send its body.
    pub body_timeout: Duration,
    /// Hosts, besides loopback, that `Host` and `Origin` may name: those of a tunnel or sidecar in front.
    pub allowed_hosts: Vec<String>,
    /// Routes of another protocol on the same address. They stand in the same envelope: the caller of each request was
    /// told before, and is among its extensions.
    pub beside: Router,
    /// What a refused caller is told beside the challenge.
    pub challenge_more: Option<ChallengeMore>,
    /// The longest silence of an event stream: proxies cut idle ones, the strictest common ones after 30 s.
    pub keep_alive: Duration,
    /// Whether the web console is served, at `/console`.
    pub console: bool,
    /// Cancelled when the replica closes its doors: streams that have no end of their own end then.
    pub closing: CancellationToken,
}

impl Default for RestOptions {
    /// No metrics, always ready, bodies as large as one MCP message, the console served.
    fn default() -> Self {
        Self {
            metrics: Arc::new(String::new),
            ready: Arc::new(|| Ok(())),
            max_body_bytes: bounds::MAX_MESSAGE_BYTES,
            body_timeout: Duration::from_secs(30),
            allowed_hosts: Vec::new(),
            beside: Router::new(),
            challenge_more: None,
            keep_alive: Duration::from_secs(15),
            console: true,
            closing: CancellationToken::new(),
        }
    }
}
