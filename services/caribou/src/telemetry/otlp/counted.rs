//! A bound on what waits to be exported, and a count of what never leaves.
//!
//! The SDK's own queues are bounded too, but tell nobody what they drop. So we count what goes in and what comes out, and
//! drop before they would.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::metrics::Counter;
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{BatchLogProcessor, LogBatch, LogExporter, LogProcessor, SdkLogRecord};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};

use super::collector::Signal;

/// What may wait of one signal when its variable says nothing: the specification's own.
const WAITING: usize = 2_048;

/// What waits of one signal. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::telemetry) struct Queue(Arc<Waiting>);

#[derive(Debug)]
struct Waiting {
    signal: Signal,
    most: usize,
    waiting: AtomicUsize,
    is_failing: AtomicBool,
    lost: OnceLock<Counter<u64>>,
}

impl Queue {
    /// Of this signal; as many may wait as this variable says, which the SDK reads for its own queue.
    pub(in crate::telemetry) fn of(signal: Signal, variable: &str) -> Self {
        let said = std::env::var(variable).ok().and_then(|text| text.trim().parse().ok());
        Self::bounded(signal, said.filter(|most| *most > 0).unwrap_or(WAITING))
    }

    fn bounded(signal: Signal, most: usize) -> Self {
        let (waiting, is_failing, lost) = (AtomicUsize::new(0), AtomicBool::new(false), OnceLock::new());
        Self(Arc::new(Waiting { signal, most, waiting, is_failing, lost }))
    }

    /// Shows the count before anything is lost. Metrics must be set up.
    pub(in crate::telemetry) fn begin(&self) {
        self.lose(0, "full");
        self.lose(0, "not_sent");
    }

    /// One more waits; false = there is no room, and it is lost.
    fn enter(&self) -> bool {
        let room = |waiting: usize| (waiting < self.0.most).then_some(waiting + 1);
        let is_in = self.0.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        if !is_in {
            self.lose(1, "full");
        }
        is_in
    }

    /// So many do not wait any more.
    fn leave(&self, count: usize) {
        let left = |waiting: usize| Some(waiting.saturating_sub(count));
        // Never refused: there is always a next value.
        let _ = self.0.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    }

    /// They were sent, or not.
    fn sent(&self, count: usize, sent: &OTelSdkResult) {
        let signal = self.0.signal.word();
        match sent {
            Ok(()) => {
                if self.0.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(signal, "the collector takes telemetry again");
                }
            }
            Err(_) => {
                self.lose(count, "not_sent");
                // Its own words may repeat what an operator wrote, so they are not told.
                if !self.0.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        signal,
                        "the collector does not take telemetry: what is not sent is dropped and counted"
                    );
                }
            }
        }
    }

    fn lose(&self, count: usize, why: &'static str) {
        let lost = self.0.lost.get_or_init(|| {
            let meter = opentelemetry::global::meter("caribou");
            meter
                .u64_counter("caribou_telemetry_lost")
                .with_description(
                    "Spans, log lines and collections of metrics that did not leave, by signal and reason",
                )
                .build()
        });
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        lost.add(count, &[KeyValue::new("signal", self.0.signal.word()), KeyValue::new("why", why)]);
    }
}

/// An exporter whose exports are counted.
#[derive(Debug)]
pub(in crate::telemetry) struct Counted<E> {
    pub(in crate::telemetry) exporter: E,
    pub(in crate::telemetry) queue: Queue,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.queue.leave(count);
        let sent = self.exporter.export(batch).await;
        self.queue.sent(count, &sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for Counted<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let count = batch.iter().count();
        self.queue.leave(count);
        let sent = self.exporter.export(batch).await;
        self.queue.sent(count, &sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Metrics do not queue: each collection holds everything, so a lost one is made good by the next.
impl<E: PushMetricExporter> PushMetricExporter for Counted<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let sent = self.exporter.export(metrics).await;
        self.queue.sent(1, &sent);
        sent
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

/// Spans on their way to the exporter.
#[derive(Debug)]
pub(in crate::telemetry) struct QueuedSpans {
    pub(in crate::telemetry) batches: BatchSpanProcessor,
    pub(in crate::telemetry) queue: Queue,
}

impl SpanProcessor for QueuedSpans {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.queue.enter() {
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Log lines on their way to the exporter.
#[derive(Debug)]
pub(in crate::telemetry) struct QueuedLogs {
    pub(in crate::telemetry) batches: BatchLogProcessor,
    pub(in crate::telemetry) queue: Queue,
}

impl LogProcessor for QueuedLogs {
    fn emit(&self, line: &mut SdkLogRecord, scope: &InstrumentationScope) {
        if self.queue.enter() {
            self.batches.emit(line, scope);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;
    use crate::telemetry::metrics;

    #[test]
    fn what_finds_no_room_is_dropped_and_counted_and_what_has_left_makes_room() {
        let metrics = metrics::start(Resource::builder().build(), None).unwrap().shown;
        let queue = Queue::bounded(Signal::Traces, 2);
        queue.begin();
        assert_eq!([(); 3].map(|()| queue.enter()), [true, true, false]);
        queue.leave(2);
        assert!(queue.enter());
        queue.leave(5);
        assert_eq!([(); 3].map(|()| queue.enter()), [true, true, false], "never less than nothing waits");
        queue.sent(7, &Err(OTelSdkError::InternalFailure("away".to_owned())));
        assert!(queue.0.is_failing.load(Ordering::Relaxed));
        queue.sent(7, &Ok(()));
        assert!(!queue.0.is_failing.load(Ordering::Relaxed));
        let text = metrics.render();
        for counted in [r#"signal="traces",why="full"} 2"#, r#"signal="traces",why="not_sent"} 7"#] {
            assert!(text.contains(&format!("caribou_telemetry_lost_total{{{counted}")), "{counted}: {text}");
        }
    }
}
