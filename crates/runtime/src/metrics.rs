//! What the runtime counts. Names are those of the OpenTelemetry metrics API; `/metrics` shows them with Prometheus'
//! suffixes (`caribou_calls_total`, `caribou_call_duration_seconds`, …).
//!
//! Labels are names of servers and of tools that servers listed: never arguments, users, threads or URLs. All personal
//! connections are one server here, without tools: their number has no bound, and they are nobody else's business.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::{ServerConfig, personal};
use caribou_core::ids::ServerName;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter, UpDownCounter};

/// The label of all personal connections.
const PERSONAL: &str = "personal";

/// The instruments.
pub(crate) struct Metrics {
    calls: Counter<u64>,
    duration: Histogram<f64>,
    sessions: UpDownCounter<i64>,
    starts: Counter<u64>,
    failed_starts: Counter<u64>,
    reaped: Counter<u64>,
    oddities: Counter<u64>,
    oauth_refreshes: Counter<u64>,
    oauth_waits: Counter<u64>,
    oauth_unknown: Counter<u64>,
    oauth_unsaved: Counter<u64>,
    config_stale: Gauge<u64>,
    resets: Counter<u64>,
    peer_calls: Counter<u64>,
}

/// The labels of one tool, made once.
pub(crate) type ToolLabels = Arc<[KeyValue; 2]>;

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            calls: meter.u64_counter("caribou_calls").with_description("Tool calls by outcome").build(),
            duration: meter
                .f64_histogram("caribou_call_duration")
                .with_unit("s")
                .with_description("Time from admission to answer")
                .build(),
            sessions: meter
                .i64_up_down_counter("caribou_sessions_live")
                .with_description("Sessions live, being opened or closing; `transport` stdio counts children")
                .build(),
            starts: meter.u64_counter("caribou_session_starts").with_description("Bring-ups begun").build(),
            failed_starts: meter
                .u64_counter("caribou_session_start_failures")
                .with_description("Bring-ups that failed, and sessions that ended at once without an answer")
                .build(),
            reaped: meter
                .u64_counter("caribou_sessions_reaped")
                .with_description("Sessions closed without anybody asking, by reason")
                .build(),
            oddities: meter
                .u64_counter("caribou_oddities")
                .with_description("Times a server strayed from the protocol and was put up with, by kind")
                .build(),
            oauth_refreshes: meter
                .u64_counter("caribou_oauth_refreshes")
                .with_description("Token requests by outcome: given, not_sent, refused, unusable, unknown")
                .build(),
            oauth_waits: meter
                .u64_counter("caribou_oauth_waits")
                .with_description("Times a token was waited for because another replica refreshed it")
                .build(),
            oauth_unknown: meter
                .u64_counter("caribou_oauth_unknown")
                .with_description("Presentations of a refresh token of which nobody knows what became")
                .build(),
            oauth_unsaved: meter
                .u64_counter("caribou_oauth_unsaved")
                .with_description("Times new tokens came and could not be stored at once")
                .build(),
            config_stale: meter
                .u64_gauge("caribou_config_stale")
                .with_description("1 while the stored configuration cannot be used and the last good one is in force")
                .build(),
            resets: meter
                .u64_counter("caribou_resets_heard")
                .with_description(
                    "Times something was superseded because another replica did so: global, or one server",
                )
                .build(),
            peer_calls: meter
                .u64_counter("caribou_peer_calls")
                .with_description("Requests of other replicas in sessions that live here: taken, joined, or why not")
                .build(),
        }
    }

    pub(crate) fn tool_labels(server: &ServerConfig, tool: &str) -> ToolLabels {
        let tool = if server.is_personal() { "" } else { tool };
        Arc::new([KeyValue::new("server", label(&server.name)), KeyValue::new("tool", tool.to_owned())])
    }

    pub(crate) fn called(&self, labels: &ToolLabels, outcome: &'static str, took: Duration) {
        let [server, tool] = &**labels;
        self.calls.add(1, &[server.clone(), tool.clone(), KeyValue::new("outcome", outcome)]);
        self.duration.record(took.as_secs_f64(), &labels[..]);
    }

    pub(crate) fn session_opening(&self, server: &ServerConfig) {
        self.sessions.add(1, &of_session(server));
        self.starts.add(1, &of_session(server));
    }

    pub(crate) fn session_gone(&self, server: &ServerConfig, never_lived: bool) {
        self.sessions.add(-1, &of_session(server));
        if never_lived {
            self.failed_starts.add(1, &of_session(server));
        }
    }

    pub(crate) fn session_reaped(&self, server: &ServerConfig, reason: &'static str) {
        let [name, transport] = of_session(server);
        self.reaped.add(1, &[name, transport, KeyValue::new("reason", reason)]);
    }

    pub(crate) fn odd(&self, server: &ServerName, kind: &'static str) {
        self.oddities.add(1, &[KeyValue::new("server", label(server)), KeyValue::new("kind", kind)]);
    }

    pub(crate) fn refreshed(&self, server: &ServerName, outcome: &'static str) {
        let server = KeyValue::new("server", label(server));
        self.oauth_refreshes.add(1, &[server, KeyValue::new("outcome", outcome)]);
    }

    pub(crate) fn token_awaited(&self, server: &ServerName) {
        self.oauth_waits.add(1, &[KeyValue::new("server", label(server))]);
    }

    pub(crate) fn presentation_unknown(&self, server: &ServerName) {
        self.oauth_unknown.add(1, &[KeyValue::new("server", label(server))]);
    }

    pub(crate) fn tokens_unsaved(&self, server: &ServerName) {
        self.oauth_unsaved.add(1, &[KeyValue::new("server", label(server))]);
    }

    pub(crate) fn reset_heard(&self, of: &'static str) {
        self.resets.add(1, &[KeyValue::new("of", of)]);
    }

    pub(crate) fn peer_called(&self, outcome: &'static str) {
        self.peer_calls.add(1, &[KeyValue::new("outcome", outcome)]);
    }

    pub(crate) fn config_stale(&self, stale: bool) {
        self.config_stale.record(stale.into(), &[]);
    }
}

fn of_session(server: &ServerConfig) -> [KeyValue; 2] {
    [KeyValue::new("server", label(&server.name)), KeyValue::new("transport", server.transport.name())]
}

fn label(server: &ServerName) -> String {
    if personal::is_runtime_name(server) { PERSONAL.to_owned() } else { server.as_str().to_owned() }
}
