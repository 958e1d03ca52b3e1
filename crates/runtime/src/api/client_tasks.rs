//! The tasks of one user as clients of the protocol ask for them: by their names alone (mcp.md §9, §14.5).
//!
//! A task is its user's, in whichever thread it was made: a client that comes back has another session, and finds it all
//! the same. Whoever names a thread or a server sees no other's. What is not seen is not there (invariant P1).

use std::sync::Arc;

use caribou_core::bounds::MAX_TASK_PAGE;
use caribou_core::era::Era;
use caribou_core::ids::{RequestId, Scope, ServerName, ThreadId, UserId};
use caribou_core::task::client_view::{ClientView, Seen, view};
use caribou_core::task::native::Offer;
use caribou_core::task::{Status, TaskId};
use caribou_ports::store::{PageKey, StoredTask, TaskFilter};
use futures::future::try_join_all;
use serde_json::value::RawValue;

use super::call_tool::MadeTask;
use super::read_tasks::{no_task, unread};
use crate::Runtime;
use crate::caller::Caller;
use crate::catalog::Makes;
use crate::error::VerbError;
use crate::tasks::{ANSWERED, About, AnsweredCalls, Made, ORDINARY, Outcome, TaskRoad, answered};

/// Which tasks a client may speak of.
#[derive(Clone, Debug)]
pub struct TaskReach {
    /// Whose.
    pub user: UserId,
    /// Of this thread only.
    pub thread: Option<ThreadId>,
    /// Of this server only.
    pub server: Option<ServerName>,
}

/// A task, with all that is needed to show it.
#[derive(Clone, Debug)]
pub struct ClientTask {
    /// As it is on record.
    pub stored: StoredTask,
    answered: Vec<String>,
}

impl ClientTask {
    /// What a client of this era sees.
    pub fn view(&self, era: Era) -> ClientView {
        let Self { stored, answered } = self;
        let seen = Seen {
            snapshot: &stored.snapshot,
            is_native: stored.driver != ORDINARY,
            version: stored.version,
            is_cancel_requested: stored.is_cancel_requested,
            answered,
        };
        view(era, &seen)
    }
}

impl TaskReach {
    fn holds(&self, task: &StoredTask) -> bool {
        task.scope.user == self.user
            && self.thread.as_ref().is_none_or(|thread| *thread == task.scope.thread)
            && self.server.as_ref().is_none_or(|server| *server == task.server)
    }
}

impl Runtime {
    /// One task within `reach`.
    ///
    /// # Errors
    /// `not_found`: there is none of this name, or it is out of reach. `unavailable`: there are no tasks here, or the store
    /// cannot be asked.
    pub async fn client_task(&self, caller: &Caller, reach: &TaskReach, task: &str) -> Result<ClientTask, VerbError> {
        caller.principal.acts_for(Some(reach.user.as_str()))?;
        let road = self.task_repository()?;
        let task = TaskId::parse(task).ok_or_else(no_task)?;
        shown(road, reach, task).await?.ok_or_else(no_task)
    }

    /// The newest tasks within `reach`, those after `before` only; at most `limit`, and at most `MAX_TASK_PAGE`. And where
    /// the next page begins.
    ///
    /// # Errors
    /// `unavailable`, as for one task.
    pub async fn client_tasks(
        &self,
        caller: &Caller,
        reach: &TaskReach,
        before: Option<PageKey>,
        limit: u32,
    ) -> Result<(Vec<ClientTask>, Option<PageKey>), VerbError> {
        caller.principal.acts_for(Some(reach.user.as_str()))?;
        let road = self.task_repository()?;
        let TaskReach { user, thread, server } = reach.clone();
        let filter = TaskFilter { user: Some(user), thread, server, is_active: None };
        let limit = limit.min(MAX_TASK_PAGE);
        let listed = road.store.list_tasks(filter, before, limit).await.map_err(unread)?;
        let is_full = listed.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let next = listed.last().filter(|_| is_full).map(StoredTask::page_key);
        let whole = listed.into_iter().map(|stored| async move {
            // How these are shown depends on what lists leave out.
            match stored.snapshot.status {
                Status::Completed | Status::InputRequired => shown(road, reach, stored.task).await,
                _ => Ok(Some(ClientTask { stored, answered: Vec::new() })),
            }
        });
        let tasks: Vec<Option<ClientTask>> = try_join_all(whole).await?;
        Ok((tasks.into_iter().flatten().collect(), next))
    }

    /// Keeps `result`, the answer to a call of the tool `name` that was to be a task, as the result of one.
    ///
    /// # Errors
    /// `not_found`: the tool is no longer there. `unavailable`: there are no tasks here, or it cannot be stored. `busy`:
    /// the user has as many unfinished tasks as it may have.
    pub async fn keep_answer(
        &self,
        (scope, request_id): (&Scope, &RequestId),
        name: &str,
        result: &RawValue,
    ) -> Result<MadeTask, VerbError> {
        self.task_repository()?;
        let road = self.tasks.as_ref().ok_or_else(VerbError::fault)?;
        let found = self.find_tool(name, &scope.user).await?;
        let target = &found.target;
        let task_name = target.raw_name.clone();
        let makes = Makes { driver: ANSWERED, task_name, is_pinned: false, offer: Offer::IfAsked };
        let intent = self.intent(road, target, &makes, scope)?;
        let (task, server) = (intent.task, intent.server.clone());
        let about = About { task, server: &server, scope, run_id: None, only: None, only_at: None };
        let upstream = road.upstream(about).await.map_err(|error| VerbError::new(error.code, error.message))?;
        tracing::debug!(%request_id, %task, "a call that was answered at once is kept as a task");
        let driver = Arc::new(AnsweredCalls);
        let made = Made { road: road.clone(), driver, intent, remote: answered(result)?, upstream };
        match made.begin().await.map_err(|_| VerbError::fault())?? {
            Outcome::Task(_) => Ok(MadeTask { task, is_native: true }),
            Outcome::Answered(_) => Err(VerbError::fault()),
        }
    }
}

/// The task, if it is within reach.
async fn shown(road: &TaskRoad, reach: &TaskReach, task: TaskId) -> Result<Option<ClientTask>, VerbError> {
    let stored = road.store.read_task(task, None).await.map_err(unread)?;
    let Some(stored) = stored.filter(|stored| reach.holds(stored)) else { return Ok(None) };
    let answered = match stored.snapshot.status {
        Status::InputRequired => road.store.answered(task).await.map_err(unread)?,
        _ => Vec::new(),
    };
    Ok(Some(ClientTask { stored, answered }))
}
