//! Metrics for Prometheus.

pub(crate) mod read;
