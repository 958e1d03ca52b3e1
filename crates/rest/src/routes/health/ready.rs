//! GET /readyz

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use caribou_core::failure::Code;

use super::live::Health;
use crate::openapi::FaultProblem;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// Whether the replica takes work.
///
/// 503 while it starts and from the moment it begins to stop. Says nothing about MCP servers, so that one broken
/// server never takes a replica out of service.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operation",
    responses(
        (status = 200, description = "It takes work", body = Health<'static>),
        (status = 503, description = "It takes no work now; `detail` says why", body = ProblemBody<'static>),
        FaultProblem,
    ),
)]
pub(crate) async fn ready(State(replica): State<Arc<Replica>>) -> Result<Json<Health<'static>>, Problem> {
    match (replica.options.ready)() {
        Ok(()) => Ok(Json(Health::OK)),
        Err(reason) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, reason)),
    }
}
