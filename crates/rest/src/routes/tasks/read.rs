//! GET /api/threads/{thread_id}/mcp-tasks/{task_id}

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::answer::{OneTaskProblems, TaskDetail, TaskProblems, detail};
use super::named::{NamedTask, Whose};
use crate::openapi::ParameterProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// Shows one task.
#[utoipa::path(
    get,
    path = "/api/threads/{thread_id}/mcp-tasks/{task_id}",
    tag = "tasks",
    params(
        ("thread_id" = String, Path, description = "The thread", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "thread-1"),
        ("task_id" = String, Path, description = "The task", example = "mcp-task-0a0102030405060708090a0b0c0d0eff"),
        Whose,
    ),
    responses(
        (status = 200, description = "The task", body = TaskDetail),
        ParameterProblems,
        OneTaskProblems,
        TaskProblems,
    ),
)]
pub(crate) async fn read_task(
    State(replica): State<Arc<Replica>>,
    NamedTask { caller, scope, task }: NamedTask,
) -> Result<Response, Problem> {
    let task = replica.runtime.read_task(&caller, &scope, &task).await?;
    Ok(detail(&replica, task))
}
