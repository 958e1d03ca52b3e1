//! DELETE /api/mcp/oauth/{server}

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use caribou_core::ids::ServerName;

use crate::identity::Identified;
use crate::openapi::{FaultProblem, ParameterProblems};
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// Forgets a chain: the next token is asked for with the configured refresh token. For admins.
#[utoipa::path(
    delete,
    path = "/api/mcp/oauth/{server}",
    tag = "oauth",
    params(("server" = String, Path, description = "The server, as the list of chains names it", example = "shop")),
    responses(
        (status = 204, description = "It is forgotten"),
        (status = 403, description = "`denied`: the caller is no admin", body = ProblemBody<'static>),
        (status = 404, description = "`not_found`: there is no chain of this name", body = ProblemBody<'static>),
        (status = 503, description = "`unavailable`: the store cannot be asked now", body = ProblemBody<'static>),
        ParameterProblems,
        FaultProblem,
    ),
)]
pub(crate) async fn forget_chain(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    server: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path(server) = server.map_err(|_| Problem::invalid("the path is not valid UTF-8"))?;
    replica.runtime.forget_oauth(&caller, &ServerName::new(&*server)).await?;
    Ok(StatusCode::NO_CONTENT)
}
