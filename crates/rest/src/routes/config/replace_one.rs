//! PUT /api/mcp/config/server

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use caribou_runtime::ConfigChange;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::answer::{ChangeProblems, NOT_UPDATED, StoredServers, changed};
use super::condition::Condition;
use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::BodyProblems;
use crate::problem::ProblemBody;
use crate::router::Replica;

/// One server and what it is from now on.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"server_name": "time", "server": {"command": "uvx", "args": ["mcp-server-time"]}}))]
pub(crate) struct WrittenServer {
    /// Its name.
    server_name: String,
    /// The whole of it.
    #[schema(value_type = Object)]
    server: Map<String, Value>,
}

/// Replaces one server completely.
///
/// A field that is left out is reset; only a secret sent as `***` is kept. Its neighbours are not looked at.
#[utoipa::path(
    put,
    path = "/api/mcp/config/server",
    tag = "configuration",
    params(Condition),
    request_body = WrittenServer,
    responses(
        (status = 200, description = "The servers as they are stored now", body = StoredServers,
            headers(("ETag" = String, description = "Names what is stored"))),
        (status = 404, description = "`not_found`: no server has this name", body = ProblemBody<'static>),
        BodyProblems,
        ChangeProblems,
    ),
)]
pub(crate) async fn replace_server(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    Condition(condition): Condition,
    JsonBody(WrittenServer { server_name, server }): JsonBody<WrittenServer>,
) -> Response {
    changed(&replica.runtime, &caller, ConfigChange::Replace { name: server_name, server }, condition, NOT_UPDATED)
        .await
}
