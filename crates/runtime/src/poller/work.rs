//! One claimed task, from the claim to what is stored of it.

use std::sync::Arc;

use caribou_core::failure::Code;
use caribou_core::ids::Epoch;
use caribou_core::task::poison::POISONED;
use caribou_core::task::{Duty, Place, Status};
use caribou_ports::store::ClaimedTask;
use caribou_ports::task_driver::{DriverError, RemoteError, TaskDriver, TaskHandle, Upstream};

use super::answer_one::answer_one;
use super::ask_anew::ask_anew;
use super::cancel_one::cancel_one;
use super::desk::Desk;
use super::outcome::{Judge, Outcome};
use super::poll_one::poll_one;
use super::road::pin;
use super::servers::Turn;

/// What an attempt comes to: something to store, or nothing.
pub(super) enum Done {
    Settle(Outcome),
    /// The store could not be asked what to do: the claim is given back.
    Release,
}

/// Whether an attempt asks the server at all.
pub(super) fn asks_server(task: &ClaimedTask) -> bool {
    !task.is_poisoned && task.duty != Duty::Submit
}

/// Works on it. Breaks off at any point without harm when it is dropped.
pub(super) async fn work(desk: &Desk, task: ClaimedTask, turn: Option<Turn>) {
    let judge = desk.judge(&task);
    let asked_at = place(desk, &task);
    let done = match (task.duty, asked_at) {
        // It was never told of, so that nobody asks the remote to end it.
        (Duty::Submit, _) => Done::Settle(judge.abandoned()),
        _ if task.is_poisoned => Done::Settle(judge.ended(Status::Failed, POISONED)),
        (_, Place::Gone) => ask_anew(desk, &task, turn.as_ref()).await,
        (_, Place::Elsewhere) => Done::Release,
        (Duty::Cancel, Place::Here) => Done::Settle(cancel_one(desk, &task, turn.as_ref()).await),
        (Duty::Answer, Place::Here) => answer_one(desk, &task, turn.as_ref()).await,
        (Duty::Poll | Duty::Quarantine, Place::Here) => Done::Settle(poll_one(desk, &task, turn.as_ref()).await),
    };
    let done = match done {
        // Whoever held the task ended under the question.
        Done::Settle(Outcome::PutOff(_)) if asked_at == Place::Here && place(desk, &task) == Place::Gone => {
            ask_anew(desk, &task, turn.as_ref()).await
        }
        done => done,
    };
    // Others of the same server need not wait for the store.
    drop(turn);
    match done {
        Done::Settle(outcome) => desk.settle(&task, outcome).await,
        Done::Release => {
            desk.metrics.ended(task.duty, "released");
            desk.release(vec![task.claim], desk.limits.poll_interval()).await;
        }
    }
}

/// Where the task is asked about.
fn place(desk: &Desk, task: &ClaimedTask) -> Place {
    let Some(pin) = pin(task) else { return Place::Here };
    // What is pinned to another replica is given out only when that one has ended; a pin that is not on record with the
    // work is judged by who is known to live.
    let peers = desk.membership.peers();
    pin.place(&desk.boot, desk.road.open_session(task), |boot| !task.is_lost && !peers.has_ended(boot))
}

impl Desk {
    pub(super) fn judge<'a>(&'a self, task: &'a ClaimedTask) -> Judge<'a> {
        Judge { task, limits: &self.limits, sinks: &self.sinks }
    }

    /// Who speaks to the server of the task, and the way there; `only` in the session of this epoch.
    pub(super) async fn reach(
        &self,
        task: &ClaimedTask,
        only: Option<Epoch>,
    ) -> Result<(Arc<dyn TaskDriver>, Box<dyn Upstream>), DriverError> {
        let Some(driver) = self.road.driver(&task.driver) else {
            let why = format!("this replica has no driver `{}` for tasks", task.driver);
            return Err(DriverError::NotSupported(why));
        };
        Ok((driver, self.road.upstream(task, only).await?))
    }

    /// Asks, within half a claim, and notes whether the server is away. Giving up on the answer leaves the session
    /// alone: a slow answer is no proof that it is broken, and it may hold the task.
    pub(super) async fn ask<T>(
        &self,
        turn: Option<&Turn>,
        question: impl Future<Output = Result<T, DriverError>>,
    ) -> Result<T, DriverError> {
        let bound = self.limits.call_timeout();
        let answer = tokio::time::timeout(bound, question).await.unwrap_or_else(|_| {
            let message = format!("the server did not answer within {} s", bound.as_secs_f64());
            Err(DriverError::Remote(RemoteError::new(Code::Timeout, message)))
        });
        match (&answer, turn) {
            (_, None) => {}
            (Err(DriverError::Remote(error)), Some(_)) if error.code == Code::Busy => {}
            (Err(DriverError::Remote(error)), Some(turn)) if is_away(error.code) => turn.failed(),
            (_, Some(turn)) => turn.answered(),
        }
        answer
    }
}

/// The task as drivers know it.
pub(super) fn handle(task: &ClaimedTask) -> TaskHandle<'_> {
    TaskHandle {
        task: task.claim.task,
        task_name: &task.task_name,
        // Only an intent has none, and nobody asks about one.
        remote_id: task.remote_id.as_deref().unwrap_or_default(),
        driver_data: &task.driver_data,
    }
}

fn is_away(code: Code) -> bool {
    matches!(code, Code::Timeout | Code::Unavailable | Code::SessionEnded | Code::OutcomeUnknown)
}
