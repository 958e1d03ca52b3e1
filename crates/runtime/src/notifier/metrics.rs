//! What telling a sink counts. Labels are words of ours, never of receivers or users.

use caribou_core::notification::Sink;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

/// The instruments of one sink.
pub(super) struct DeliveryMetrics {
    deliveries: Counter<u64>,
    sink: Sink,
}

impl DeliveryMetrics {
    pub(super) fn new(meter: &Meter, sink: Sink) -> Self {
        let deliveries = meter
            .u64_counter("caribou_task_deliveries")
            .with_description(
                "Attempts to tell of tasks by sink and outcome: told, launched, active, busy, refused, unclear, failed, \
                 not_looked_up, nobody_there, gone, given_up, superseded, fenced",
            )
            .build();
        Self { deliveries, sink }
    }

    pub(super) fn happened(&self, outcome: &'static str) {
        self.deliveries.add(1, &[KeyValue::new("sink", self.sink.word()), KeyValue::new("outcome", outcome)]);
    }
}
