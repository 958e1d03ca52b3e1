//! GET /api/mcp/config

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::answer::{ReadProblems, StoredServers, not_read, stored};
use crate::identity::Identified;
use crate::problem::Problem;
use crate::router::Replica;

/// Shows the stored servers, secrets masked.
///
/// What is shown may be edited and sent back: what is masked is kept. `ETag` names what is stored; there is none while
/// nothing is.
#[utoipa::path(
    get,
    path = "/api/mcp/config",
    tag = "configuration",
    responses(
        (status = 200, description = "The servers", body = StoredServers,
            headers(("ETag" = String, description = "Names what is stored; absent while nothing is"))),
        ReadProblems,
    ),
)]
pub(crate) async fn read_config(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
) -> Result<Response, Problem> {
    replica.runtime.read_config(&caller).await.map(stored).map_err(not_read)
}
