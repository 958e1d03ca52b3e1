//! What the group of one sink is told, and what others hold of it.

use caribou_core::bounds;
use caribou_core::holding::Token;
use caribou_core::task::TaskId;
use caribou_ports::store::StoreError;
use tokio::sync::oneshot;

use super::pass::Passed;
use crate::roles::Role;

/// A message to the group.
pub(crate) enum NotifierMessage {
    /// A wait is over.
    Tick,
    /// A delivery may be due.
    Hint,
    /// The store was looked at; `None` = a fault of ours.
    Passed(Option<Result<Passed, StoreError>>),
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

/// Who tells one sink, whoever fills the role.
#[derive(Clone)]
pub(crate) struct Notifier(Role<NotifierMessage>);

impl Notifier {
    pub(crate) fn vacant() -> Self {
        Self(Role::vacant())
    }

    pub(crate) fn role(&self) -> &Role<NotifierMessage> {
        &self.0
    }

    /// Somebody came who may be told something: it is looked at once.
    pub(crate) fn hint(&self) {
        let _ = self.0.cast(NotifierMessage::Hint);
    }

    /// Ends it within `TASK_STOP`: nothing is claimed any more, attempts under way may finish, and what is not finished
    /// near the end is given back, to be told by another replica under the same key.
    pub(crate) async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        let bound = bounds::TASK_STOP + bounds::TASK_GIVE_BACK / 2;
        if self.0.cast(NotifierMessage::Stop { done }).is_ok() && tokio::time::timeout(bound, stopped).await.is_err() {
            tracing::warn!("a notifier did not stop in time: its claims expire");
        }
        self.0.vacate();
    }
}
