//! Spans, metrics and log lines over OTLP, when the settings or the variables of OpenTelemetry name a collector.
//!
//! Owns where each of the three goes and in which form, and that none of it holds anybody up: what cannot wait any more, or
//! does not arrive, is dropped and counted (invariant B1). Without a collector nothing is set up.

mod collector;
mod counted;
mod exporters;
mod sender;

pub(super) use collector::{Collector, Signal};
pub(super) use counted::{Counted, Queue, QueuedLogs, QueuedSpans};
pub(super) use exporters::Exporters;
