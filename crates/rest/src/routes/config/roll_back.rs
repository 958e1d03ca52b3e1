//! POST /api/mcp/config/rollback

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{ChangeProblems, NOT_UPDATED, StoredServers, answered};
use super::condition::Condition;
use crate::body::JsonBody;
use crate::identity::Identified;
use crate::openapi::BodyProblems;
use crate::problem::ProblemBody;
use crate::router::Replica;

/// Which revision comes again.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(example = json!({"revision": 1}))]
pub(crate) struct Earlier {
    /// Its number, as the history shows it.
    revision: i64,
}

/// Stores an earlier revision again, byte for byte, as the next one.
///
/// Only where the configuration is kept in the database. The revisions in between stay in the history.
#[utoipa::path(
    post,
    path = "/api/mcp/config/rollback",
    tag = "configuration",
    params(Condition),
    request_body = Earlier,
    responses(
        (status = 200, description = "The servers as they are stored now", body = StoredServers,
            headers(("ETag" = String, description = "Names what is stored"))),
        (status = 404, description = "`not_found`: it is not kept", body = ProblemBody<'static>),
        BodyProblems,
        ChangeProblems,
    ),
)]
pub(crate) async fn roll_back(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    Condition(condition): Condition,
    JsonBody(Earlier { revision }): JsonBody<Earlier>,
) -> Response {
    let rolled = replica.runtime.roll_back_config(&caller, revision, condition).await;
    answered(&replica.runtime, &caller, rolled, NOT_UPDATED).await
}
