//! DELETE /api/users/{user_id}/mcp/connections/{name}

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::answer::{ChangeProblems, ReadProblems, named};
use crate::identity::Identified;
use crate::openapi::ParameterProblems;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;
use crate::routes::config::Condition;

/// Deletes a server of a user's own; its sessions are closed.
#[utoipa::path(
    delete,
    path = "/api/users/{user_id}/mcp/connections/{name}",
    tag = "personal connections",
    params(
        ("user_id" = String, Path, description = "The user", max_length = 256, example = "ann"),
        ("name" = String, Path, description = "What the user calls it", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "github"),
        Condition,
    ),
    responses(
        (status = 204, description = "It is deleted"),
        (status = 404, description = "`not_found`: the user has none of that name", body = ProblemBody<'static>),
        ParameterProblems,
        ReadProblems,
        ChangeProblems,
    ),
)]
pub(crate) async fn delete_connection(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    path: Result<Path<(String, String)>, PathRejection>,
    Condition(condition): Condition,
) -> Result<StatusCode, Problem> {
    let (user, name) = named(&caller, path)?;
    replica.runtime.delete_personal_connection(&caller, &user, &name, condition).await?;
    Ok(StatusCode::NO_CONTENT)
}
