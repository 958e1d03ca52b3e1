//! GET /api/mcp/tools

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_core::ids::ServerName;
use caribou_runtime::{ListedTool, ListedTools};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::openapi::DiscoveryProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// All tools, in the order of the configuration, then of each server.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "tools": [{
        "name": "memory_read_graph",
        "server": "memory",
        "raw_name": "read_graph",
        "tool": {"name": "read_graph", "description": "Read the graph", "inputSchema": {"type": "object"}},
        "metadata": {}
    }],
    "pending": ["time"],
    "failed": [{"server": "search", "reason": "exit code 1; last lines of its stderr: ..."}]
}))]
pub(crate) struct ToolList<'l> {
    /// The tools.
    tools: Vec<ToolEntry<'l>>,
    /// Servers not shown yet because they are still being discovered.
    #[schema(value_type = Vec<String>)]
    pending: &'l [ServerName],
    /// Servers whose discovery failed.
    failed: Vec<FailedServer<'l>>,
}

/// One tool.
#[derive(Serialize, ToSchema)]
struct ToolEntry<'l> {
    /// The name to call it by.
    name: &'l str,
    /// The server that returned it.
    server: &'l str,
    /// The server's own name for it.
    raw_name: &'l str,
    /// The server's `Tool` object, byte for byte unless `metadata.repaired` names a member.
    #[schema(value_type = Object)]
    tool: &'l RawValue,
    /// What Caribou knows besides.
    metadata: ToolMetadata<'l>,
}

/// What Caribou knows about a tool besides what its server says.
#[derive(Serialize, ToSchema)]
struct ToolMetadata<'l> {
    /// Members of `tool` that were malformed and mended; absent when there was none.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false)]
    repaired: &'l [String],
}

/// A server without tools, and why.
#[derive(Serialize, ToSchema)]
struct FailedServer<'l> {
    /// Its name.
    server: &'l str,
    /// What went wrong, for people.
    reason: &'l str,
}

impl<'l> From<&'l ListedTools> for ToolList<'l> {
    fn from(listed: &'l ListedTools) -> Self {
        let failed = listed.failed.iter().map(|(server, reason)| FailedServer { server: server.as_str(), reason });
        Self {
            tools: listed.tools.iter().map(ToolEntry::from).collect(),
            pending: &listed.pending,
            failed: failed.collect(),
        }
    }
}

impl<'l> From<&'l ListedTool> for ToolEntry<'l> {
    fn from(tool: &'l ListedTool) -> Self {
        Self {
            name: &tool.name,
            server: tool.server.as_str(),
            raw_name: &tool.raw_name,
            tool: &tool.tool,
            metadata: ToolMetadata { repaired: &tool.repaired },
        }
    }
}

/// Lists the tools of all servers.
///
/// A server that is slow or broken is named beside the tools of the others.
#[utoipa::path(
    get,
    path = "/api/mcp/tools",
    tag = "tools",
    responses((status = 200, description = "The tools", body = ToolList<'static>), DiscoveryProblems),
)]
pub(crate) async fn list_tools(State(replica): State<Arc<Replica>>) -> Result<Response, Problem> {
    let listed = replica.runtime.list_tools().await?;
    Ok(Json(ToolList::from(&listed)).into_response())
}
