//! POST /api/mcp/cache/reset

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use caribou_core::ids::BootId;
use caribou_runtime::{Reach, ResetDone};
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::Identified;
use crate::openapi::ResetProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// What clients of old show to people.
const MESSAGE: &str = "MCP tools cache reset. Tools will reload on next use.";

/// How far a reset went.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "success": true,
    "message": "MCP tools cache reset. Tools will reload on next use.",
    "scope": "shared_config",
    "reach": "directory",
    "confirmed": ["0198f3c2-6a1b-7c3e-9d2f-5b8e7a1c4d60"],
    "unconfirmed": []
}))]
pub(crate) struct Reset {
    /// Always true.
    success: bool,
    /// For people.
    message: &'static str,
    /// `shared_config`: whoever follows the same configuration file resets before its next look-up too; `process`:
    /// only this replica did.
    scope: &'static str,
    /// `process`, `directory` (of the configuration file) or `cluster`.
    reach: &'static str,
    /// Replicas that have done it.
    #[schema(value_type = Vec<String>)]
    confirmed: Vec<BootId>,
    /// Replicas that were told and have not said so yet. Who follows the file is not known by name.
    #[schema(value_type = Vec<String>)]
    unconfirmed: Vec<BootId>,
}

impl From<ResetDone> for Reset {
    fn from(done: ResetDone) -> Self {
        Self {
            success: true,
            message: MESSAGE,
            scope: if done.reach == Reach::Process { "process" } else { "shared_config" },
            reach: done.reach.as_str(),
            confirmed: done.confirmed,
            unconfirmed: done.unconfirmed,
        }
    }
}

/// Closes every session and forgets every list of tools.
///
/// The next look-up starts and asks all servers anew, with what `$NAME` in the configuration means then. Needs no
/// body.
#[utoipa::path(
    post,
    path = "/api/mcp/cache/reset",
    tag = "configuration",
    responses((status = 200, description = "It is done", body = Reset), ResetProblems),
)]
pub(crate) async fn reset_cache(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
) -> Result<Json<Reset>, Problem> {
    Ok(Json(replica.runtime.reset(&caller).await?.into()))
}
