//! POST /api/threads/{thread_id}/mcp-tasks/{task_id}/cancel

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::answer::{OneTaskProblems, TaskDetail, TaskProblems, detail};
use super::named::{NamedTask, Whose};
use crate::openapi::ParameterProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// Asks for a task to be cancelled.
///
/// Answers at once; the server is told afterwards, until it says how the task ended. A task that ended before stays as
/// it is. Asking again changes nothing.
#[utoipa::path(
    post,
    path = "/api/threads/{thread_id}/mcp-tasks/{task_id}/cancel",
    tag = "tasks",
    params(
        ("thread_id" = String, Path, description = "The thread", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "thread-1"),
        ("task_id" = String, Path, description = "The task", example = "mcp-task-0a0102030405060708090a0b0c0d0eff"),
        Whose,
    ),
    responses(
        (status = 200, description = "The task as it is now", body = TaskDetail),
        ParameterProblems,
        OneTaskProblems,
        TaskProblems,
    ),
)]
pub(crate) async fn cancel_task(
    State(replica): State<Arc<Replica>>,
    NamedTask { caller, scope, task }: NamedTask,
) -> Result<Response, Problem> {
    let task = replica.runtime.cancel_task(&caller, &scope, &task).await?;
    Ok(detail(&replica, task))
}
