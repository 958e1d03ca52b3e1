//! GET /metrics

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::openapi::FaultProblem;
use crate::router::Replica;

/// The version of the Prometheus text format that the exporter writes.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics of this replica, in the Prometheus text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain",
            example = "# TYPE caribou_calls_total counter\ncaribou_calls_total{server=\"demo\",tool=\"echo\"} 3\n"),
        FaultProblem,
    ),
)]
pub(crate) async fn read_metrics(State(replica): State<Arc<Replica>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, TEXT_FORMAT)], (replica.options.metrics)())
}
