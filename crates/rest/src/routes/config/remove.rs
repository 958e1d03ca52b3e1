//! DELETE /api/mcp/config/servers/{name}

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use caribou_runtime::ConfigChange;

use super::answer::{ChangeProblems, NOT_UPDATED, StoredServers, changed};
use super::condition::Condition;
use crate::identity::Identified;
use crate::openapi::ParameterProblems;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// What axum matches. The name is the rest of the path, slashes included (contract 2.2), which the OpenAPI document
/// has no words for.
pub(crate) const PATH: &str = "/api/mcp/config/servers/{*name}";

/// Removes one server.
#[utoipa::path(
    delete,
    path = "/api/mcp/config/servers/{name}",
    tag = "configuration",
    params(("name" = String, Path, description = "Its name; slashes may stand in it as they are"), Condition),
    responses(
        (status = 200, description = "The servers as they are stored now", body = StoredServers,
            headers(("ETag" = String, description = "Names what is stored"))),
        (status = 404, description = "`not_found`: no server has this name", body = ProblemBody<'static>),
        ParameterProblems,
        ChangeProblems,
    ),
)]
pub(crate) async fn remove_server(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    name: Result<Path<String>, PathRejection>,
    Condition(condition): Condition,
) -> Result<Response, Problem> {
    let Path(name) = name.map_err(|_| Problem::invalid("`name` is not valid UTF-8"))?;
    Ok(changed(&replica.runtime, &caller, ConfigChange::Remove { name }, condition, NOT_UPDATED).await)
}
