//! Stores unchanged polls together: most polls bring nothing new, and one statement for many costs a tenth (durability.md
//! 1.2). Whoever hands one over is done with it; a full queue makes it wait (invariant B1).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::task::Duty;
use caribou_ports::store::{TaskStore, Unchanged};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::message::Poller;
use super::metrics::TaskMetrics;
use super::settle::persist;
use crate::membership::Membership;

/// The queue.
pub(super) struct Batch(mpsc::Sender<Handed>);

enum Handed {
    Unchanged(Unchanged),
    /// Told when everything before it is stored, or lost.
    Flush(oneshot::Sender<()>),
}

struct Writer {
    store: Arc<dyn TaskStore>,
    membership: Membership,
    poller: Poller,
    metrics: TaskMetrics,
    handed: mpsc::Receiver<Handed>,
}

impl Batch {
    /// Ends when it is dropped.
    pub(super) fn open(
        store: Arc<dyn TaskStore>,
        membership: Membership,
        poller: Poller,
        metrics: TaskMetrics,
    ) -> Self {
        let (sender, handed) = mpsc::channel(bounds::TASK_BATCH * 4);
        tokio::spawn(Writer { store, membership, poller, metrics, handed }.run());
        Self(sender)
    }

    /// Hands one over.
    pub(super) async fn keep(&self, unchanged: Unchanged) {
        // The writer ends after us.
        let _ = self.0.send(Handed::Unchanged(unchanged)).await;
    }

    /// Resolves when everything that was handed over before is stored, or lost.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.0.send(Handed::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

impl Writer {
    async fn run(mut self) {
        while let Some(first) = self.handed.recv().await {
            let (mut batch, mut flushes) = (Vec::new(), Vec::new());
            take(first, &mut batch, &mut flushes);
            let due = Instant::now() + bounds::TASK_LINGER;
            while batch.len() < bounds::TASK_BATCH && flushes.is_empty() {
                match timeout_at(due, self.handed.recv()).await {
                    Ok(Some(next)) => take(next, &mut batch, &mut flushes),
                    Ok(None) | Err(_) => break,
                }
            }
            self.store(batch).await;
            for done in flushes {
                let _ = done.send(());
            }
        }
    }

    async fn store(&self, batch: Vec<Unchanged>) {
        if batch.is_empty() || !self.membership.may_act() {
            return;
        }
        let soonest = batch.iter().map(|one| one.again).min().unwrap_or(Duration::ZERO);
        if let Some(lost) = persist("unchanged polls", || self.store.keep(batch.clone())).await {
            self.metrics.fenced(lost.len());
            self.poller.due_in(Duty::Poll, soonest);
        }
    }
}

fn take(handed: Handed, batch: &mut Vec<Unchanged>, flushes: &mut Vec<oneshot::Sender<()>>) {
    match handed {
        Handed::Unchanged(one) => batch.push(one),
        Handed::Flush(done) => flushes.push(done),
    }
}
