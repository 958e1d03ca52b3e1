//! List and show durable tasks, and what happened to them (contract 2.3).
//!
//! A task is seen by its user only, in its own thread (invariant P1); administrators see all of them.

use caribou_core::bounds::{MAX_TASK_EVENTS, MAX_TASK_PAGE};
use caribou_core::failure::{Class, Code};
use caribou_core::ids::Scope;
use caribou_core::notification::{Delivery, Sink};
use caribou_core::task::{TaskId, TaskLimits};
use caribou_ports::store::{PageKey, Redelivered, StoreError, StoredEvent, StoredTask, TaskFilter, Wake};

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::error::VerbError;
use crate::tasks::TaskRoad;

impl Runtime {
    /// The settings that tasks are followed by. `None` = there are no tasks here.
    pub fn task_limits(&self) -> Option<&TaskLimits> {
        self.tasks.as_ref().map(|road| &road.limits)
    }

    /// The newest tasks of `scope`, at most `limit`, and at most `MAX_TASK_PAGE`. Without results and questions.
    ///
    /// # Errors
    /// `not_found`: the thread is another user's. `unavailable`: there are no tasks here, or the store cannot be asked.
    pub async fn list_tasks(&self, caller: &Caller, scope: &Scope, limit: u32) -> Result<Vec<StoredTask>, VerbError> {
        caller.principal.acts_for(Some(scope.user.as_str()))?;
        let road = self.task_repository()?;
        let of_thread = TaskFilter { thread: Some(scope.thread.clone()), ..TaskFilter::default() };
        let own = TaskFilter { user: Some(scope.user.clone()), ..of_thread.clone() };
        let tasks = road.store.list_tasks(own, None, limit.min(MAX_TASK_PAGE)).await.map_err(unread)?;
        // A thread belongs to who has tasks in it; one that nobody has is empty.
        if tasks.is_empty() && road.store.count_tasks(of_thread).await.map_err(unread)? > 0 {
            return Err(VerbError::new(Code::NotFound, "there is no such thread"));
        }
        Ok(tasks)
    }

    /// One task of `scope`.
    ///
    /// # Errors
    /// `not_found`: there is none of this name, or it is another user's or another thread's. `unavailable`: there are
    /// no tasks here, or the store cannot be asked.
    pub async fn read_task(&self, caller: &Caller, scope: &Scope, task: &str) -> Result<StoredTask, VerbError> {
        caller.principal.acts_for(Some(scope.user.as_str()))?;
        self.task_repository()?.one(task, Some(scope)).await
    }

    /// What happened to a task of `scope` after the event of number `after`, in order; at most `limit`, and at most
    /// `MAX_TASK_EVENTS`.
    ///
    /// # Errors
    /// As [`Runtime::read_task`].
    pub async fn task_events(
        &self,
        caller: &Caller,
        scope: &Scope,
        task: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, VerbError> {
        caller.principal.acts_for(Some(scope.user.as_str()))?;
        let road = self.task_repository()?;
        let task = road.one(task, Some(scope)).await?.task;
        road.store.events(task, after, limit.min(MAX_TASK_EVENTS)).await.map_err(unread)
    }

    /// The newest tasks of everybody that match, those after `before` only; at most `limit`, and at most
    /// `MAX_TASK_PAGE`.
    ///
    /// # Errors
    /// `denied`: the caller is no admin. `unavailable`: there are no tasks here, or the store cannot be asked.
    pub async fn list_all_tasks(
        &self,
        caller: &Caller,
        filter: TaskFilter,
        before: Option<PageKey>,
        limit: u32,
    ) -> Result<Vec<StoredTask>, VerbError> {
        caller.principal.administers()?;
        let listed = self.task_repository()?.store.list_tasks(filter, before, limit.min(MAX_TASK_PAGE)).await;
        listed.map_err(unread)
    }

    /// What is still to be told of a task, or was given up, for administrators.
    ///
    /// # Errors
    /// `denied`: the caller is no admin. `not_found`: there is no such task. `unavailable` as above.
    pub async fn task_deliveries(&self, caller: &Caller, task: &str) -> Result<Vec<(Sink, Delivery)>, VerbError> {
        caller.principal.administers()?;
        let road = self.task_repository()?;
        let task = road.one(task, None).await?.task;
        road.store.deliveries(task).await.map_err(unread)
    }

    /// Takes up again what was given up of telling `sink` about a task; `None` = every sink. Whether there was
    /// something to take up.
    ///
    /// # Errors
    /// As [`Runtime::task_deliveries`].
    pub async fn redeliver(&self, caller: &Caller, task: &str, sink: Option<Sink>) -> Result<bool, VerbError> {
        self.audit.around(Entry::new("redeliver", caller), self.redeliver_on_record(caller, task, sink)).await
    }

    async fn redeliver_on_record(&self, caller: &Caller, task: &str, sink: Option<Sink>) -> Result<bool, VerbError> {
        caller.principal.administers()?;
        let road = self.task_repository()?;
        let task = road.one(task, None).await?.task;
        let mut is_taken_up = false;
        for sink in Sink::ALL.into_iter().filter(|each| sink.is_none_or(|wanted| wanted == *each)) {
            let redelivered = road.store.redeliver(task, sink).await.map_err(unread)?;
            is_taken_up |= redelivered == Redelivered::TakenUp;
        }
        if is_taken_up {
            road.store.wake(Wake::Delivery).await;
        }
        Ok(is_taken_up)
    }

    /// Where tasks are read.
    pub(super) fn task_repository(&self) -> Result<&TaskRoad, VerbError> {
        let missing = || VerbError::new(Code::Unavailable, "MCP task repo not available");
        self.tasks.as_deref().ok_or_else(missing)
    }
}

impl TaskRoad {
    /// One task by its local name.
    pub(crate) async fn one(&self, task: &str, of: Option<&Scope>) -> Result<StoredTask, VerbError> {
        let task = TaskId::parse(task).ok_or_else(no_task)?;
        self.store.read_task(task, of.cloned()).await.map_err(unread)?.ok_or_else(no_task)
    }
}

/// Unknown, another user's and another thread's are told alike.
pub(crate) fn no_task() -> VerbError {
    VerbError::new(Code::NotFound, "MCP task not found")
}

/// The error of a store that was only read.
pub(crate) fn unread(error: StoreError) -> VerbError {
    VerbError::new(Code::Unavailable, format!("the tasks cannot be read: {error}"))
}

/// The error of a request that can be repeated whatever became of it.
pub(crate) fn unwritten(error: &StoreError) -> VerbError {
    let code = if error.class() == Class::Unknown { Code::OutcomeUnknown } else { Code::Unavailable };
    VerbError::new(code, format!("the request about the task was not stored: {error}"))
}
