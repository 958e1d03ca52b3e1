//! GET /api/users/{user_id}/mcp/connections

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{Connection, ReadProblems, tagged};
use crate::identity::Identified;
use crate::openapi::ParameterProblems;
use crate::problem::Problem;
use crate::router::Replica;
use crate::scope::scope;

/// All personal connections of a user.
#[derive(Serialize, ToSchema)]
struct Connections {
    /// By name.
    connections: Vec<Connection>,
}

/// Lists the servers that a user brought for itself.
#[utoipa::path(
    get,
    path = "/api/users/{user_id}/mcp/connections",
    tag = "personal connections",
    params(("user_id" = String, Path, description = "The user", max_length = 256, example = "ann")),
    responses(
        (status = 200, description = "The connections", body = Connections,
            headers(("ETag" = String, description = "Names what is stored"))),
        ParameterProblems,
        ReadProblems,
    ),
)]
pub(crate) async fn list_connections(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    user: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let Path(user) = user.map_err(|_| Problem::invalid("the path is not valid UTF-8"))?;
    let user = scope(&caller, Some(&user), None)?.user;
    let view = replica.runtime.personal_connections(&caller, &user).await?;
    let connections = view.connections.into_iter().map(Connection::from).collect();
    Ok(tagged(Json(Connections { connections }).into_response(), view.etag))
}
