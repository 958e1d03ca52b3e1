//! GET /healthz

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::FaultProblem;

/// How the replica is.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"status": "ok"}))]
pub(crate) struct Health {
    /// Always `ok`; a replica that is not well answers otherwise or not at all.
    status: &'static str,
}

impl Health {
    pub(crate) const OK: Self = Self { status: "ok" };
}

/// Whether the process answers.
///
/// Says nothing about MCP servers.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operation",
    responses((status = 200, description = "It answers", body = Health), FaultProblem),
)]
pub(crate) async fn live() -> Json<Health> {
    Json(Health::OK)
}
