//! GET /api/mcp/audit

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use caribou_core::bounds::MAX_AUDIT_PAGE;
use caribou_runtime::{AuditFilter, AuditRow, StoredAuditRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::identity::Identified;
use crate::openapi::{FaultProblem, ParameterProblems};
use crate::problem::{Problem, ProblemBody};
use crate::router::Replica;

/// The rows of a page when nothing is said: what a person reads at once.
const PAGE: u32 = 100;

/// Which rows. Any other parameter is refused: a misspelt one would show everything.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only of this principal: the id of a key, the subject of a token, `local`.
    #[param(example = "local")]
    principal: Option<String>,
    /// Only for this user.
    #[param(example = "ann")]
    user_id: Option<String>,
    /// Only with this server.
    #[param(example = "memory")]
    server: Option<String>,
    /// Only of the tool of this name, as `GET /api/mcp/tools` shows it.
    #[param(example = "memory_search_nodes")]
    tool: Option<String>,
    /// Only with this outcome: `ok`, the `code` of a failure, or `cancelled`.
    #[param(example = "denied")]
    outcome: Option<String>,
    /// Only rows before this one: `next` of the page before.
    before: Option<i64>,
    /// The most rows, up to 1000; absent: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// A page of the audit log, the newest row first.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"rows": [{
    "id": 4711,
    "at_ms": 1_790_000_000_000_i64,
    "principal": "local",
    "user_id": "ann",
    "thread_id": "thread-1",
    "action": "call_tool",
    "server": "memory",
    "tool": "memory_search_nodes",
    "outcome": "ok",
    "duration_ms": 12,
    "request_id": "0198f3c2-7b2c-7d4f-8e30-6c9f8b2d5e71",
    "door": "rest"
}], "next": null}))]
struct AuditPage<'p> {
    /// The rows.
    rows: Vec<AuditEntry<'p>>,
    /// What `before` is for the next page; null when there is none.
    #[schema(required = true)]
    next: Option<i64>,
}

/// Something that was done, or refused.
#[derive(Serialize, ToSchema)]
struct AuditEntry<'p> {
    /// Grows with each row.
    id: i64,
    /// When it ended, in milliseconds of the Unix epoch.
    at_ms: i64,
    /// Who asked for it.
    principal: &'p str,
    /// For which user.
    user_id: &'p str,
    /// In which thread; empty when it is about none.
    thread_id: &'p str,
    /// What: `call_tool`, `change_config`, `launch_refused`, `reset`, `close_sessions`, `search_tools`,
    /// `promote_tools`, ...
    action: &'p str,
    /// With which server; empty when it is about none, or about several.
    server: &'p str,
    /// The name of the tool; empty when it is about none.
    tool: &'p str,
    /// `ok`, the `code` of the failure, or `cancelled` when the caller went away.
    outcome: &'p str,
    /// How long it took.
    duration_ms: i64,
    /// Names the request.
    request_id: &'p str,
    /// How it came: `rest`, `grpc`, `mcp`, `cli` or `library`.
    door: &'p str,
}

impl<'p> From<&'p StoredAuditRow> for AuditEntry<'p> {
    fn from(StoredAuditRow { id, row }: &'p StoredAuditRow) -> Self {
        let AuditRow { at_ms, principal, user, thread, action, server, tool, outcome, duration_ms, request_id, door } =
            row;
        Self {
            id: *id,
            at_ms: *at_ms,
            principal,
            user_id: user,
            thread_id: thread,
            action,
            server,
            tool,
            outcome,
            duration_ms: *duration_ms,
            request_id,
            door,
        }
    }
}

/// Reads who did what.
///
/// Admins see all; others what they did themselves and what was done for them. A row is there a moment after what it
/// tells of.
#[utoipa::path(
    get,
    path = "/api/mcp/audit",
    tag = "audit",
    params(Which),
    responses(
        (status = 200, description = "The rows", body = AuditPage<'static>),
        (status = 404, description = "`not_found`: this replica keeps no audit log", body = ProblemBody<'static>),
        (status = 503, description = "`unavailable`: the store cannot be asked now", body = ProblemBody<'static>),
        ParameterProblems,
        FaultProblem,
    ),
)]
pub(crate) async fn read_audit(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(which) = which.map_err(|_| {
        Problem::invalid(
            "the query may hold `principal`, `user_id`, `server`, `tool`, `outcome`, and the numbers `before` and \
             `limit`, each at most once and percent-encoded",
        )
    })?;
    let limit = which.limit.unwrap_or(PAGE);
    if !(1..=MAX_AUDIT_PAGE).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` must be from 1 to {MAX_AUDIT_PAGE}")));
    }
    let filter = AuditFilter {
        principal: which.principal,
        user: which.user_id,
        server: which.server,
        tool: which.tool,
        outcome: which.outcome,
        before_id: which.before,
        party: None,
    };
    let rows = replica.runtime.read_audit(&caller, filter, limit).await?;
    let is_full = u32::try_from(rows.len()).is_ok_and(|count| count == limit);
    let next = rows.last().filter(|_| is_full).map(|last| last.id);
    Ok(Json(AuditPage { rows: rows.iter().map(AuditEntry::from).collect(), next }).into_response())
}
