//! Writes what came of an attempt, under its claim (invariant C1). What is refused is dropped: somebody else has the
//! task, or was told to cancel it (C2).

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Class;
use caribou_core::task::Duty;
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    AttemptFailed, BroughtAnswer, Change, ClaimedTask, Settled, StoreError, TaskClaim, Unchanged, Wake,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::desk::Desk;
use super::outcome::Outcome;

/// The first wait before the store is asked again.
const FIRST_WAIT: Duration = Duration::from_millis(100);

impl Desk {
    /// Stores an outcome. Without trust nothing is stored; the claim expires.
    pub(super) async fn settle(&self, task: &ClaimedTask, outcome: Outcome) {
        if !self.membership.may_act() {
            tracing::warn!(task = %task.claim.task, "not stored: the lease of this replica is over");
            return;
        }
        match outcome {
            Outcome::Keep(again) => {
                self.metrics.ended(task.duty, "unchanged");
                self.road.keep_session(task, Some(again));
                self.batch.keep(Unchanged { claim: task.claim.clone(), again }).await;
            }
            Outcome::Apply(change, again) => self.apply(task, *change, again).await,
            Outcome::PutOff(failed) => self.put_off(task, *failed).await,
            Outcome::Unknown(change) => {
                let stored = persist("an unknown outcome", || {
                    self.store.mark_unknown(task.claim.clone(), Change::clone(&change))
                });
                self.told(task, "ended", stored.await, is_delivered(change.event.as_ref()), None).await;
            }
            Outcome::Brought(brought, again) => self.brought(task, brought, again).await,
        }
    }

    async fn apply(&self, task: &ClaimedTask, change: Change, again: Duration) {
        let has_ended = change.snapshot.status.is_terminal();
        let stored = persist("a state", || self.store.apply(task.claim.clone(), change.clone(), again)).await;
        let next = (!has_ended).then_some((Duty::Poll, again));
        let outcome = if has_ended { "ended" } else { "changed" };
        self.told(task, outcome, stored, is_delivered(change.event.as_ref()), next).await;
    }

    async fn put_off(&self, task: &ClaimedTask, failed: AttemptFailed) {
        let (duty, again) = (failed.duty, failed.again);
        let stored = persist("a failed attempt", || self.store.put_off(task.claim.clone(), failed.clone())).await;
        self.told(task, "put_off", stored, is_delivered(failed.event.as_ref()), Some((duty, again))).await;
    }

    async fn brought(&self, task: &ClaimedTask, brought: Vec<BroughtAnswer>, again: Duration) {
        let settled = || self.store.settle_answers(task.claim.clone(), brought.clone(), again);
        let stored = persist("brought answers", settled).await;
        self.told(task, "changed", stored, false, Some((Duty::Poll, again))).await;
    }

    /// What follows from a write: a count, a hint to whoever delivers, and our own next look.
    async fn told(
        &self,
        task: &ClaimedTask,
        outcome: &'static str,
        stored: Option<Settled>,
        is_delivered: bool,
        next: Option<(Duty, Duration)>,
    ) {
        match stored {
            Some(Settled::Settled) => {
                self.metrics.ended(task.duty, outcome);
                self.road.keep_session(task, next.map(|(_, again)| again));
                if is_delivered {
                    self.store.wake(Wake::Delivery).await;
                }
                if let Some((duty, again)) = next {
                    self.poller.due_in(duty, again);
                }
            }
            Some(Settled::Fenced) => {
                self.metrics.fenced(1);
                tracing::debug!(task = %task.claim.task, "dropped what came of an attempt: its claim is lost");
            }
            None => {}
        }
    }

    /// Gives claims back untouched, due again after `again`.
    pub(super) async fn release(&self, claims: Vec<TaskClaim>, again: Duration) {
        if !claims.is_empty() {
            persist("claims given back", || self.store.release(claims.clone(), again)).await;
        }
    }
}

fn is_delivered(event: Option<&caribou_core::task::Event>) -> bool {
    event.is_some_and(|event| event.attention.is_some())
}

/// Asks the store until it answers, but no longer than `TASK_SETTLE`; then the claim expires. A fenced statement may be
/// sent again although nobody knows whether it was made: it matches once or never (durability.md 1.5).
pub(crate) async fn persist<'s, T>(
    what: &'static str,
    ask: impl Fn() -> BoxFuture<'s, Result<T, StoreError>>,
) -> Option<T> {
    let deadline = Instant::now() + bounds::TASK_SETTLE;
    let mut wait = FIRST_WAIT;
    loop {
        let error = match timeout_at(deadline, ask()).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => error,
            Err(_) => StoreError::Unavailable("no answer in time".to_owned()),
        };
        let may_pass = matches!(error.class(), Class::Retry | Class::Unknown | Class::Conflict);
        if !may_pass || Instant::now() + wait >= deadline {
            tracing::warn!("{what} could not be stored, so their claims expire: {error}");
            return None;
        }
        sleep(wait).await;
        wait *= 2;
    }
}
