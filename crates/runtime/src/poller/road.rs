//! How the poller reaches the servers that tasks run on.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::ids::Epoch;
use caribou_core::task::Pin;
use caribou_ports::BoxFuture;
use caribou_ports::store::ClaimedTask;
use caribou_ports::task_driver::{RemoteError, TaskDriver, Upstream};

use crate::tasks::{About, ORDINARY, TaskRoad};

/// The way to a task's server, with the credentials of calls in the background (contract 6.13).
pub(crate) trait Road: Send + Sync + 'static {
    /// Who speaks to servers about such a task; `None` = this replica has no such driver.
    fn driver(&self, name: &str) -> Option<Arc<dyn TaskDriver>>;

    /// The server of this task, in the session of its owner and thread; if `only` is given, in the one of this epoch and
    /// no other. Dropped, it leaves the session as it is.
    fn upstream<'a>(
        &'a self,
        task: &'a ClaimedTask,
        only: Option<Epoch>,
    ) -> BoxFuture<'a, Result<Box<dyn Upstream>, RemoteError>>;

    /// The epoch of the session that a pinned task would be asked about in, if one is open here.
    fn open_session(&self, task: &ClaimedTask) -> Option<Epoch>;

    /// Keeps the session of a pinned task open until long after the task is asked about in `next`; `None` = the task has
    /// ended.
    fn keep_session(&self, task: &ClaimedTask, next: Option<Duration>);
}

/// The session that holds a task, if only one can be asked about it.
pub(super) fn pin(task: &ClaimedTask) -> Option<Pin> {
    // A session of the remote's own name can be resumed by anybody.
    task.session_id.as_deref().filter(|_| task.is_pinned).and_then(Pin::parse)
}

/// The epoch of that session.
pub(super) fn pinned_at(task: &ClaimedTask) -> Option<Epoch> {
    pin(task).map(|pin| pin.epoch)
}

impl Road for TaskRoad {
    fn driver(&self, name: &str) -> Option<Arc<dyn TaskDriver>> {
        self.drivers.get(name).cloned()
    }

    fn upstream<'a>(
        &'a self,
        task: &'a ClaimedTask,
        only: Option<Epoch>,
    ) -> BoxFuture<'a, Result<Box<dyn Upstream>, RemoteError>> {
        let about = About {
            task: task.claim.task,
            server: &task.server,
            scope: &task.scope,
            run_id: task.run_id.as_deref(),
            only,
            only_at: (task.driver != ORDINARY).then_some(task.configuration),
        };
        Box::pin(TaskRoad::upstream(self, about))
    }

    fn open_session(&self, task: &ClaimedTask) -> Option<Epoch> {
        self.open_epoch(&task.server, &task.scope)
    }

    fn keep_session(&self, task: &ClaimedTask, next: Option<Duration>) {
        if let Some(pin) = pin(task) {
            TaskRoad::keep_session(self, &task.server, &task.scope, task.claim.task, &pin, next);
        }
    }
}
