//! Stores what is buffered, a batch at a time. The only reader of the buffer; ends when it is told to, or when nobody
//! can write into it any more, and stores the rest then.

use std::sync::Arc;

use caribou_core::bounds;
use caribou_ports::store::{Audit, AuditRow};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::entry::Entry;
use super::metrics::AuditMetrics;
use crate::survived::survived;

/// The writer.
pub(super) struct Writer {
    pub(super) store: Arc<dyn Audit>,
    pub(super) rows: mpsc::Receiver<Entry>,
    pub(super) metrics: AuditMetrics,
}

impl Writer {
    /// Writes until `stop`, then what is left: rows that have begun by then are waited for.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        while let Some(batch) = self.gather(&mut stop).await {
            self.write(batch.into_iter().map(Entry::into_row).collect()).await;
            self.metrics.waiting(self.rows.len());
        }
    }

    /// The next batch: as many as there are within `AUDIT_LINGER` of the first. `None` when there will be none.
    async fn gather(&mut self, stop: &mut oneshot::Receiver<()>) -> Option<Vec<Entry>> {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                count = self.rows.recv_many(&mut batch, bounds::AUDIT_BATCH) => {
                    if count == 0 {
                        return None;
                    }
                    break;
                }
                // Sent, or dropped with all who could send rows.
                _ = &mut *stop, if !self.rows.is_closed() => self.rows.close(),
            }
        }
        if batch.len() < bounds::AUDIT_BATCH && !self.rows.is_closed() {
            // Asleep, not reading: whoever reads is woken by each row, and pays for it in each call.
            tokio::select! {
                () = sleep(bounds::AUDIT_LINGER) => {}
                _ = &mut *stop => self.rows.close(),
            }
            while batch.len() < bounds::AUDIT_BATCH
                && let Ok(row) = self.rows.try_recv()
            {
                batch.push(row);
            }
        }
        Some(batch)
    }

    /// Stores the batch, however often it takes: until then it is nowhere else. What the store may have taken is given
    /// to it again, because a row that stands there twice can be told, and one that is missing cannot.
    async fn write(&self, batch: Vec<AuditRow>) {
        let mut failed = 0_u32;
        loop {
            self.metrics.waiting(self.rows.len() + batch.len());
            let asked = timeout(bounds::AUDIT_APPEND, survived(self.store.append(batch.clone()))).await;
            let why = match asked {
                Ok(Some(Ok(()))) => break,
                Ok(Some(Err(error))) => error.to_string(),
                Ok(None) => "a fault of ours".to_owned(),
                Err(_) => format!("no answer within {} s", bounds::AUDIT_APPEND.as_secs()),
            };
            if failed == 0 {
                tracing::error!("the audit log cannot be written, its rows wait: {why}");
            }
            failed = failed.saturating_add(1);
            sleep(bounds::AUDIT_RETRY).await;
        }
        self.metrics.stored(batch.len() as u64);
        if failed > 0 {
            tracing::info!(failed, "the audit log is written again");
        }
    }
}
