//! GET /api/features

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::FaultProblem;
use crate::router::Replica;

/// What this replica does, as it really started; not what its files say by now (contract 2.4).
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"mcp_tasks": {"enabled": true}}))]
pub(crate) struct Features {
    mcp_tasks: Feature,
}

/// One feature.
#[derive(Serialize, ToSchema)]
struct Feature {
    /// Whether it is there.
    enabled: bool,
}

/// Says which features are there.
#[utoipa::path(
    get,
    path = "/api/features",
    tag = "features",
    responses((status = 200, description = "The features", body = Features), FaultProblem),
)]
pub(crate) async fn read_features(State(replica): State<Arc<Replica>>) -> Json<Features> {
    Json(Features { mcp_tasks: Feature { enabled: replica.runtime.follows_tasks() } })
}
