//! Calls that were answered at once although their clients had asked for a task (mcp.md §14.5, L with tasks): the answer
//! is kept as the result of a task.
//!
//! Speaks to no server: what there is to say is remembered beside the task, so any replica ends it like every other one,
//! with its event.

use caribou_core::raw::Members;
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, Status};
use caribou_ports::BoxFuture;
use caribou_ports::store::NewAnswer;
use caribou_ports::task_driver::{DriverError, RemoteTask, SubmitTask, Submitted, TaskDriver, TaskHandle, Upstream};
use serde_json::value::RawValue;

use super::submission::random;
use crate::error::VerbError;

/// Names the driver in the record of each task.
pub(crate) const ANSWERED: &str = "answered-calls";

/// The member of what is remembered that holds the answer.
const RESULT: &str = "result";

/// Until it is ended, in seconds: at once.
const AT_ONCE: f64 = 0.001;

/// The driver of such tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredCalls;

/// The task whose result is `result`.
///
/// # Errors
/// The machine gives no random numbers.
pub(crate) fn answered(result: &RawValue) -> Result<RemoteTask, VerbError> {
    let remote_id = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let driver_data = caribou_core::raw::object([(RESULT, result)]);
    Ok(RemoteTask { remote_id, driver_data, poll_after_seconds: Some(AT_ONCE) })
}

impl AnsweredCalls {
    fn report(task: TaskHandle<'_>) -> Result<Report, DriverError> {
        let remembered: Option<&RawValue> = serde_json::from_str(task.driver_data).ok();
        let result = remembered.and_then(Members::of).and_then(|members| members.get(RESULT));
        let result = result.ok_or_else(|| Misread::Protocol("the answer that was kept is not there".to_owned()))?;
        Ok(Report { result: Some(result.to_owned()), ..Report::of(Status::Completed) })
    }
}

impl TaskDriver for AnsweredCalls {
    fn name(&self) -> &'static str {
        ANSWERED
    }

    fn submit<'a>(
        &'a self,
        _upstream: &'a dyn Upstream,
        _submit: SubmitTask<'a>,
    ) -> BoxFuture<'a, Result<Submitted, DriverError>> {
        Box::pin(std::future::ready(Err(DriverError::NotSupported("an answered call is not submitted".to_owned()))))
    }

    fn status<'a>(
        &'a self,
        _upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(std::future::ready(Self::report(task)))
    }

    /// It was over before it could be cancelled.
    fn cancel<'a>(
        &'a self,
        _upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(std::future::ready(Self::report(task)))
    }

    fn answer<'a>(
        &'a self,
        _upstream: &'a dyn Upstream,
        _task: TaskHandle<'a>,
        _answers: &'a [NewAnswer],
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::ready(Err(DriverError::NotSupported("an answered call asks nothing".to_owned()))))
    }
}
