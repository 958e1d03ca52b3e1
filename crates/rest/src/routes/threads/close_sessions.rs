//! DELETE /api/threads/{thread_id}/mcp-sessions

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use caribou_core::ids::ServerName;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::identity::Identified;
use crate::openapi::{FaultProblem, ParameterProblems};
use crate::problem::Problem;
use crate::router::Replica;
use crate::scope::scope;

/// Which sessions of the thread. An unknown parameter is refused: a misspelt `server` would close all of them.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only the session with this server; absent: all.
    #[param(example = "memory")]
    server: Option<String>,
    /// The user whose thread it is; absent: the caller's own.
    #[param(example = "ann")]
    user_id: Option<String>,
}

/// How many sessions were closed.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"closed": 1}))]
pub(crate) struct Closed {
    /// 0 when there was none; that is no error.
    closed: usize,
}

/// Closes the sessions of a thread.
///
/// Only those of the user named; what their servers kept for the thread is lost, and calls in flight fail.
#[utoipa::path(
    delete,
    path = "/api/threads/{thread_id}/mcp-sessions",
    tag = "sessions",
    params(
        ("thread_id" = String, Path, description = "The thread", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "thread-1"),
        Which,
    ),
    responses(
        (status = 200, description = "They are closed", body = Closed),
        ParameterProblems,
        FaultProblem,
    ),
)]
pub(crate) async fn close_sessions(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    thread: Result<Path<String>, PathRejection>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Closed>, Problem> {
    let Path(thread) = thread.map_err(|_| Problem::invalid("`thread_id` is not valid UTF-8"))?;
    let Query(Which { server, user_id }) = which.map_err(|_| {
        Problem::invalid("the query may hold `server` and `user_id`, each at most once and percent-encoded")
    })?;
    let scope = scope(&caller, user_id.as_deref(), Some(&thread))?;
    let server = server.map(ServerName::new);
    let closed = replica.runtime.close_sessions(&caller, &scope, server.as_ref()).await?;
    Ok(Json(Closed { closed }))
}
