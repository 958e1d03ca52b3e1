//! GET /healthz

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_core::config;
use caribou_runtime::StaleConfig;
use serde::Serialize;
use utoipa::ToSchema;

use crate::elapsed::milliseconds;
use crate::openapi::FaultProblem;
use crate::router::Replica;

/// Problems shown here; the log and `caribou check` have all.
const MAX_PROBLEMS: usize = 10;

/// How the replica is.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"status": "ok"}))]
pub(crate) struct Health<'h> {
    /// Always `ok`; a replica that is not well answers otherwise or not at all.
    status: &'static str,
    /// Why the stored configuration is not in force; absent while it is. The last good one serves on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stale_config: Option<Stale<'h>>,
}

impl Health<'static> {
    pub(crate) const OK: Self = Self { status: "ok", stale_config: None };
}

/// A stored configuration that cannot be used.
#[derive(Serialize, ToSchema)]
struct Stale<'h> {
    /// Why, for people.
    reason: &'h str,
    /// For how long.
    age_ms: u64,
    /// What is wrong, at most ten of it; empty when the file cannot be read.
    problems: Vec<Fault<'h>>,
}

/// One thing that is wrong with the file.
#[derive(Serialize, ToSchema)]
struct Fault<'h> {
    /// The file.
    file: &'h str,
    /// The line, from 1.
    line: usize,
    /// The column, from 1.
    column: usize,
    /// What is wrong.
    what: &'h str,
}

impl<'h> From<&'h config::Problem> for Fault<'h> {
    fn from(problem: &'h config::Problem) -> Self {
        Self { file: &problem.file, line: problem.line, column: problem.column, what: &problem.what }
    }
}

impl<'h> From<&'h StaleConfig> for Stale<'h> {
    fn from(stale: &'h StaleConfig) -> Self {
        let problems = stale.problems.iter().take(MAX_PROBLEMS).map(Fault::from).collect();
        Self { reason: &stale.reason, age_ms: milliseconds(stale.age()), problems }
    }
}

/// Whether the process answers, and whether the stored configuration is in force.
///
/// Says nothing about MCP servers. A stale configuration is no reason to restart a replica: it serves on with the last
/// good one, which a new process would not have.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operation",
    responses((status = 200, description = "It answers", body = Health<'static>), FaultProblem),
)]
pub(crate) async fn live(State(replica): State<Arc<Replica>>) -> Response {
    let stale = replica.runtime.stale_config();
    Json(Health { stale_config: stale.as_ref().map(Stale::from), ..Health::OK }).into_response()
}
