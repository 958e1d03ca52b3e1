//! Tasks by ordinary tools: a toolset names those that start, look after, cancel and answer (contract 6.6 to 6.8).
//!
//! Owns which tool is called with which arguments; the answers are read by `core::task::parse`. The toolset is that of
//! the server's configuration for this call. An answer is brought with its name, so that the tool can tell a repeat.

use caribou_core::config::TaskToolset;
use caribou_core::task::parse;
use caribou_core::task::{Report, TaskLimits};
use caribou_ports::BoxFuture;
use caribou_ports::store::NewAnswer;
use caribou_ports::task_driver::{DriverError, RemoteTask, SubmitTask, Submitted, TaskDriver, TaskHandle, Upstream};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The driver of toolsets.
#[derive(Clone, Copy, Debug)]
pub struct OrdinaryTools {
    limits: TaskLimits,
}

impl OrdinaryTools {
    /// Names it in the record of each task.
    pub const NAME: &'static str = "ordinary-tools";

    /// Reads answers within `limits`.
    pub fn new(limits: TaskLimits) -> Self {
        Self { limits }
    }
}

/// The toolset of a task.
fn toolset<'u>(upstream: &'u dyn Upstream, name: &str) -> Result<&'u TaskToolset, DriverError> {
    let server = upstream.server();
    server.task_toolsets.iter().find(|toolset| toolset.name == name).ok_or_else(|| {
        DriverError::NotSupported(format!("server `{}` has no task toolset of this name any more", server.shown_name()))
    })
}

/// The arguments of a tool that is told which task is meant (contract 6.6).
#[derive(Serialize)]
struct About<'a> {
    task_id: &'a str,
    #[serde(flatten)]
    answer: Option<AnswerTo<'a>>,
}

/// An answer, for the optional fourth tool of a toolset (architecture.md §10, `input_tool`).
#[derive(Serialize)]
struct AnswerTo<'a> {
    input_id: &'a str,
    response: &'a RawValue,
}

/// # Errors
/// Never in practice: strings and JSON always serialise.
fn arguments(task_id: &str, answer: Option<AnswerTo<'_>>) -> Result<Option<Box<RawValue>>, DriverError> {
    to_raw_value(&About { task_id, answer }).map(Some).map_err(|error| DriverError::NotSupported(error.to_string()))
}

impl TaskDriver for OrdinaryTools {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn submit<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        submit: SubmitTask<'a>,
    ) -> BoxFuture<'a, Result<Submitted, DriverError>> {
        Box::pin(async move {
            let tool = &toolset(upstream, submit.task_name)?.submit_tool;
            let result = upstream.call_tool(tool, submit.arguments.map(RawValue::to_owned), None).await?;
            let accepted = parse::submit(&result)?;
            Ok(Submitted::Task(RemoteTask {
                remote_id: accepted.remote_id,
                driver_data: "{}".to_owned(),
                poll_after_seconds: None,
            }))
        })
    }

    fn status<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(async move {
            let tool = &toolset(upstream, task.task_name)?.status_tool;
            let result = upstream.call_tool(tool, arguments(task.remote_id, None)?, None).await?;
            Ok(parse::status(&result, task.remote_id, &self.limits)?)
        })
    }

    fn cancel<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>> {
        Box::pin(async move {
            let tool = &toolset(upstream, task.task_name)?.cancel_tool;
            let result = upstream.call_tool(tool, arguments(task.remote_id, None)?, None).await?;
            Ok(parse::cancel(&result, task.remote_id)?)
        })
    }

    fn answer<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
        answers: &'a [NewAnswer],
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let server = upstream.server().shown_name();
            let tool = toolset(upstream, task.task_name)?.input_tool.as_ref().ok_or_else(|| {
                let why = format!("the task toolset of server `{server}` has no `input_tool`: nothing takes answers");
                DriverError::NotSupported(why)
            })?;
            for answer in answers {
                let response: &RawValue = serde_json::from_str(&answer.body)
                    .map_err(|_| DriverError::NotSupported("the stored answer is no JSON".to_owned()))?;
                let about = arguments(task.remote_id, Some(AnswerTo { input_id: &answer.input_id, response }))?;
                let result = upstream.call_tool(tool, about, None).await?;
                parse::input(&result)?;
            }
            Ok(())
        })
    }
}
