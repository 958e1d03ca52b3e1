//! GET /api/mcp/servers

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_core::era::Era;
use caribou_runtime::ServerStatus;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::elapsed::milliseconds;
use crate::identity::Identified;
use crate::openapi::FaultProblem;
use crate::router::Replica;

/// All servers, in the order of the configuration.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"servers": [{
    "name": "memory",
    "transport": "stdio",
    "state": "ready",
    "state_age_ms": 73042,
    "absent": null,
    "era": "legacy",
    "version": "2025-11-25",
    "server_info": {"name": "memory-server", "version": "0.6.3"},
    "tools": 9,
    "denied": 0,
    "sessions": 2,
    "last_error": null,
    "warnings": [],
    "next_try_ms": null,
    "stderr_tail": "Knowledge Graph MCP Server running on stdio\n"
}]}))]
struct ServerList<'l> {
    /// The servers.
    servers: Vec<ServerEntry<'l>>,
}

/// One server.
#[derive(Serialize, ToSchema)]
struct ServerEntry<'l> {
    /// Its key in the configuration.
    name: &'l str,
    /// `stdio`, `http` or `sse`; null when its configuration is too wrong to tell.
    transport: Option<&'static str>,
    /// `ready`, `unknown` (nobody asked for it yet), `starting`, `failed`, `disabled` or `dropped` (its configuration
    /// is wrong).
    state: &'static str,
    /// For how long it has been in this state.
    state_age_ms: u64,
    /// Why none of its tools can be called until somebody does something about it: `disabled`, `dropped`, `failed`, or
    /// `policy` when guardrails deny all of them; null when they can be, or may be soon.
    absent: Option<&'static str>,
    /// `legacy` or `modern`; null when it never answered.
    #[schema(value_type = Option<String>)]
    era: Option<Era>,
    /// The protocol revision last spoken.
    version: Option<&'l str>,
    /// The server's `Implementation` object, byte for byte.
    #[schema(value_type = Option<Object>)]
    server_info: Option<&'l RawValue>,
    /// How many tools it shows.
    tools: usize,
    /// How many of them guardrails keep from everybody.
    denied: usize,
    /// Live sessions with it.
    sessions: usize,
    /// Why it failed or was dropped.
    last_error: Option<&'l str>,
    /// What is odd about its tools.
    warnings: &'l [String],
    /// When a failed server may be started again.
    next_try_ms: Option<u64>,
    /// The last lines its latest child wrote to stderr, secrets masked.
    stderr_tail: &'l str,
}

impl<'l> From<&'l ServerStatus> for ServerEntry<'l> {
    fn from(server: &'l ServerStatus) -> Self {
        Self {
            name: server.name.as_str(),
            transport: server.transport,
            state: server.state.as_str(),
            state_age_ms: milliseconds(server.since),
            absent: server.absent(),
            era: server.era.as_ref().map(|(era, _)| *era),
            version: server.era.as_ref().map(|(_, version)| version.as_str()),
            server_info: server.server_info.as_deref(),
            tools: server.tools,
            denied: server.denied,
            sessions: server.sessions,
            last_error: server.last_error.as_deref(),
            warnings: &server.warnings,
            next_try_ms: server.next_try.map(milliseconds),
            stderr_tail: &server.stderr_tail,
        }
    }
}

/// Lists the configured servers and how each is.
///
/// Only an admin reads `last_error`, `warnings` and `stderr_tail`.
#[utoipa::path(
    get,
    path = "/api/mcp/servers",
    tag = "servers",
    responses((status = 200, description = "The servers", body = ServerList<'static>), FaultProblem),
)]
pub(crate) async fn list_servers(State(replica): State<Arc<Replica>>, Identified(caller): Identified) -> Response {
    let servers = replica.runtime.servers(&caller).await;
    Json(ServerList { servers: servers.iter().map(ServerEntry::from).collect() }).into_response()
}
