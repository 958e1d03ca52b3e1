//! GET /api/mcp/sessions

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use caribou_core::era::Era;
use caribou_runtime::SessionStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::elapsed::milliseconds;
use crate::identity::Identified;
use crate::openapi::FaultProblem;
use crate::router::Replica;

/// All live sessions, of every replica.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"sessions": [{
    "server": "memory",
    "user_id": "ann",
    "thread_id": "thread-1",
    "epoch": 1,
    "replica": "01979a3c-6ad2-7b2f-9c58-3f6f0f4e7d11",
    "pid": 4242,
    "era": "legacy",
    "version": "2025-11-25",
    "in_flight": 0,
    "age_ms": 73042,
    "idle_ms": 1200
}]}))]
struct SessionList<'l> {
    /// The sessions.
    sessions: Vec<SessionEntry<'l>>,
}

/// One session.
#[derive(Serialize, ToSchema)]
struct SessionEntry<'l> {
    /// The server it is with.
    server: &'l str,
    /// The user whose state it holds.
    user_id: &'l str,
    /// The thread whose state it holds.
    thread_id: &'l str,
    /// Which life of this server's session for this thread, counted from 1.
    epoch: u64,
    /// The life of the replica that holds it.
    replica: &'l str,
    /// Its child's process id; null for remote servers and for sessions of other replicas.
    pid: Option<u32>,
    /// `legacy` or `modern`; null while it is being opened, and for sessions of other replicas.
    #[schema(value_type = Option<String>)]
    era: Option<Era>,
    /// The protocol revision spoken.
    version: Option<&'l str>,
    /// Calls in flight; null for sessions of other replicas.
    in_flight: Option<usize>,
    /// Since it was opened.
    age_ms: u64,
    /// Since it was last called; null for sessions of other replicas.
    idle_ms: Option<u64>,
}

impl<'l> From<&'l SessionStatus> for SessionEntry<'l> {
    fn from(session: &'l SessionStatus) -> Self {
        Self {
            server: session.server.as_str(),
            user_id: session.scope.user.as_str(),
            thread_id: session.scope.thread.as_str(),
            epoch: session.epoch.0,
            replica: session.replica.as_str(),
            pid: session.pid,
            era: session.era.as_ref().map(|(era, _)| *era),
            version: session.era.as_ref().map(|(_, version)| version.as_str()),
            in_flight: session.in_flight,
            age_ms: milliseconds(session.age),
            idle_ms: session.idle.map(milliseconds),
        }
    }
}

/// Lists the live sessions.
///
/// To a caller that is no admin only those of its own user.
#[utoipa::path(
    get,
    path = "/api/mcp/sessions",
    tag = "sessions",
    responses((status = 200, description = "The sessions", body = SessionList<'static>), FaultProblem),
)]
pub(crate) async fn list_sessions(State(replica): State<Arc<Replica>>, Identified(caller): Identified) -> Response {
    let sessions = replica.runtime.sessions(&caller).await;
    Json(SessionList { sessions: sessions.iter().map(SessionEntry::from).collect() }).into_response()
}
