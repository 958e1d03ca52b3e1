//! What a call that made a task is answered with (mcp.md §14.5).
//!
//! A client that takes tasks is answered by the task, which is on record by then (invariant T1). One that does not waits
//! for the end of a task of the protocol within its call; that of a toolset it hears of by the answer, as everywhere.

use std::time::Duration;

use caribou_core::era::Era;
use caribou_core::raw::object;
use caribou_core::task::client_view::Outcome;
use caribou_runtime::{Caller, ClientTask, MadeTask, Runtime, TaskReach, VerbError};
use serde_json::value::RawValue;

use super::{ended, shown};
use crate::fault::Fault;
use crate::notices::Notices;
use crate::work::Work;

/// How long a call may wait for the end of a task that its client never asked for: as long as a call over HTTP may take
/// by default. Then its answer names the task, which goes on.
const WAITED: Duration = Duration::from_secs(300);

/// The answer to a call that `made` a task, of which its `told` tells. `is_asked` = a legacy client asked for one.
///
/// # Errors
/// The record cannot be read; or the task that was waited for failed.
pub(crate) async fn answer(
    work: &Work,
    notices: &Notices,
    made: MadeTask,
    (told, is_asked): (Box<RawValue>, bool),
) -> Result<String, Fault> {
    let takes = work.client.takes_tasks;
    match work.client.era {
        Era::Modern if takes => Ok(shown::created(&find(work, made).await?, every(&work.endpoint.runtime))),
        Era::Legacy if is_asked => {
            // Whoever holds its stream tells it how the task goes on.
            work.client.session.iter().for_each(|session| work.endpoint.runtime.client_changed(session));
            let task = shown::legacy(&find(work, made).await?, every(&work.endpoint.runtime));
            let task = RawValue::from_string(task).map_err(|_| Fault::bug())?;
            Ok(object([("task", &*task)]))
        }
        Era::Legacy if made.is_native => waited(work, notices, made, told).await,
        Era::Modern | Era::Legacy => Ok(Box::<str>::from(told).into_string()),
    }
}

/// How often a client may ask for a task without reading the same twice.
pub(crate) fn every(runtime: &Runtime) -> Duration {
    runtime.task_limits().map_or(Duration::from_secs(1), |limits| limits.poll_interval())
}

/// The task that was just made, wherever it lives.
async fn find(work: &Work, made: MadeTask) -> Result<ClientTask, Fault> {
    let (runtime, client) = (&work.endpoint.runtime, &work.client);
    let reach = TaskReach { user: client.scope.user.clone(), thread: None, server: None };
    let name = made.task.to_string();
    let found = runtime.client_task(&client.asked.caller, &reach, &name).await;
    Ok(found
        .map_err(|error| VerbError { detail: format!("{}; the call made the task `{name}`", error.detail), ..error })?)
}

/// Waits within the call for its result.
async fn waited(work: &Work, notices: &Notices, made: MadeTask, told: Box<RawValue>) -> Result<String, Fault> {
    let task = find(work, made).await?;
    let name = task.stored.task.to_string();
    let unheard = Unheard(Some((work.endpoint.runtime.clone(), work.client.asked.caller.clone(), task.clone())));
    let ended = ended::wait(work, notices, task, WAITED).await;
    unheard.disarm();
    let Some(ended) = ended? else { return Ok(Box::<str>::from(told).into_string()) };
    outcome(ended.view(Era::Legacy).outcome, &name)
}

/// What the call that a task stands for is answered with.
///
/// # Errors
/// It ended with an error, or was cancelled.
pub(crate) fn outcome(outcome: Option<Outcome>, name: &str) -> Result<String, Fault> {
    match outcome {
        Some(Outcome::Result(result)) => Ok(Box::<str>::from(result).into_string()),
        Some(Outcome::Rpc(error)) => Err(error.into()),
        Some(Outcome::Error { code, message }) => Err(VerbError::new(code, message).into()),
        None => Err(Fault::cancelled(name)),
    }
}

/// A call that is cancelled while it waits takes its task along: nobody ever heard of that one.
struct Unheard(Option<(Runtime, Caller, ClientTask)>);

impl Unheard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let Some((runtime, caller, task)) = self.0.take() else { return };
        let Ok(here) = tokio::runtime::Handle::try_current() else { return };
        here.spawn(async move {
            let name = task.stored.task.to_string();
            if let Err(error) = runtime.cancel_task(&caller, &task.stored.scope, &name).await {
                tracing::warn!(task = %name, "a task whose call was cancelled goes on: {error}");
            }
        });
    }
}
