//! What the audit log counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::metrics::{Counter, Gauge, Meter};

/// The instruments.
#[derive(Clone)]
pub(super) struct AuditMetrics {
    rows: Counter<u64>,
    dropped: Counter<u64>,
    refused: Counter<u64>,
    gauge: Gauge<u64>,
    /// What the gauge shows.
    buffered: Arc<AtomicU64>,
}

impl AuditMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        let metrics = Self {
            rows: meter.u64_counter("caribou_audit_rows").with_description("Audit rows stored").build(),
            dropped: meter
                .u64_counter("caribou_audit_dropped")
                .with_description("Audit rows that were never stored: their work was done without a record")
                .build(),
            refused: meter
                .u64_counter("caribou_audit_refused")
                .with_description("Requests refused because their audit row had no place")
                .build(),
            gauge: meter
                .u64_gauge("caribou_audit_buffered")
                .with_description("Audit rows waiting for the store, as of the last look")
                .build(),
            buffered: Arc::default(),
        };
        // Seen from the start, so that a first increase is one.
        metrics.dropped(0);
        metrics
    }

    pub(super) fn stored(&self, rows: u64) {
        self.rows.add(rows, &[]);
    }

    pub(super) fn dropped(&self, rows: u64) {
        self.dropped.add(rows, &[]);
    }

    pub(super) fn refused(&self) {
        self.refused.add(1, &[]);
    }

    /// So many rows wait.
    pub(super) fn waiting(&self, rows: usize) {
        self.buffered.store(rows as u64, Ordering::Relaxed);
        self.gauge.record(rows as u64, &[]);
    }

    /// How many rows waited at the last look.
    pub(super) fn buffered(&self) -> u64 {
        self.buffered.load(Ordering::Relaxed)
    }
}
