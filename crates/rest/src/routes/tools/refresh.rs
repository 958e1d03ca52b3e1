//! POST /api/mcp/tools/refresh

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use caribou_core::ids::ServerName;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::body::OptionalJsonBody;
use crate::identity::Identified;
use crate::openapi::{BodyProblems, DiscoveryProblems};
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// Which servers to ask. No body at all means all of them.
#[derive(Default, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"server": "memory"}))]
pub(crate) struct Refresh {
    /// Only this server; absent: all.
    server: Option<String>,
}

/// Asks servers for their tools again.
///
/// For admins, and for servers that never announce a change. Without a body every enabled server is asked.
#[utoipa::path(
    post,
    path = "/api/mcp/tools/refresh",
    tag = "tools",
    request_body = Option<Refresh>,
    responses(
        (status = 204, description = "They were asked"),
        (status = 404, description = "`not_found`: no server has this name", body = ProblemBody<'static>),
        BodyProblems,
        DiscoveryProblems,
    ),
)]
pub(crate) async fn refresh_tools(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    OptionalJsonBody(which): OptionalJsonBody<Refresh>,
) -> Result<StatusCode, Problem> {
    let server = which.and_then(|which| which.server).map(ServerName::new);
    replica.runtime.refresh_tools(&caller, server.as_ref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
