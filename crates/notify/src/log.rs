//! The log as a receiver: one line for each event, without what the remote said.

use caribou_core::notification::Sink;
use caribou_ports::BoxFuture;
use caribou_ports::event_sink::{EventSink, Launched, Run, Told};
use serde::Deserialize;

/// Writes one line for each event.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogSink;

/// What the line says of the event: words of ours only.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    status: String,
    #[serde(default)]
    tracking_degraded: bool,
}

impl EventSink for LogSink {
    fn sink(&self) -> Sink {
        Sink::Log
    }

    fn launch<'a>(&'a self, told: &'a Told) -> BoxFuture<'a, Launched> {
        let line = serde_json::from_str(&told.body).unwrap_or(Line { status: String::new(), tracking_degraded: false });
        let Told { key, scope, server, .. } = told;
        let Line { status, tracking_degraded } = line;
        tracing::info!(
            task = %key.task, event = key.seq, user = %scope.user, thread = %scope.thread, %server, status,
            tracking_degraded, "a task has news"
        );
        Box::pin(async { Launched::Delivered })
    }

    fn look_up<'a>(&'a self, _: &'a Told, _: &'a str) -> BoxFuture<'a, Run> {
        Box::pin(async { Run::NotFound })
    }
}
