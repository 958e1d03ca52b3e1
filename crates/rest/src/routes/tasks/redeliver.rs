//! POST /api/mcp-tasks/{task_id}/redeliver

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use caribou_core::failure::Code;
use caribou_runtime::VerbError;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{OneTaskProblems, TaskProblems};
use crate::identity::Identified;
use crate::openapi::ParameterProblems;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// That something is told anew.
#[derive(Serialize, ToSchema)]
pub(crate) struct Retold {
    /// Always true.
    redelivered: bool,
}

/// Tells anew what was given up. For admins.
///
/// The newest event of the task goes to each receiver that it was given up for, at once and with all its tries.
#[utoipa::path(
    post,
    path = "/api/mcp-tasks/{task_id}/redeliver",
    tag = "tasks",
    params(("task_id" = String, Path, description = "The task", example = "mcp-task-0a0102030405060708090a0b0c0d0eff")),
    responses(
        (status = 200, description = "It is told anew", body = Retold),
        (status = 409, description = "`conflict`: nothing was given up for this task", body = ProblemBody<'static>),
        ParameterProblems,
        OneTaskProblems,
        TaskProblems,
    ),
)]
pub(crate) async fn redeliver(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    task: Result<Path<String>, PathRejection>,
) -> Result<Json<Retold>, Problem> {
    let Path(task) = task.map_err(|_| Problem::invalid("the path is not valid UTF-8"))?;
    if !replica.runtime.redeliver(&caller, &task, None).await? {
        return Err(VerbError::new(Code::Conflict, "nothing was given up for this task").into());
    }
    Ok(Json(Retold { redelivered: true }))
}
