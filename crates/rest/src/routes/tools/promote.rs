//! POST /api/mcp/tools/promote

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_core::ids::CatalogHash;
use caribou_runtime::PromotedTools;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::{BodyProblems, DiscoveryProblems};
use crate::problem::Problem;
use crate::router::Replica;
use crate::scope::scope;

/// What the user said last. Unknown members are ignored.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"text": "Which people work on it?", "user_id": "ann", "thread_id": "thread-1"}))]
pub(crate) struct Spoken {
    /// The user's latest message as the user wrote it: neither a summary nor a message hidden from the user, unless
    /// that is the answer to a question of the agent. The first 256 KiB are looked at.
    text: String,
    /// For whom; absent or empty: for the caller itself. At most 256 bytes, no control characters.
    #[schema(max_length = 256)]
    user_id: Option<String>,
    /// In which thread; absent or empty: `default`.
    #[schema(pattern = "^[A-Za-z0-9_-]{0,64}$")]
    thread_id: Option<String>,
}

/// What the text promoted.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"promoted": ["memory_read_graph"], "catalog_hash": "5d41402abc4b2a76"}))]
pub(crate) struct Promoted<'p> {
    /// Names of the deferred tools the text speaks of, best first: their schemas may be shown to the model now.
    promoted: Vec<&'p str>,
    /// The catalogue they were promoted in; null: nothing is deferred.
    #[schema(value_type = Option<String>, required = true)]
    catalog_hash: Option<&'p CatalogHash>,
}

impl<'p> From<&'p PromotedTools> for Promoted<'p> {
    fn from(promoted: &'p PromotedTools) -> Self {
        Self { promoted: promoted.names.iter().map(AsRef::as_ref).collect(), catalog_hash: promoted.catalog.as_ref() }
    }
}

/// Promotes the deferred tools that a user's text speaks of.
///
/// By the keywords of their routing. To be asked before each call of a model, before its tools are listed; asking
/// again changes nothing.
#[utoipa::path(
    post,
    path = "/api/mcp/tools/promote",
    tag = "tools",
    request_body = Spoken,
    responses((status = 200, description = "They are promoted", body = Promoted<'static>), BodyProblems, DiscoveryProblems),
)]
pub(crate) async fn promote_tools(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    JsonBody(spoken): JsonBody<Spoken>,
) -> Result<Response, Problem> {
    let scope = scope(&caller, spoken.user_id.as_deref(), spoken.thread_id.as_deref())?;
    let promoted = replica.runtime.promote_tools(&caller, &scope, &spoken.text).await?;
    Ok(Json(Promoted::from(&promoted)).into_response())
}
