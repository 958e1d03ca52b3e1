//! How a remote's tasks are spoken about: one driver for the tools of a toolset, one for the tasks of the protocol
//! itself (contract 6.6, mcp.md §9).
//!
//! A driver knows the words; it holds no state, keeps no schedule and never repeats a call. It reaches the server
//! through an [`Upstream`] that the runtime hands it for one call: with the credentials of that call, and bounded.

use caribou_core::config::ServerConfig;
use caribou_core::failure::{Class, Code};
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, RpcError, TaskId};
use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::mcp::TaskQuestion;
use crate::store::{NewAnswer, SubmitKey};

/// Speaks to servers about tasks.
pub trait TaskDriver: Send + Sync + 'static {
    /// Names it in the record of each task: `ordinary-tools`, ...
    fn name(&self) -> &'static str;

    /// Asks the remote to begin. Called once for each intent (invariant T1).
    fn submit<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        submit: SubmitTask<'a>,
    ) -> BoxFuture<'a, Result<Submitted, DriverError>>;

    /// The task that the answer to a plain call tells of: a server of the modern era may make one of any call of whoever
    /// can follow it (mcp.md §9.2). `None` = it is an ordinary result.
    ///
    /// # Errors
    /// It tells of a task, but not of one that can be followed.
    fn created(&self, _result: &RawValue) -> Result<Option<RemoteTask>, Misread> {
        Ok(None)
    }

    /// Asks how it is. Without effects, so it may be asked again.
    fn status<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>>;

    /// Asks the remote to end it, and how it ended: with a terminal status. Asked again until it answers.
    fn cancel<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
    ) -> BoxFuture<'a, Result<Report, DriverError>>;

    /// Brings answers. Their names go along: after a crash the same ones are brought again.
    fn answer<'a>(
        &'a self,
        upstream: &'a dyn Upstream,
        task: TaskHandle<'a>,
        answers: &'a [NewAnswer],
    ) -> BoxFuture<'a, Result<(), DriverError>>;
}

/// One server, for one call about one task.
pub trait Upstream: Send + Sync {
    /// Calls a tool by its raw name, and answers with its result, byte for byte. `task` as in
    /// [`crate::mcp::ToolCall::task`].
    fn call_tool(
        &self,
        raw_name: &str,
        arguments: Option<Box<RawValue>>,
        task: Option<Box<RawValue>>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>>;

    /// Sends a request of the protocol, and answers with its result, byte for byte; see
    /// [`crate::mcp::Session::request`].
    fn request(&self, method: &'static str, params: Box<RawValue>)
    -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>>;

    /// What the server asks about one of its tasks; see [`crate::mcp::Session::task_questions`].
    fn task_questions(&self, remote_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, RemoteError>>;

    /// Answers one of them; see [`crate::mcp::Session::answer_task`].
    fn answer_task(
        &self,
        remote_id: &str,
        question: &str,
        answer: Box<RawValue>,
    ) -> BoxFuture<'_, Result<bool, RemoteError>>;

    /// The server as it is configured for this call: its toolsets are those of the task.
    fn server(&self) -> &ServerConfig;

    /// The session that served the last call, if the server keeps one.
    fn session_id(&self) -> Option<String>;
}

/// What a remote is asked to begin.
#[derive(Clone, Copy, Debug)]
pub struct SubmitTask<'a> {
    /// Its local name.
    pub task: TaskId,
    /// Names the submit.
    pub submit_key: SubmitKey,
    /// The name of its toolset: which tools it has. For tasks of the protocol the raw name of the tool.
    pub task_name: &'a str,
    /// The arguments as the caller wrote them; absent stays absent.
    pub arguments: Option<&'a RawValue>,
}

/// A remote's task, as it is on record.
#[derive(Clone, Copy, Debug)]
pub struct TaskHandle<'a> {
    /// Its local name.
    pub task: TaskId,
    /// The name of its toolset, or of the tool; see [`SubmitTask::task_name`].
    pub task_name: &'a str,
    /// The remote's name of it.
    pub remote_id: &'a str,
    /// What this driver remembers of it: a JSON object.
    pub driver_data: &'a str,
}

/// How a remote took a submit.
#[derive(Clone, Debug)]
pub enum Submitted {
    /// It works on it.
    Task(RemoteTask),
    /// It answered at once, with a `CallToolResult`: there is no task (mcp.md §9.2: either must be accepted).
    Answered(Box<RawValue>),
}

/// What a remote has accepted.
#[derive(Clone, Debug)]
pub struct RemoteTask {
    /// The remote's name of it, of any length.
    pub remote_id: String,
    /// What the driver wants to remember: a JSON object. The remote's name is no part of it (contract 6.6).
    pub driver_data: String,
    /// When the remote wants to be asked for the first time, in seconds: finite and positive.
    pub poll_after_seconds: Option<f64>,
}

/// Why a call about a task has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RemoteError {
    /// The word a caller branches on; its class tells whether the call may have been processed.
    pub code: Code,
    /// For people; holds no secret.
    pub message: String,
    /// The server's own JSON-RPC error, if that is what it answered.
    pub rpc: Option<RpcError>,
}

impl RemoteError {
    /// One that is no JSON-RPC error of the server.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), rpc: None }
    }

    /// The code of the server's own JSON-RPC error.
    pub fn rpc_code(&self) -> Option<i64> {
        self.rpc.as_ref().map(|error| error.code)
    }
}

/// Why a driver has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The remote answered with a failure, or with something that breaks the contract.
    #[error(transparent)]
    Misread(#[from] Misread),
    /// The call has no result.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The toolset is not, or no longer, configured; or the driver has no word for it, such as for an answer.
    #[error("{0}")]
    NotSupported(String),
}

impl DriverError {
    /// What may be done about it. A breach of the contract is permanent: `Invalid`.
    pub fn class(&self) -> Class {
        match self {
            Self::Misread(Misread::ToolFailed(_)) => Class::Retry,
            Self::Misread(Misread::Protocol(_)) => Class::Invalid,
            Self::Remote(error) => error.code.class(),
            Self::NotSupported(_) => Class::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_tool_may_be_asked_again_and_a_breach_of_the_contract_may_not() {
        // Contract 6.5, poll outcomes.
        let class = |misread| DriverError::from(misread).class();
        assert_eq!(class(Misread::ToolFailed(String::new())), Class::Retry);
        assert_eq!(class(Misread::Protocol(String::new())), Class::Invalid);
        let lost = RemoteError::new(Code::OutcomeUnknown, "");
        assert_eq!(DriverError::from(lost).class(), Class::Unknown);
    }
}
