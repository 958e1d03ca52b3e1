//! What following tasks counts. Labels are words of ours, never of servers or users.

use std::time::Duration;

use caribou_core::task::Duty;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

/// The instruments.
#[derive(Clone)]
pub(crate) struct TaskMetrics {
    polls: Counter<u64>,
    claims: Counter<u64>,
    fenced: Counter<u64>,
    lag: Histogram<f64>,
    oldest: Gauge<f64>,
}

impl TaskMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            polls: meter
                .u64_counter("caribou_task_polls")
                .with_description(
                    "Attempts for tasks by duty and outcome: unchanged, changed, ended, put_off, released",
                )
                .build(),
            claims: meter.u64_counter("caribou_task_claims").with_description("Work on tasks claimed, by duty").build(),
            fenced: meter
                .u64_counter("caribou_task_fenced")
                .with_description("Outcomes dropped because their claim was lost")
                .build(),
            lag: meter
                .f64_histogram("caribou_task_due_lag")
                .with_unit("s")
                .with_description("From when the first work of a pass was known to be due to its claim")
                .build(),
            oldest: meter
                .f64_gauge("caribou_task_oldest_due")
                .with_unit("s")
                .with_description("How long work has been known to be due without being claimed, by duty")
                .build(),
        }
    }

    pub(super) fn ended(&self, duty: Duty, outcome: &'static str) {
        self.polls.add(1, &[KeyValue::new("duty", word(duty)), KeyValue::new("outcome", outcome)]);
    }

    pub(super) fn claimed(&self, duty: Duty, count: usize, lag: Option<Duration>) {
        self.claims.add(count as u64, &[KeyValue::new("duty", word(duty))]);
        if let Some(lag) = lag {
            self.lag.record(lag.as_secs_f64(), &[KeyValue::new("duty", word(duty))]);
        }
    }

    pub(super) fn fenced(&self, count: usize) {
        self.fenced.add(count as u64, &[]);
    }

    pub(super) fn oldest_due(&self, duty: Duty, waits: Duration) {
        self.oldest.record(waits.as_secs_f64(), &[KeyValue::new("duty", word(duty))]);
    }
}

pub(super) fn word(duty: Duty) -> &'static str {
    match duty {
        Duty::Submit => "submit",
        Duty::Poll => "poll",
        Duty::Cancel => "cancel",
        Duty::Quarantine => "quarantine",
        Duty::Answer => "answer",
    }
}
