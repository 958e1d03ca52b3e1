//! A task that a server made of a plain call (mcp.md §9.2: the server decides), from its answer to the stored handle.
//!
//! Nobody could store an intent before: the answer is the first that is known of it. So it runs on when the caller goes
//! away, and what cannot be stored is cancelled at the server, as after a submit (contract 6.4, compensation).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds::TASKS_PER_USER;
use caribou_core::failure::{Class, Code};
use caribou_core::task::limits::COMPENSATION;
use caribou_ports::store::{Noted, TaskClaim, TaskIntent};
use caribou_ports::task_driver::{RemoteTask, TaskDriver, Upstream};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{Instrument as _, Span};

use super::road::TaskRoad;
use super::submission::{Outcome, Submission, cancel_at_remote};
use crate::error::VerbError;

/// Between two attempts to store that there is a task.
const NOTE_AGAIN: Duration = Duration::from_millis(100);

/// A task that is known to its server and to nobody else.
pub(crate) struct Made {
    pub(crate) road: Arc<TaskRoad>,
    pub(crate) driver: Arc<dyn TaskDriver>,
    pub(crate) intent: TaskIntent,
    pub(crate) remote: RemoteTask,
    /// The way on which it was made.
    pub(crate) upstream: Box<dyn Upstream>,
}

impl Made {
    /// Stores it, or has it cancelled; the caller may stop waiting at any time.
    pub(crate) fn begin(self) -> oneshot::Receiver<Result<Outcome, VerbError>> {
        let (done, outcome) = oneshot::channel();
        tokio::spawn(self.run(done).instrument(Span::current()));
        outcome
    }

    async fn run(self, caller: oneshot::Sender<Result<Outcome, VerbError>>) {
        let claim = self.noted().await;
        let Self { road, driver, intent, remote, upstream } = self;
        match claim {
            Ok(claim) => {
                let deadline = Instant::now();
                let stored = Submission { road, driver, intent, claim, upstream, arguments: None, deadline };
                stored.keep(remote, caller).await;
            }
            Err(error) => {
                let mut cancel = std::pin::pin!(cancel_at_remote(&road, &*driver, &intent, &remote));
                let is_over = timeout(COMPENSATION, &mut cancel).await.is_ok();
                let _ = caller.send(Err(error));
                if !is_over {
                    cancel.await;
                }
            }
        }
    }

    /// Stores that there is a task, as a submit does before it asks.
    async fn noted(&self) -> Result<TaskClaim, VerbError> {
        let until = Instant::now() + COMPENSATION;
        let unstored = |why: &str| {
            let detail = format!("the server made a task of the call, which cannot be stored and is cancelled: {why}");
            VerbError::new(Code::Unavailable, detail)
        };
        loop {
            let error = match timeout_at(until, self.road.store.note_intent(self.intent.clone())).await {
                Ok(Ok(Noted::Intended(claim))) => return Ok(claim),
                Ok(Ok(Noted::Full)) => {
                    let detail = format!(
                        "the server made a task of the call, which is cancelled: this user has {TASKS_PER_USER} \
                         unfinished background tasks, as many as it may have"
                    );
                    let retry_after = Some(Duration::from_secs(60));
                    return Err(VerbError { retry_after, ..VerbError::new(Code::Busy, detail) });
                }
                // An earlier attempt was stored and its answer, with the claim, lost.
                Ok(Ok(Noted::Existing { .. })) => return Err(unstored("the answer of the store was lost")),
                Ok(Err(error)) if error.class() != Class::Retry => return Err(unstored(&error.to_string())),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it did not answer in time".to_owned(),
            };
            if Instant::now() + NOTE_AGAIN >= until {
                return Err(unstored(&error));
            }
            sleep(NOTE_AGAIN).await;
        }
    }
}
