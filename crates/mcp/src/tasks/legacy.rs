//! Tasks of revision 2025-11-25 (mcp.md §9.1): a call with the member `task`, then `tasks/get`, `tasks/result` and
//! `tasks/cancel`.
//!
//! Owns what each answer means for the task as it is stored: its outcome is told as the modern era tells it (§14.5), so
//! a tool that reports an error has *completed*, with that result, and only a JSON-RPC error is a failure. Questions are
//! requests of the server on the session that the task was made in; an answer answers that very request, so both live
//! and die with the session. A task that the server does not know has failed for good.

use caribou_core::raw::Members;
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, Status, TaskLimits};
use caribou_ports::BoxFuture;
use caribou_ports::store::NewAnswer;
use caribou_ports::task_driver::{DriverError, RemoteError, SubmitTask, Submitted, TaskDriver, TaskHandle, Upstream};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::state::{INVALID_PARAMS, Names, State, protocol, question, unknown, without_task};

const NAMES: Names = Names { ttl: "ttl", poll_interval: "pollInterval" };

/// The driver of revision 2025-11-25.
#[derive(Clone, Copy, Debug)]
pub struct LegacyTasks {
    limits: TaskLimits,
}

impl LegacyTasks {
    /// Names it in the record of each task.
    pub const NAME: &'static str = "mcp-2025-11-25";

    /// Reads answers within `limits`.
    pub fn new(limits: TaskLimits) -> Self {
        Self { limits }
    }

    async fn read(&self, upstream: &dyn Upstream, task: TaskHandle<'_>) -> Result<Report, DriverError> {
        let got = match upstream.request("tasks/get", about(task.remote_id)?).await {
            Err(error) if error.rpc_code() == Some(INVALID_PARAMS) => return Ok(unknown(task.driver_data)),
            got => got?,
        };
        let state = State::about(&got, task.remote_id, NAMES)?;
        match state.status {
            Status::InputRequired => {
                let asked = upstream.task_questions(task.remote_id).await?;
                Ok(Report { input_required: question(&asked, state.message()), ..state.report() })
            }
            Status::Completed | Status::Failed => self.outcome(upstream, task, &state).await,
            _ => Ok(state.report()),
        }
    }

    /// What the call would have answered, of a task that has come to its end.
    async fn outcome(
        &self,
        upstream: &dyn Upstream,
        task: TaskHandle<'_>,
        state: &State<'_>,
    ) -> Result<Report, DriverError> {
        match upstream.request("tasks/result", about(task.remote_id)?).await {
            Ok(result) => {
                within(&result, &self.limits)?;
                Ok(Report { result: Some(without_task(&result)), ..Report::of(Status::Completed) })
            }
            // The JSON-RPC error that the call would have had, or none was kept: what the server says of it is clearer.
            Err(error) if error.rpc.is_some() && state.status == Status::Failed => {
                let why = state.message().filter(|message| !message.trim().is_empty());
                let RemoteError { message, rpc, .. } = error;
                Ok(Report { error: Some(why.unwrap_or(message)), rpc_error: rpc, ..Report::of(Status::Failed) })
            }
            Err(error) if error.rpc_code() == Some(INVALID_PARAMS) => Ok(unknown(task.driver_data)),
            Err(error) => Err(error.into()),
        }
    }
}

/// A result that is larger than what is read at all (architecture.md §10, oversized status answer).
pub(super) fn within(result: &RawValue, limits: &TaskLimits) -> Result<(), Misread> {
    let most = usize::try_from(limits.max_status_bytes).unwrap_or(usize::MAX);
    if result.get().len() <= most {
        return Ok(());
    }
    let what = format!("the answer has more than {most} bytes; look at `mcp_tasks.max_status_bytes`");
    Err(Misread::Protocol(what))
}

/// The parameters that say which task is meant.
///
/// # Errors
/// Never in practice: a string always serialises.
pub(super) fn about(remote_id: &str) -> Result<Box<RawValue>, DriverError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct About<'a> {
        task_id: &'a str,
    }
    to_raw_value(&About { task_id: remote_id }).map_err(|error| DriverError::NotSupported(error.to_string()))
}

/// A JSON text of ours or out of the store.
pub(super) fn json(text: &str) -> Result<Box<RawValue>, DriverError> {
    RawValue::from_string(text.to_owned())
        .map_err(|_| DriverError::NotSupported("the stored text is no JSON".to_owned()))
}

/// A cancel ends with a terminal status; asked again until it does (contract 6.10).
pub(super) fn ended(report: Report) -> Result<Report, DriverError> {
    if report.status.is_terminal() { Ok(report) } else { Err(protocol("the task has not ended yet").into()) }
}

impl TaskDriver for LegacyTasks {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// No time to live is asked for: the server knows best how long its work takes.
    fn submit<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        submit: SubmitTask<'a>,
    ) -> BoxFuture<'a, Result<Submitted, DriverError>> {
        Box::pin(async move {
            let arguments = submit.arguments.map(RawValue::to_owned);
            let result = upstream.call_tool(submit.task_name, arguments, Some(json("{}")?)).await?;
            match Members::of(&result).and_then(|result| result.get("task")) {
                Some(task) => Ok(Submitted::Task(State::of(task, NAMES)?.into_handle())),
                // A server without the capability takes no notice of the wish.
                None => Ok(Submitted::Answered(result)),
            }
        })
    }

    fn status<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(self.read(upstream, task))
    }

    fn cancel<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(async move {
            match upstream.request("tasks/cancel", about(task.remote_id)?).await {
                Ok(cancelled) => match State::about(&cancelled, task.remote_id, NAMES)?.status {
                    Status::Cancelled => Ok(Report::of(Status::Cancelled)),
                    _ => ended(self.read(upstream, task).await?),
                },
                // It has ended already, or is unknown, or cannot be cancelled: how it is tells which.
                Err(RemoteError { rpc: Some(_), .. }) => ended(self.read(upstream, task).await?),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Answers the very requests that ask. One that is asked no more takes no answer.
    fn answer<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
        answers: &'a [NewAnswer],
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let mut taken = answers.is_empty();
            for answer in answers {
                taken |= upstream.answer_task(task.remote_id, &answer.input_id, json(&answer.body)?).await?;
            }
            if taken {
                return Ok(());
            }
            Err(DriverError::NotSupported("the server does not wait for this answer any more".to_owned()))
        })
    }
}
