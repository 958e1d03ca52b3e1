//! PATCH /api/mcp/config

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_runtime::ConfigChange;
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{ChangeProblems, NOT_SWITCHED, StoredServers, changed};
use super::condition::Condition;
use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::BodyProblems;
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// One server's switch.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"server_name": "github", "enabled": false}))]
pub(crate) struct Switch {
    /// Its name.
    #[schema(min_length = 1)]
    server_name: String,
    /// On or off.
    enabled: bool,
}

/// Switches one server on or off.
///
/// Every other byte of the file stays. A server is judged only when it is switched on, its neighbours never.
#[utoipa::path(
    patch,
    path = "/api/mcp/config",
    tag = "configuration",
    params(Condition),
    request_body = Switch,
    responses(
        (status = 200, description = "The servers as they are stored now", body = StoredServers,
            headers(("ETag" = String, description = "Names what is stored"))),
        (status = 404, description = "`not_found`: no server has this name", body = ProblemBody<'static>),
        BodyProblems,
        ChangeProblems,
    ),
)]
pub(crate) async fn switch_server(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    Condition(condition): Condition,
    JsonBody(Switch { server_name, enabled }): JsonBody<Switch>,
) -> Response {
    if server_name.is_empty() {
        return Problem::invalid("`server_name`: must have at least one character").into_response();
    }
    changed(&replica.runtime, &caller, ConfigChange::SetEnabled { name: server_name, enabled }, condition, NOT_SWITCHED)
        .await
}
