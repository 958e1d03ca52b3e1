//! What Caribou tells about itself: log lines on stderr, metrics for Prometheus, and over OTLP spans, metrics and log lines.
//!
//! Owns the one-time set-up and the last flush; what is told is decided where it happens. Nothing here may fail a
//! call: an exporter that cannot be reached drops what it has, and counts it.

mod lines;
mod log;
mod metrics;
mod otlp;
mod spans;
mod start;

pub(crate) use metrics::Metrics;
pub(crate) use start::{Telemetry, TelemetryError};
