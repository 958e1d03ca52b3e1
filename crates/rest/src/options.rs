//! The settings of the HTTP side, with their defaults.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;

/// Writes all metrics in the Prometheus text format.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// Tells whether new work is welcome; the error says why not and is shown to whoever asks.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

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
    /// The longest silence of an event stream: proxies cut idle ones, the strictest common ones after 30 s.
    pub keep_alive: Duration,
}

impl Default for RestOptions {
    /// No metrics, always ready, bodies as large as one MCP message.
    fn default() -> Self {
        Self {
            metrics: Arc::new(String::new),
            ready: Arc::new(|| Ok(())),
            max_body_bytes: bounds::MAX_MESSAGE_BYTES,
            body_timeout: Duration::from_secs(30),
            allowed_hosts: Vec::new(),
            keep_alive: Duration::from_secs(15),
        }
    }
}
