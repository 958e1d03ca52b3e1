//! GET /openapi.json

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::openapi::FaultProblem;
use crate::router::Replica;

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "operation",
    responses((status = 200, description = "The OpenAPI document", body = Object), FaultProblem),
)]
pub(crate) async fn read_document(State(replica): State<Arc<Replica>>) -> Response {
    Json(&replica.document).into_response()
}
