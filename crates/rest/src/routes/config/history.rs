//! GET /api/mcp/config/history, and one revision of it

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use caribou_core::reset::MAX_HISTORY_PAGE;
use caribou_runtime::RevisionHead;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{ReadProblems, StoredServers, not_read, stored};
use crate::identity::Identified;
use crate::openapi::{FaultProblem, ParameterProblems};
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// The revisions of a page when nothing is said: what a person reads at once.
const PAGE: u32 = 50;

/// Which revisions. Any other parameter is refused.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only revisions before this one: `next` of the page before.
    before: Option<i64>,
    /// The most revisions, up to 1000; absent: 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// A page of the history, the last revision first.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"revisions": [
    {"revision": 2, "author": "local", "at_ms": 1_790_000_000_000_i64, "bytes": 512},
    {"revision": 1, "author": "import", "at_ms": 1_780_000_000_000_i64, "bytes": 498}
], "next": null}))]
struct History {
    /// The revisions.
    revisions: Vec<Revision>,
    /// What `before` is for the next page; null when there is none.
    #[schema(required = true)]
    next: Option<i64>,
}

/// A revision without its text.
#[derive(Serialize, ToSchema)]
struct Revision {
    /// Its number: counts up from 1.
    revision: i64,
    /// Who wrote it: the id of a principal, or `import` for the file that was the first one.
    author: String,
    /// When, in milliseconds of the Unix epoch.
    at_ms: i64,
    /// Its size.
    bytes: i64,
}

impl From<RevisionHead> for Revision {
    fn from(head: RevisionHead) -> Self {
        let RevisionHead { number, author, at_ms, bytes } = head;
        Self { revision: number, author: author.to_string(), at_ms, bytes }
    }
}

/// Lists the states that the stored configuration had.
///
/// Only where it is kept in the database.
#[utoipa::path(
    get,
    path = "/api/mcp/config/history",
    tag = "configuration",
    params(Which),
    responses(
        (status = 200, description = "The revisions", body = History),
        (status = 403, description = "`denied`: the caller is no admin", body = ProblemBody<'static>),
        (status = 404, description = "`not_found`: the configuration is a file", body = ProblemBody<'static>),
        (status = 503, description = "`unavailable`: the database cannot be asked now", body = ProblemBody<'static>),
        ParameterProblems,
        FaultProblem,
    ),
)]
pub(crate) async fn config_history(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(Which { before, limit }) = which
        .map_err(|_| Problem::invalid("the query may hold the numbers `before` and `limit`, each at most once"))?;
    let limit = limit.unwrap_or(PAGE);
    if !(1..=MAX_HISTORY_PAGE).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` must be from 1 to {MAX_HISTORY_PAGE}")));
    }
    let heads = replica.runtime.config_history(&caller, before, limit).await?;
    let is_full = u32::try_from(heads.len()).is_ok_and(|count| count == limit);
    let next = heads.last().filter(|last| is_full && last.number > 1).map(|last| last.number);
    let revisions = heads.into_iter().map(Revision::from).collect();
    Ok(Json(History { revisions, next }).into_response())
}

/// Shows the servers of one revision, secrets masked.
///
/// `ETag` names that revision. It is in force only while it is the last one.
#[utoipa::path(
    get,
    path = "/api/mcp/config/history/{revision}",
    tag = "configuration",
    params(("revision" = i64, Path, description = "Its number", example = 1)),
    responses(
        (status = 200, description = "The servers", body = StoredServers,
            headers(("ETag" = String, description = "Names the revision"))),
        (status = 404, description = "`not_found`: it is not kept", body = ProblemBody<'static>),
        ParameterProblems,
        ReadProblems,
    ),
)]
pub(crate) async fn config_revision(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    revision: Result<Path<i64>, PathRejection>,
) -> Result<Response, Problem> {
    let Path(revision) = revision.map_err(|_| Problem::invalid("the number of a revision is a whole number"))?;
    replica.runtime.config_revision(&caller, revision).await.map(stored).map_err(not_read)
}
