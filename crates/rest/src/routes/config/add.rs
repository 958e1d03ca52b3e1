//! POST /api/mcp/config/servers

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use caribou_runtime::ConfigChange;

use super::answer::{ChangeProblems, NOT_UPDATED, StoredServers, changed};
use super::condition::Condition;
use super::replace_all::WrittenServers;
use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::BodyProblems;
use crate::router::Replica;

/// Adds servers; those that are stored stay as they are.
#[utoipa::path(
    post,
    path = "/api/mcp/config/servers",
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
pub(crate) async fn add_servers(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    Condition(condition): Condition,
    JsonBody(written): JsonBody<WrittenServers>,
) -> Response {
    changed(&replica.runtime, &caller, ConfigChange::Add(written.mcp_servers.0), condition, NOT_UPDATED).await
}
