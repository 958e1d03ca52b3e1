//! How a remote's tasks are spoken about: one driver for the tools of a toolset, one for the tasks of the protocol
//! itself (contract 6.6, mcp.md §9).
//!
//! A driver knows the words; it holds no state, keeps no schedule and never repeats a call. It reaches the server
//! through an [`Upstream`] that the runtime hands it for one call: with the credentials of that call, and bounded.

use caribou_core::failure::{Class, Code};
use caribou_core::task::parse::Misread;
use caribou_core::task::{Report, TaskId};
use serde_json::value::RawValue;

use crate::BoxFuture;
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
    ) -> BoxFuture<'a, Result<RemoteTask, DriverError>>;

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
    /// Calls a tool by its raw name, and answers with its `CallToolResult`, byte for byte.
    fn call_tool(
        &self,
        raw_name: &str,
        arguments: Option<Box<RawValue>>,
    ) -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>>;

    /// Sends a request of the protocol, and answers with its result, byte for byte.
    fn request(&self, method: &'static str, params: Box<RawValue>)
    -> BoxFuture<'_, Result<Box<RawValue>, RemoteError>>;

    /// The session that serves the call, if the server names one.
    fn session_id(&self) -> Option<String>;
}

/// What a remote is asked to begin.
#[derive(Clone, Copy, Debug)]
pub struct SubmitTask<'a> {
    /// Its local name.
    pub task: TaskId,
    /// Names the submit.
    pub submit_key: SubmitKey,
    /// The name of its toolset: which tools it has.
    pub task_name: &'a str,
    /// The arguments as the caller wrote them; absent stays absent.
    pub arguments: Option<&'a RawValue>,
}

/// A remote's task, as it is on record.
#[derive(Clone, Copy, Debug)]
pub struct TaskHandle<'a> {
    /// Its local name.
    pub task: TaskId,
    /// The name of its toolset.
    pub task_name: &'a str,
    /// The remote's name of it.
    pub remote_id: &'a str,
    /// What this driver remembers of it: a JSON object.
    pub driver_data: &'a str,
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
        let lost = RemoteError { code: Code::OutcomeUnknown, message: String::new() };
        assert_eq!(DriverError::from(lost).class(), Class::Unknown);
    }
}
