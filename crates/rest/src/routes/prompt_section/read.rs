//! GET /api/mcp/prompt-section

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::Identified;
use crate::openapi::DiscoveryProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// A part of a system prompt.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "text": "<mcp_routing_hints>\nWhen the user's request involves people:\n  prefer `memory_read_graph`.\n</mcp_routing_hints>"
}))]
pub(crate) struct PromptSection {
    /// The names of deferred tools, then the routing hints; empty when there is neither.
    text: String,
}

/// Writes what a system prompt says of the tools.
///
/// The same for every thread of a caller, so that it can stand in a cached part of the prompt.
#[utoipa::path(
    get,
    path = "/api/mcp/prompt-section",
    tag = "tools",
    responses((status = 200, description = "The section", body = PromptSection), DiscoveryProblems),
)]
pub(crate) async fn read_prompt_section(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
) -> Result<Json<PromptSection>, Problem> {
    Ok(Json(PromptSection { text: replica.runtime.prompt_section(&caller).await? }))
}
