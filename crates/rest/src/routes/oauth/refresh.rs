//! POST /api/mcp/oauth/{server}/refresh

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use caribou_core::ids::ServerName;
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::Identified;
use crate::openapi::{FaultProblem, ParameterProblems};
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// That a token came.
#[derive(Serialize, ToSchema)]
pub(crate) struct Refreshed {
    /// Always true.
    refreshed: bool,
}

/// Asks for another access token, whatever the one in hand is good for. For admins.
///
/// Waits for the token; a replica that is at it already is waited for.
#[utoipa::path(
    post,
    path = "/api/mcp/oauth/{server}/refresh",
    tag = "oauth",
    params(("server" = String, Path, description = "The server", example = "shop")),
    responses(
        (status = 200, description = "A new token is in force", body = Refreshed),
        (status = 403, description = "`denied`: the caller is no admin, or a person must configure another refresh token",
            body = ProblemBody<'static>),
        (status = 404, description = "`not_found`: no such server", body = ProblemBody<'static>),
        (status = 409, description = "`conflict`: the server has no `oauth` in force", body = ProblemBody<'static>),
        (status = 503, description = "`unavailable`: there is no token to be had now", body = ProblemBody<'static>),
        ParameterProblems,
        FaultProblem,
    ),
)]
pub(crate) async fn refresh_chain(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    server: Result<Path<String>, PathRejection>,
) -> Result<Json<Refreshed>, Problem> {
    let Path(server) = server.map_err(|_| Problem::invalid("the path is not valid UTF-8"))?;
    replica.runtime.refresh_oauth(&caller, &ServerName::new(&*server)).await?;
    Ok(Json(Refreshed { refreshed: true }))
}
