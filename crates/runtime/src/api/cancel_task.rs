//! Cancel a durable task (contract 6.10).
//!
//! A request is stored and answered at once; the remote is asked by whoever follows the task, until it has answered.
//! Repeating a request changes nothing.

use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_core::task::{Duty, TaskId};
use caribou_ports::store::{CancelRequested, StoredTask, Wake};

use super::read_tasks::{no_task, unwritten};
use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::error::VerbError;
use crate::tasks::TaskRoad;

impl Runtime {
    /// Requests that a task of `scope` is cancelled. Answers with the task as it is then: cancelled later, or ended
    /// already.
    ///
    /// # Errors
    /// `not_found`: there is none of this name, or it is another user's or another thread's. `unavailable`: nobody
    /// follows tasks here, or the store cannot be asked; `outcome_unknown`: it may have been stored.
    pub async fn cancel_task(&self, caller: &Caller, scope: &Scope, task: &str) -> Result<StoredTask, VerbError> {
        let entry = Entry::new("cancel_task", caller).within(scope);
        self.audit.around(entry, self.cancel_on_record(caller, scope, task)).await
    }

    pub(super) async fn cancel_on_record(
        &self,
        caller: &Caller,
        scope: &Scope,
        task: &str,
    ) -> Result<StoredTask, VerbError> {
        caller.principal.acts_for(Some(scope.user.as_str()))?;
        let road = self.task_service()?;
        let task = TaskId::parse(task).ok_or_else(no_task)?;
        let requested = road.store.request_cancel(task, Some(scope.clone())).await;
        match requested.map_err(|error| unwritten(&error))? {
            CancelRequested::NotFound => return Err(no_task()),
            CancelRequested::Requested => road.store.wake(Wake::Work(Duty::Cancel)).await,
            CancelRequested::Already | CancelRequested::Ended => {}
        }
        road.one(&task.to_string(), Some(scope)).await
    }

    /// Where requests about tasks are stored: only while somebody follows them.
    pub(super) fn task_service(&self) -> Result<&TaskRoad, VerbError> {
        let missing = || VerbError::new(Code::Unavailable, "MCP task service not available");
        self.tasks.as_deref().filter(|_| self.follows_tasks()).ok_or_else(missing)
    }
}
