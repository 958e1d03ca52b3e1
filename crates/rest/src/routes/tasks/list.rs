//! GET /api/threads/{thread_id}/mcp-tasks

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::{TaskItem, TaskProblems};
use super::named::NamedThread;
use crate::openapi::ParameterProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// Tasks of a list when nothing is said, and the most (contract 2.3).
const USUAL: u32 = 50;
const MOST: u32 = 100;

/// How many of whose tasks. Any other parameter is refused.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The most tasks, up to 100; absent: 50.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// The user whose thread it is; absent or empty: the caller's own.
    #[param(max_length = 256, example = "ann")]
    #[serde(rename = "user_id")]
    _user_id: Option<String>,
}

/// Lists the tasks of a thread, the newest first.
#[utoipa::path(
    get,
    path = "/api/threads/{thread_id}/mcp-tasks",
    tag = "tasks",
    params(
        ("thread_id" = String, Path, description = "The thread", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "thread-1"),
        Which,
    ),
    responses(
        (status = 200, description = "The tasks", body = Vec<TaskItem>),
        ParameterProblems,
        TaskProblems,
    ),
)]
pub(crate) async fn list_tasks(
    State(replica): State<Arc<Replica>>,
    which: Result<Query<Which>, QueryRejection>,
    NamedThread { caller, scope }: NamedThread,
) -> Result<Response, Problem> {
    let wrong = || {
        let detail = format!("the query may hold the number `limit`, from 1 to {MOST}, and `user_id`, each once");
        Problem::invalid(detail)
    };
    let Query(which) = which.map_err(|_| wrong())?;
    let limit = which.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(wrong());
    }
    let tasks = replica.runtime.list_tasks(&caller, &scope, limit).await?;
    Ok(Json(tasks.iter().map(|task| TaskItem::new(&replica, task)).collect::<Vec<_>>()).into_response())
}
