//! What Caribou tells about itself: log lines on stderr, spans over OTLP, metrics for Prometheus.
//!
//! Owns the one-time set-up and the last flush; what is told is decided where it happens. Nothing here may fail a
//! call: an exporter that cannot be reached drops what it has.

mod log;
mod metrics;
mod spans;
mod start;

pub(crate) use metrics::Metrics;
pub(crate) use start::Telemetry;
