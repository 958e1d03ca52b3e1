//! PUT /api/mcp/config

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use caribou_core::config::ServersByName;
use caribou_runtime::ConfigChange;
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{ChangeProblems, NOT_UPDATED, StoredServers, changed};
use super::condition::Condition;
use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::BodyProblems;
use crate::router::Replica;

/// Servers, in the form that `GET /api/mcp/config` shows them.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"mcp_servers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}))]
pub(crate) struct WrittenServers {
    /// Each server by its name.
    #[schema(value_type = Object)]
    pub(super) mcp_servers: ServersByName,
}

/// Replaces the whole set of servers.
///
/// One that is missing is deleted. A secret sent back as it was shown is kept; so are the fields `routing`, `tools`,
/// `user_auth`, `headers_from_context` and unknown ones that are left out. Every server is judged before anything is
/// written.
#[utoipa::path(
    put,
    path = "/api/mcp/config",
    tag = "configuration",
    params(Condition),
    request_body = WrittenServers,
    responses(
        (status = 200, description = "The servers as they are stored now", body = StoredServers,
            headers(("ETag" = String, description = "Names what is stored"))),
        BodyProblems,
        ChangeProblems,
    ),
)]
pub(crate) async fn replace_config(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    Condition(condition): Condition,
    JsonBody(written): JsonBody<WrittenServers>,
) -> Response {
    let change = ConfigChange::ReplaceAll(written.mcp_servers.0);
    changed(&replica.runtime, &caller, change, condition, NOT_UPDATED).await
}
