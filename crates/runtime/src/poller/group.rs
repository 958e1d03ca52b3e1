//! The loop: what is due of which duty, how many slots are free for it, and what is under way.
//!
//! A look at the store and an attempt are children; the loop itself never waits. It wakes at least once a second, which
//! is also its sign of life, and ends on no error.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::ids::ServerName;
use caribou_core::task::{Duty, TaskId};
use caribou_ports::store::{ClaimedTask, StoreError, TaskClaim, Wake};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::desk::Desk;
use super::message::PollerMessage;
use super::metrics::word;
use super::pass::{Passed, pass};
use super::work::{asks_server, work};
use crate::chance::chance;
use crate::membership::Pulse;
use crate::survived::survived;
use crate::wakeups::{OnDrop, listen};

/// Cancels first, since somebody waits for them; polls after what must come before them (contract 6.5, pass order).
const ORDER: [Duty; 5] = [Duty::Cancel, Duty::Answer, Duty::Submit, Duty::Poll, Duty::Quarantine];

/// How soon it is looked again whether this replica may act.
const UNTRUSTED: Duration = Duration::from_millis(100);

/// The actor.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) desk: Arc<Desk>,
}

/// What the group remembers. Bounded by the slots.
pub(crate) struct GroupState {
    duties: HashMap<Duty, OneDuty>,
    running: HashMap<TaskId, Running>,
    timer: Option<Instant>,
    /// Set once the group stops.
    stopping: Option<oneshot::Sender<()>>,
    is_finished: bool,
    listener: OnDrop,
    pulse: Pulse,
}

/// One duty.
struct OneDuty {
    slots: usize,
    /// When the store is looked at next.
    look: Instant,
    is_looking: bool,
    /// When the next work of ours is due, as far as is known.
    due: Option<Instant>,
    /// When work of others is looked at next.
    overdue: Instant,
    failures: u32,
}

/// An attempt under way.
struct Running {
    claim: TaskClaim,
    /// Whose slot it takes.
    duty: Duty,
    /// Whether the server does something because of it.
    has_effect: bool,
    _attempt: OnDrop,
}

impl Actor for Group {
    type Msg = PollerMessage;
    type State = GroupState;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        let now = Instant::now();
        let many = usize::try_from(self.desk.limits.max_concurrent_polls).unwrap_or(1);
        let slots = |duty| if duty == Duty::Quarantine { 1 } else { many };
        let one = |duty| {
            let one =
                OneDuty { slots: slots(duty), look: now, is_looking: false, due: None, overdue: now, failures: 0 };
            (duty, one)
        };
        myself.cast(PollerMessage::Tick)?;
        let listening =
            tokio::spawn(listen(self.desk.store.clone(), move |wake| myself.cast(PollerMessage::Hint(wake)).is_ok()));
        Ok(GroupState {
            duties: ORDER.into_iter().map(one).collect(),
            running: HashMap::new(),
            timer: None,
            stopping: None,
            is_finished: false,
            listener: OnDrop(listening.abort_handle()),
            pulse: self.desk.membership.watch("poller"),
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
            PollerMessage::Tick => state.timer = None,
            PollerMessage::Hint(Wake::Work(duty)) => state.due_in(duty, Duration::ZERO),
            PollerMessage::Hint(Wake::Everything) => {
                ORDER.into_iter().for_each(|duty| state.due_in(duty, Duration::ZERO))
            }
            PollerMessage::Hint(Wake::Delivery | Wake::Chain) => {}
            PollerMessage::DueIn(duty, wait) => state.due_in(duty, wait),
            PollerMessage::Passed(duty, passed) => self.passed(&myself, state, duty, passed),
            PollerMessage::Ended(task, token) => {
                if state.running.get(&task).is_some_and(|running| running.claim.token == token) {
                    state.running.remove(&task);
                }
            }
            PollerMessage::Stop { done } => {
                state.listener.0.abort();
                state.stopping = Some(done);
                let overtime = bounds::TASK_STOP.saturating_sub(bounds::TASK_GIVE_BACK);
                drop(myself.send_after(overtime, || PollerMessage::Overtime));
            }
            PollerMessage::Overtime => {
                let left = state.running.drain().map(|(_, running)| running.claim).collect();
                self.finish(state, left);
            }
        }
        if state.stopping.is_some() {
            let is_looking = state.duties.values().any(|one| one.is_looking);
            if state.running.is_empty() && !is_looking {
                self.finish(state, Vec::new());
            }
        } else if !state.is_finished {
            self.look(&myself, state);
        }
        Ok(())
    }
}

impl Group {
    /// Looks at the store for every duty whose time has come and that has a free slot, and sets the timer for the rest.
    fn look(&self, myself: &ActorRef<PollerMessage>, state: &mut GroupState) {
        let now = Instant::now();
        let mut next = now + bounds::TASK_LOOK;
        let may_claim = self.desk.membership.may_claim();
        if !self.desk.membership.may_act() {
            // Another replica may soon do the same (invariant L1), and two cancels of one task must not overlap.
            state.running.retain(|_, running| !running.has_effect);
        }
        for duty in ORDER {
            let taken = state.running.values().filter(|running| running.duty == duty).count();
            let Some(one) = state.duties.get_mut(&duty) else { continue };
            let free = one.slots.saturating_sub(taken);
            if one.is_looking || free == 0 {
                continue;
            }
            if !may_claim {
                one.look = one.look.max(now + UNTRUSTED);
            }
            if one.look > now {
                next = next.min(one.look);
                continue;
            }
            one.is_looking = true;
            let with_overdue = one.overdue <= now;
            if with_overdue {
                one.overdue = now + bounds::TASK_LOOK;
            }
            let (desk, myself) = (self.desk.clone(), myself.clone());
            tokio::spawn(async move {
                let looked = tokio::time::timeout(bounds::STORE_REQUEST, pass(&desk, duty, free, with_overdue));
                let passed = survived(looked).await.map(|looked| {
                    looked.unwrap_or_else(|_| Err(StoreError::Unavailable("no answer in time".to_owned())))
                });
                let _ = myself.cast(PollerMessage::Passed(duty, passed));
            });
        }
        if state.timer.is_none_or(|timer| next < timer || timer <= now) {
            state.timer = Some(next);
            drop(myself.send_after(next.duration_since(now), || PollerMessage::Tick));
        }
    }

    /// Takes what a look brought, and decides when to look again.
    fn passed(
        &self,
        myself: &ActorRef<PollerMessage>,
        state: &mut GroupState,
        duty: Duty,
        passed: Option<Result<Passed, StoreError>>,
    ) {
        let now = Instant::now();
        let Some(one) = state.duties.get_mut(&duty) else { return };
        one.is_looking = false;
        let Passed { claimed, next } = match passed {
            Some(Ok(passed)) => passed,
            failed => {
                let wait = UNTRUSTED.saturating_mul(1 << one.failures.min(10)).min(bounds::TASK_STORE_BACKOFF);
                if one.failures == 0 {
                    let why =
                        failed.and_then(Result::err).map_or("a fault of ours".to_owned(), |error| error.to_string());
                    tracing::warn!(?duty, "work on tasks could not be claimed, it is tried again: {why}");
                }
                one.failures = one.failures.saturating_add(1);
                one.look = now + wait;
                return;
            }
        };
        one.failures = 0;
        let is_due = next == Some(Duration::ZERO);
        if claimed.is_empty() {
            // What is due and not given out is for others, or for quarantine.
            let most = if is_due { bounds::TASK_LOOK_AGAIN } else { bounds::TASK_LOOK.mul_f64(0.8 + 0.2 * chance()) };
            // Not past the time for the work of others: what is pinned here may stand among it.
            let look = now + next.filter(|next| !next.is_zero()).unwrap_or(most).min(most);
            one.look = look.min(one.overdue.max(now));
            self.desk
                .metrics
                .oldest_due(duty, one.due.filter(|_| is_due).map_or(Duration::ZERO, |due| now - due.min(now)));
        } else {
            one.look = now;
            self.desk.metrics.claimed(duty, claimed.len(), one.due.map(|due| now.saturating_duration_since(due)));
        }
        one.due = next.map(|next| now + next).filter(|_| claimed.is_empty());
        self.start(myself, state, duty, claimed);
    }

    /// Begins an attempt for each, or gives it back when its server has no room for it.
    fn start(&self, myself: &ActorRef<PollerMessage>, state: &mut GroupState, duty: Duty, claimed: Vec<ClaimedTask>) {
        let mut no_room: HashMap<ServerName, (Duration, Vec<TaskClaim>)> = HashMap::new();
        for task in claimed {
            if state.stopping.is_some() || state.is_finished {
                no_room.entry(task.server.clone()).or_default().1.push(task.claim);
                continue;
            }
            // Its claim here is lost, so whatever it is at is in vain: a request to cancel fences a poll (invariant C2).
            state.running.remove(&task.claim.task);
            let turn = match asks_server(&task).then(|| self.desk.servers.admit(&task.server, task.duty)).transpose() {
                Ok(turn) => turn,
                Err(wait) => {
                    let (longest, claims) = no_room.entry(task.server.clone()).or_default();
                    *longest = wait.max(*longest);
                    claims.push(task.claim);
                    continue;
                }
            };
            let (desk, myself, claim) = (self.desk.clone(), myself.clone(), task.claim.clone());
            let has_effect = matches!(task.duty, Duty::Cancel | Duty::Answer);
            let ended = claim.clone();
            let span = attempt_span(&task);
            let attempt = tokio::spawn(async move {
                if survived(work(&desk, task, turn).instrument(span)).await.is_none() {
                    tracing::error!(task = %ended.task, "a fault of ours: its claim expires, and it is tried again");
                }
                let _ = myself.cast(PollerMessage::Ended(ended.task, ended.token));
            });
            let attempt = OnDrop(attempt.abort_handle());
            state.running.insert(claim.task, Running { claim, duty, has_effect, _attempt: attempt });
        }
        for (wait, claims) in no_room.into_values() {
            let desk = self.desk.clone();
            // Apart from each other, so that they do not all come back at once.
            let again = wait.mul_f64(1.0 + 0.5 * chance());
            tokio::spawn(async move {
                desk.release(claims, again).await;
            });
        }
    }

    /// Gives back what is left, stores what is on its way, and tells whoever waits.
    fn finish(&self, state: &mut GroupState, left: Vec<TaskClaim>) {
        state.is_finished = true;
        let Some(done) = state.stopping.take() else { return };
        let desk = self.desk.clone();
        tokio::spawn(async move {
            let given_back = async {
                desk.batch.flush().await;
                desk.release(left, Duration::ZERO).await;
            };
            if tokio::time::timeout(bounds::TASK_GIVE_BACK, given_back).await.is_err() {
                tracing::warn!("the store does not answer: what the poller worked on is due when its claims expire");
            }
            let _ = done.send(());
        });
    }
}

/// Each attempt is a trace of its own: whoever submitted the task waits for none of them.
fn attempt_span(task: &ClaimedTask) -> tracing::Span {
    let (duty, id) = (word(task.duty), &task.claim.task);
    tracing::info_span!(parent: None, "work_on_task", otel.name = %format_args!("{duty} task"), duty, task = %id, server = %task.server)
}

impl GroupState {
    /// Looks then, at the latest.
    fn due_in(&mut self, duty: Duty, wait: Duration) {
        let due = Instant::now() + wait.min(bounds::TASK_LOOK * 2);
        if let Some(one) = self.duties.get_mut(&duty) {
            one.look = one.look.min(due);
        }
    }
}
