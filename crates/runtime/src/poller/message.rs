//! What the group is told, and what others hold of it.

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::holding::Token;
use caribou_core::task::{Duty, TaskId};
use caribou_ports::store::{StoreError, Wake};
use tokio::sync::oneshot;

use super::pass::Passed;
use crate::roles::Role;

/// A message to the group.
pub(crate) enum PollerMessage {
    /// A wait is over.
    Tick,
    /// Something may be due.
    Hint(Wake),
    /// Work of this duty will be due in a while, as this replica knows.
    DueIn(Duty, Duration),
    /// The store was looked at; `None` = a fault of ours.
    Passed(Duty, Option<Result<Passed, StoreError>>),
    /// An attempt ended, however it did.
    Ended(TaskId, Token),
    /// Nothing is claimed any more; `done` is told when nothing is under way.
    Stop {
        /// Told then.
        done: oneshot::Sender<()>,
    },
    /// What is under way has had its time.
    Overtime,
}

/// The poller of this replica, whoever fills the role.
#[derive(Clone)]
pub(crate) struct Poller(Role<PollerMessage>);

impl Poller {
    pub(crate) fn vacant() -> Self {
        Self(Role::vacant())
    }

    pub(crate) fn role(&self) -> &Role<PollerMessage> {
        &self.0
    }

    /// Whether tasks are followed.
    pub(crate) fn is_running(&self) -> bool {
        self.0.is_filled()
    }

    /// Says that work of this duty is due in a while. Only a hint.
    pub(crate) fn due_in(&self, duty: Duty, wait: Duration) {
        let _ = self.0.cast(PollerMessage::DueIn(duty, wait));
    }

    /// Ends the poller within `TASK_STOP`: nothing is claimed any more, attempts under way may finish, and what is not
    /// finished near the end is given back.
    pub(crate) async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        let bound = bounds::TASK_STOP + bounds::TASK_GIVE_BACK / 2;
        if self.0.cast(PollerMessage::Stop { done }).is_ok() && tokio::time::timeout(bound, stopped).await.is_err() {
            tracing::warn!("the poller did not stop in time: its claims expire");
        }
        self.0.vacate();
    }
}
