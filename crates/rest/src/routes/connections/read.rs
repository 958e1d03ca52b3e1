//! GET /api/users/{user_id}/mcp/connections/{name}

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;

use super::answer::{Connection, ReadProblems, named, shown};
use crate::identity::Identified;
use crate::openapi::ParameterProblems;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// Shows one server that a user brought for itself.
///
/// Its `definition` may be edited and sent back: what is masked is kept.
#[utoipa::path(
    get,
    path = "/api/users/{user_id}/mcp/connections/{name}",
    tag = "personal connections",
    params(
        ("user_id" = String, Path, description = "The user", max_length = 256, example = "ann"),
        ("name" = String, Path, description = "What the user calls it", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "github"),
    ),
    responses(
        (status = 200, description = "The connection", body = Connection,
            headers(("ETag" = String, description = "Names what is stored"))),
        (status = 404, description = "`not_found`: the user has none of that name", body = ProblemBody<'static>),
        ParameterProblems,
        ReadProblems,
    ),
)]
pub(crate) async fn read_connection(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Problem> {
    let (user, name) = named(&caller, path)?;
    Ok(shown(replica.runtime.personal_connection(&caller, &user, &name).await?))
}
