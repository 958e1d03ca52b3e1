//! The loop of one sink: how many slots are free, and what is under way.
//!
//! A look at the store and an attempt are children; the loop itself never waits. It wakes at least once a second, which
//! is also its sign of life, and ends on no error.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::notification::Audience;
use caribou_core::task::TaskId;
use caribou_ports::event_sink::Room;
use caribou_ports::store::{ClaimedDelivery, DeliveryClaim, StoreError, Wake};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::desk::Desk;
use super::message::NotifierMessage;
use super::pass::{Passed, pass};
use super::work::work;
use crate::chance::chance;
use crate::membership::Pulse;
use crate::poller::persist;
use crate::survived::survived;
use crate::wakeups::{OnDrop, listen};

/// How soon it is looked again whether this replica may act, and the first wait after the store has failed.
const SOON: Duration = Duration::from_millis(100);

/// The actor.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) desk: Arc<Desk>,
}

/// What the group remembers. Bounded by the slots.
pub(crate) struct GroupState {
    slots: usize,
    /// When the store is looked at next.
    look: Instant,
    is_looking: bool,
    failures: u32,
    running: HashMap<TaskId, Running>,
    timer: Option<Instant>,
    /// Set once the group stops.
    stopping: Option<oneshot::Sender<()>>,
    is_finished: bool,
    listener: OnDrop,
    pulse: Pulse,
}

/// An attempt under way.
struct Running {
    claim: DeliveryClaim,
    _attempt: OnDrop,
}

impl Actor for Group {
    type Msg = NotifierMessage;
    type State = GroupState;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        myself.cast(NotifierMessage::Tick)?;
        let tell = move |wake| match wake {
            Wake::Delivery | Wake::Everything => myself.cast(NotifierMessage::Hint).is_ok(),
            Wake::Work(_) | Wake::Chain => true,
        };
        let listening = tokio::spawn(listen(self.desk.store.clone(), tell));
        Ok(GroupState {
            slots: usize::try_from(self.desk.limits.max_concurrent_polls).unwrap_or(1),
            look: Instant::now(),
            is_looking: false,
            failures: 0,
            running: HashMap::new(),
            timer: None,
            stopping: None,
            is_finished: false,
            listener: OnDrop(listening.abort_handle()),
            pulse: self.desk.membership.watch("notifier"),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.pulse.beat();
        match message {
            NotifierMessage::Tick => state.timer = None,
            NotifierMessage::Hint => state.look = Instant::now(),
            NotifierMessage::Passed(passed) => self.passed(&myself, state, passed),
            NotifierMessage::Ended(task, token) => {
                if state.running.get(&task).is_some_and(|running| running.claim.token == token) {
                    state.running.remove(&task);
                }
                // A slot is free, and a launch that was answered is looked up at once.
                state.look = Instant::now();
            }
            NotifierMessage::Stop { done } => {
                state.listener.0.abort();
                state.stopping = Some(done);
                let overtime = bounds::TASK_STOP.saturating_sub(bounds::TASK_GIVE_BACK);
                drop(myself.send_after(overtime, || NotifierMessage::Overtime));
            }
            NotifierMessage::Overtime => {
                let left = state.running.drain().map(|(_, running)| running.claim).collect();
                self.finish(state, left);
            }
        }
        if state.stopping.is_some() {
            if state.running.is_empty() && !state.is_looking {
                self.finish(state, Vec::new());
            }
        } else if !state.is_finished {
            self.look(&myself, state);
        }
        Ok(())
    }
}

impl Group {
    /// Looks at the store when its time has come and a slot is free, and sets the timer otherwise.
    fn look(&self, myself: &ActorRef<NotifierMessage>, state: &mut GroupState) {
        let now = Instant::now();
        if !self.desk.membership.may_claim() {
            state.look = state.look.max(now + SOON);
        }
        let (slots, of) = match self.desk.sink.room() {
            Room::Any => (state.slots, Audience::Everybody),
            Room::For(at_once, of) => (at_once, of),
        };
        let free = slots.saturating_sub(state.running.len());
        let can_look = !state.is_looking && free > 0;
        if can_look && state.look <= now {
            state.is_looking = true;
            // Whatever is heard meanwhile brings it forward again.
            state.look = now + bounds::TASK_LOOK;
            let (desk, myself) = (self.desk.clone(), myself.clone());
            tokio::spawn(async move {
                let looked = tokio::time::timeout(bounds::STORE_REQUEST, pass(&desk, free, of));
                let passed = survived(looked).await.map(|looked| {
                    looked.unwrap_or_else(|_| Err(StoreError::Unavailable("no answer in time".to_owned())))
                });
                let _ = myself.cast(NotifierMessage::Passed(passed));
            });
        }
        // While nothing can be looked at, a message comes when that changes; the timer is a sign of life then.
        let at_most = now + bounds::TASK_LOOK;
        let next = if can_look { state.look.min(at_most) } else { at_most };
        if state.timer.is_none_or(|timer| next < timer || timer <= now) {
            state.timer = Some(next);
            drop(myself.send_after(next.duration_since(now), || NotifierMessage::Tick));
        }
    }

    /// Takes what a look brought, and decides when to look again.
    fn passed(
        &self,
        myself: &ActorRef<NotifierMessage>,
        state: &mut GroupState,
        passed: Option<Result<Passed, StoreError>>,
    ) {
        let now = Instant::now();
        state.is_looking = false;
        let Passed { claimed, next } = match passed {
            Some(Ok(passed)) => passed,
            failed => {
                if state.failures == 0 {
                    let why =
                        failed.and_then(Result::err).map_or("a fault of ours".to_owned(), |error| error.to_string());
                    tracing::warn!(
                        sink = self.desk.to().word(),
                        "deliveries could not be claimed, it is tried again: {why}"
                    );
                }
                state.look = now + SOON.saturating_mul(1 << state.failures.min(10)).min(bounds::TASK_STORE_BACKOFF);
                state.failures = state.failures.saturating_add(1);
                return;
            }
        };
        state.failures = 0;
        let wait = if claimed.is_empty() {
            let most = bounds::TASK_LOOK.mul_f64(0.8 + 0.2 * chance());
            // What was due and not given out is being told by another replica.
            next.filter(|next| !next.is_zero()).map_or(most, |next| next.min(most))
        } else {
            Duration::ZERO
        };
        state.look = state.look.min(now + wait);
        self.start(myself, state, claimed);
    }

    /// Begins an attempt for each.
    fn start(&self, myself: &ActorRef<NotifierMessage>, state: &mut GroupState, claimed: Vec<ClaimedDelivery>) {
        if state.stopping.is_some() || state.is_finished {
            self.release(claimed.into_iter().map(|delivery| delivery.claim).collect());
            return;
        }
        for delivery in claimed {
            let (desk, myself, claim) = (self.desk.clone(), myself.clone(), delivery.claim.clone());
            let ended = claim.clone();
            let attempt = tokio::spawn(async move {
                if survived(work(&desk, delivery)).await.is_none() {
                    tracing::error!(task = %ended.task, "a fault of ours: its claim expires, and it is tried again");
                }
                let _ = myself.cast(NotifierMessage::Ended(ended.task, ended.token));
            });
            // One that is at the same delivery has lost its claim: whatever it is at is in vain.
            let running = Running { claim: claim.clone(), _attempt: OnDrop(attempt.abort_handle()) };
            state.running.insert(claim.task, running);
        }
    }

    fn release(&self, claims: Vec<DeliveryClaim>) {
        let desk = self.desk.clone();
        tokio::spawn(async move { desk.release(claims).await });
    }

    /// Gives back what is left, and tells whoever waits.
    fn finish(&self, state: &mut GroupState, left: Vec<DeliveryClaim>) {
        state.is_finished = true;
        let Some(done) = state.stopping.take() else { return };
        let desk = self.desk.clone();
        tokio::spawn(async move {
            if tokio::time::timeout(bounds::TASK_GIVE_BACK, desk.release(left)).await.is_err() {
                tracing::warn!("the store does not answer: what a notifier worked on is due when its claims expire");
            }
            let _ = done.send(());
        });
    }
}

impl Desk {
    /// Gives claims back untouched: a launch that was reserved stays reserved.
    async fn release(&self, claims: Vec<DeliveryClaim>) {
        if !claims.is_empty() {
            persist("deliveries given back", || self.store.release_deliveries(claims.clone())).await;
        }
    }
}
