//! GET /api/mcp/tools

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_core::config::{Routing, RoutingMode};
use caribou_core::ids::{CatalogHash, ServerName};
use caribou_runtime::{ListedTool, ListedTools};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::identity::Identified;
use crate::openapi::{DiscoveryProblems, ParameterProblems};
use crate::problem::Problem;
use crate::router::Replica;
use crate::scope::{QueriedScope, ScopeParameters};

/// All tools, in the order of the configuration, then of each server.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "tools": [{
        "name": "memory_read_graph",
        "server": "memory",
        "raw_name": "read_graph",
        "tool": {"name": "read_graph", "description": "Read the graph", "inputSchema": {"type": "object"}},
        "metadata": {
            "deerflow_mcp": true,
            "deerflow_mcp_routing": {"mode": "prefer", "priority": 50, "keywords": ["people", "projects"]}
        }
    }],
    "deferred": ["memory_read_graph"],
    "catalog_hash": "5d41402abc4b2a76",
    "denied": ["memory_delete_entities"],
    "pending": ["time"],
    "failed": [{"server": "search", "reason": "exit code 1; last lines of its stderr: ..."}]
}))]
pub(crate) struct ToolList<'l> {
    /// The tools.
    tools: Vec<ToolEntry<'l>>,
    /// Names of tools whose schemas are to be hidden from the model of this thread until it fetches them with
    /// `POST /api/mcp/tools/search`, sorted. A call of one is refused before.
    deferred: Vec<&'l str>,
    /// Names the catalogue that `deferred` and promotions speak of; null: nothing is deferred, and there is no search.
    #[schema(value_type = Option<String>, required = true)]
    catalog_hash: Option<&'l CatalogHash>,
    /// Names of tools that guardrails keep from everybody; they are not among `tools`.
    denied: Vec<&'l str>,
    /// Servers not shown yet because they are still being discovered.
    #[schema(value_type = Vec<String>)]
    pending: &'l [ServerName],
    /// Servers whose discovery failed.
    failed: Vec<FailedServer<'l>>,
}

/// One tool.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolEntry<'l> {
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
    /// Whether this is a tool of an MCP server; false for Caribou's own.
    deerflow_mcp: bool,
    /// For what its operator wants it preferred; absent when its routing is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    deerflow_mcp_routing: Option<RoutingEntry<'l>>,
    /// What the user calls the server, which is the user's own; absent for servers of the deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    connection: Option<&'l str>,
    /// Members of `tool` that were malformed and mended; absent when there was none.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false)]
    repaired: &'l [String],
}

/// The routing of one tool: the server's with what the tool's override writes laid over it.
#[derive(Serialize, ToSchema)]
struct RoutingEntry<'l> {
    /// Always `prefer`.
    #[schema(value_type = String)]
    mode: &'static str,
    /// The higher the sooner, from 0 to 100.
    #[schema(maximum = 100)]
    priority: u8,
    /// What a request must be about.
    keywords: &'l [String],
}

impl<'l> RoutingEntry<'l> {
    fn of(routing: &'l Routing) -> Option<Self> {
        match routing.mode {
            RoutingMode::Off => None,
            RoutingMode::Prefer => {
                Some(Self { mode: "prefer", priority: routing.priority, keywords: &routing.keywords })
            }
        }
    }
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
            deferred: listed.deferred.iter().map(AsRef::as_ref).collect(),
            catalog_hash: listed.catalog.as_ref(),
            denied: listed.denied.iter().map(AsRef::as_ref).collect(),
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
            metadata: ToolMetadata {
                deerflow_mcp: !tool.is_ours,
                deerflow_mcp_routing: RoutingEntry::of(&tool.routing),
                connection: tool.connection.as_deref(),
                repaired: &tool.repaired,
            },
        }
    }
}

/// Lists the tools of all servers that the caller may use.
///
/// A server that is slow or broken is named beside the tools of the others. Which tools are deferred is told for the
/// user and thread named.
#[utoipa::path(
    get,
    path = "/api/mcp/tools",
    tag = "tools",
    params(ScopeParameters),
    responses(
        (status = 200, description = "The tools", body = ToolList<'static>),
        ParameterProblems,
        DiscoveryProblems,
    ),
)]
pub(crate) async fn list_tools(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    QueriedScope(scope): QueriedScope,
) -> Result<Response, Problem> {
    let listed = replica.runtime.list_tools(&caller, &scope).await?;
    Ok(Json(ToolList::from(&listed)).into_response())
}
