//! Tasks of the modern era: the extension `io.modelcontextprotocol/tasks` (mcp.md §9.2).
//!
//! Owns what each answer means for the task as it is stored. The server decides which call becomes a task, so a submit
//! may be answered at once; `tasks/get` brings the whole state, result and questions included, and may be asked again;
//! a cancel is a wish, and what came of it is read afterwards. Questions have names that are never used twice: an answer
//! that is brought again is one that the server has. A task that the server does not know has failed for good.

use caribou_core::raw::{self, Members, text};
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, RpcError, Status, TaskLimits};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, TaskQuestion};
use caribou_ports::store::NewAnswer;
use caribou_ports::task_driver::{
    DriverError, RemoteError, RemoteTask, SubmitTask, Submitted, TaskDriver, TaskHandle, Upstream,
};
use serde_json::value::RawValue;

use super::legacy::{about, ended, json, within};
use super::state::{INVALID_PARAMS, Names, State, protocol, question, unknown, without_task};
use crate::wire::errors::{self, CAPABILITY_MISSING};

const NAMES: Names = Names { ttl: "ttlMs", poll_interval: "pollIntervalMs" };

/// The driver of the extension.
#[derive(Clone, Copy, Debug)]
pub struct ModernTasks {
    limits: TaskLimits,
}

impl ModernTasks {
    /// Names it in the record of each task.
    pub const NAME: &'static str = "mcp-tasks-2026";

    /// Reads answers within `limits`.
    pub fn new(limits: TaskLimits) -> Self {
        Self { limits }
    }

    async fn read(&self, upstream: &dyn Upstream, task: TaskHandle<'_>) -> Result<Report, DriverError> {
        let got = match upstream.request("tasks/get", about(task.remote_id)?).await {
            Err(error) if error.rpc_code() == Some(INVALID_PARAMS) => return Ok(unknown(task.driver_data)),
            got => got.map_err(explained)?,
        };
        within(&got, &self.limits)?;
        let state = State::about(&got, task.remote_id, NAMES)?;
        let given = |name: &str| state.members.get(name).filter(|value| value.get() != "null");
        match state.status {
            Status::InputRequired => {
                let requests = given("inputRequests").and_then(Members::of);
                let asked = requests.ok_or_else(|| protocol("inputRequests is missing"))?;
                let asked = questions(asked, task.remote_id);
                Ok(Report { input_required: question(&asked, state.message()), ..state.report() })
            }
            Status::Completed => {
                let result = given("result").ok_or_else(|| protocol("the result of a completed task is missing"))?;
                Ok(Report { result: Some(without_task(result)), ..state.report() })
            }
            Status::Failed => {
                let error = given("error").map(errors::rpc);
                let why = error.as_ref().map(ToString::to_string).or_else(|| state.message());
                let rpc_error = match error {
                    Some(CallError::Rpc { code, message, data }) => {
                        Some(RpcError { code, message, data: data.map(|data| (*data).to_owned()) })
                    }
                    _ => None,
                };
                Ok(Report { error: why, rpc_error, ..state.report() })
            }
            _ => Ok(state.report()),
        }
    }
}

/// Stands for the remote's name of the task in the name of a question: servers like to make the one of the other, and
/// nobody is shown that name (contract 2.3).
const THE_TASK: &str = "{task}";

/// The name under which a question is shown.
fn shown_name(name: &str, remote_id: &str) -> String {
    name.replace(remote_id, THE_TASK)
}

/// The server's name of a question that was shown under `name`.
fn server_name(name: &str, remote_id: &str) -> String {
    name.replace(THE_TASK, remote_id)
}

/// The requests of a task that waits for input, in the order of the answer.
fn questions(requests: Members<'_>, remote_id: &str) -> Vec<TaskQuestion> {
    let empty = || RawValue::from_string("{}".to_owned()).unwrap_or_default();
    let read = |(name, request): (_, &RawValue)| {
        let request = Members::of(request);
        let member = |name: &str| request.as_ref().and_then(|request| request.get(name));
        let method = member("method").and_then(text).unwrap_or_default().into_owned();
        TaskQuestion { name, method, params: member("params").map_or_else(empty, RawValue::to_owned) }
    };
    requests.0.into_iter().map(|(name, request)| read((shown_name(&name, remote_id), request))).collect()
}

/// A capability that the server cannot do without is the operator's to declare.
fn explained(error: RemoteError) -> DriverError {
    if error.rpc_code() != Some(CAPABILITY_MISSING) {
        return error.into();
    }
    let message = format!("{}; declare what the server needs in its `client_capabilities`", error.message);
    DriverError::NotSupported(message)
}

impl TaskDriver for ModernTasks {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn submit<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        submit: SubmitTask<'a>,
    ) -> BoxFuture<'a, Result<Submitted, DriverError>> {
        Box::pin(async move {
            let arguments = submit.arguments.map(RawValue::to_owned);
            let called = upstream.call_tool(submit.task_name, arguments, Some(json("{}")?)).await;
            let result = called.map_err(explained)?;
            Ok(self.created(&result)?.map_or(Submitted::Answered(result), Submitted::Task))
        })
    }

    fn created(&self, result: &RawValue) -> Result<Option<RemoteTask>, Misread> {
        let kind = Members::of(result).and_then(|result| result.get("resultType").and_then(text));
        if kind.as_deref() != Some("task") {
            return Ok(None);
        }
        State::of(result, NAMES).map(|state| Some(state.into_handle()))
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
                // The answer says nothing, and an error that it is over already or unknown: how it is tells.
                Ok(_) | Err(RemoteError { rpc: Some(_), .. }) => ended(self.read(upstream, task).await?),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// All of them at once; the server passes over those that it has.
    fn answer<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
        answers: &'a [NewAnswer],
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let mut bodies = Vec::with_capacity(answers.len());
            for answer in answers {
                bodies.push((server_name(&answer.input_id, task.remote_id), json(&answer.body)?));
            }
            let responses = json(&raw::object(bodies.iter().map(|(name, body)| (name.as_str(), &**body))))?;
            let about = about(task.remote_id)?;
            let members = Members::of(&about).map_or_else(Vec::new, |about| about.0);
            let named = members.iter().map(|(name, value)| (&**name, *value));
            let params = json(&raw::object(named.chain([("inputResponses", &*responses)])))?;
            upstream.request("tasks/update", params).await.map_err(explained)?;
            Ok(())
        })
    }
}
