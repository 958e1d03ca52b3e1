//! POST /api/mcp/tools/search

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_core::ids::CatalogHash;
use caribou_runtime::FoundTools;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::ToolEntry;
use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::{BodyProblems, DiscoveryProblems};
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;
use crate::scope::scope;

/// What a model reads when nothing was found (contract 9.4).
const NOTHING_FOUND: &str = "No tools found matching this query";

/// One call of `tool_search`. Unknown members are ignored.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"query": "select:memory_read_graph", "user_id": "ann", "thread_id": "thread-1"}))]
pub(crate) struct Search {
    /// `select:a,b`: exactly those tools. `+word rest`: up to five with `word` in their name, the more often `rest`
    /// matches the better. Anything else: up to five whose name or description matches this regular expression
    /// without regard to case, or holds it as text when it is none. At most 4096 bytes.
    #[schema(max_length = 4096)]
    query: String,
    /// For whom; absent or empty: for the caller itself. At most 256 bytes, no control characters.
    #[schema(max_length = 256)]
    user_id: Option<String>,
    /// In which thread what is found counts as fetched; absent or empty: `default`.
    #[schema(pattern = "^[A-Za-z0-9_-]{0,64}$")]
    thread_id: Option<String>,
}

/// What was found. The thread may call these tools from now on.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "tools": [{
        "name": "memory_read_graph",
        "server": "memory",
        "raw_name": "read_graph",
        "tool": {"name": "read_graph", "description": "Read the graph", "inputSchema": {"type": "object"}},
        "metadata": {"deerflow_mcp": true}
    }],
    "promoted": ["memory_read_graph"],
    "catalog_hash": "5d41402abc4b2a76"
}))]
pub(crate) struct Found<'f> {
    /// The tools with their whole schemas, best first.
    tools: Vec<ToolEntry<'f>>,
    /// Their names: what this search promoted.
    promoted: Vec<&'f str>,
    /// The catalogue they were promoted in.
    #[schema(value_type = String)]
    catalog_hash: &'f CatalogHash,
    /// What to tell the model when nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
}

impl<'f> From<&'f FoundTools> for Found<'f> {
    fn from(found: &'f FoundTools) -> Self {
        Self {
            tools: found.tools.iter().map(ToolEntry::from).collect(),
            promoted: found.tools.iter().map(|tool| &*tool.name).collect(),
            catalog_hash: &found.catalog,
            message: found.tools.is_empty().then_some(NOTHING_FOUND),
        }
    }
}

/// Searches deferred tools and promotes what is found.
///
/// What a model's call of `tool_search` leads to. It exists only while tools are deferred.
#[utoipa::path(
    post,
    path = "/api/mcp/tools/search",
    tag = "tools",
    request_body = Search,
    responses(
        (status = 200, description = "The search was made", body = Found<'static>),
        (status = 404, description = "`not_found`: no tool is deferred", body = ProblemBody<'static>),
        BodyProblems,
        DiscoveryProblems,
    ),
)]
pub(crate) async fn search_tools(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    JsonBody(search): JsonBody<Search>,
) -> Result<Response, Problem> {
    let scope = scope(&caller, search.user_id.as_deref(), search.thread_id.as_deref())?;
    let found = replica.runtime.search_tools(&caller, &scope, &search.query).await?;
    Ok(Json(Found::from(&found)).into_response())
}
