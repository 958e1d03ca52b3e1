//! POST /api/threads/{thread_id}/mcp-tasks/{task_id}/input

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answer::{OneTaskProblems, TaskDetail, TaskProblems, detail};
use super::named::{NamedTask, Whose};
use crate::body::JsonBody;
use crate::openapi::{BodyProblems, ParameterProblems};
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// An answer to what a task asks. Unknown members are ignored.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"input_id": "format-1", "answers": {"format": "pdf"}}))]
pub(crate) struct Input {
    /// Names the answer: the same one again changes nothing, so a request may be repeated. Where the question names
    /// what it asks (`inputRequests`), it is that name; else the caller makes one up.
    #[schema(min_length = 1, max_length = 255)]
    input_id: String,
    /// The answer. It reaches the server as it is, once. One of `answers` and `response` must be there.
    #[schema(value_type = Option<Object>)]
    answers: Option<Box<RawValue>>,
    /// Another name of `answers`, for the answer to a request of the protocol: `{"action": "accept", "content": {}}`.
    #[schema(value_type = Option<Object>)]
    response: Option<Box<RawValue>>,
}

impl Input {
    fn answer(&self) -> Result<&RawValue, Problem> {
        match (&self.answers, &self.response) {
            (Some(body), None) | (None, Some(body)) => Ok(body),
            _ => Err(Problem::invalid("the body needs one of `answers` and `response`")),
        }
    }
}

/// Answers what a task asks.
///
/// The answer is stored, then brought to the server in the background; `input_required` stands until the server has it.
#[utoipa::path(
    post,
    path = "/api/threads/{thread_id}/mcp-tasks/{task_id}/input",
    tag = "tasks",
    params(
        ("thread_id" = String, Path, description = "The thread", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "thread-1"),
        ("task_id" = String, Path, description = "The task", example = "mcp-task-0a0102030405060708090a0b0c0d0eff"),
        Whose,
    ),
    request_body = Input,
    responses(
        (status = 200, description = "The answer is stored; the task as it is now", body = TaskDetail),
        (status = 409, description = "`conflict`: nothing is asked, or another answer has this name",
            body = ProblemBody<'static>),
        BodyProblems,
        ParameterProblems,
        OneTaskProblems,
        TaskProblems,
    ),
)]
pub(crate) async fn answer_task(
    State(replica): State<Arc<Replica>>,
    NamedTask { caller, scope, task }: NamedTask,
    JsonBody(input): JsonBody<Input>,
) -> Result<Response, Problem> {
    let task = replica.runtime.answer_task(&caller, &scope, &task, &input.input_id, input.answer()?).await?;
    Ok(detail(&replica, task))
}
