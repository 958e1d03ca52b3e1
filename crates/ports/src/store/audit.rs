//! Who called what, when, with which outcome: one row a call. Arguments, results, headers and secrets are never here.
//!
//! Texts hold no control characters: whoever makes a row sees to it, because PostgreSQL has no place for some of them.

use std::time::Duration;

use super::StoreError;
use crate::BoxFuture;

/// The audit log.
pub trait Audit: Send + Sync + 'static {
    /// Appends rows, all or none, in their order. Appending the same rows again puts them on record once more.
    fn append(&self, rows: Vec<AuditRow>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Rows that match, the newest first, at most `limit`.
    fn read(&self, filter: AuditFilter, limit: u32) -> BoxFuture<'_, Result<Vec<StoredAuditRow>, StoreError>>;

    /// Deletes rows stored longer than `age` ago by the store's clock, the oldest first, at most `limit` of them. How
    /// many.
    fn forget(&self, age: Duration, limit: u32) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// One call, or one change of configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// When it ended, in milliseconds of the Unix epoch by this replica's clock. For people only: nothing is decided
    /// by it.
    pub at_ms: i64,
    /// Who: the principal's id.
    pub principal: String,
    /// For which user.
    pub user: String,
    /// In which thread; empty where it is about none.
    pub thread: String,
    /// What was done: `call_tool`, `change_config`, `reset`, `launch_refused`, ...
    pub action: String,
    /// The server; empty where it is about none, or where a call was refused before its tool's server was known.
    pub server: String,
    /// The tool's visible name; empty where it is about none.
    pub tool: String,
    /// `ok`, the error's code, or `cancelled` when its caller went away.
    pub outcome: String,
    /// How long it took, in milliseconds.
    pub duration_ms: i64,
    /// Names the request.
    pub request_id: String,
    /// By which door: `rest`, `grpc`, `mcp`, `cli`, `library`.
    pub door: String,
}

/// Which rows; an absent member matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this principal.
    pub principal: Option<String>,
    /// For this user.
    pub user: Option<String>,
    /// With this server.
    pub server: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// With this outcome.
    pub outcome: Option<String>,
    /// Before this row, for the next page.
    pub before_id: Option<i64>,
    /// Only what this party did itself, or others for it.
    pub party: Option<Party>,
}

/// Whom a row concerns: whoever called, or the user it was for (invariant P1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// The principal's id.
    pub principal: String,
    /// The user.
    pub user: String,
}

/// A row on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAuditRow {
    /// Grows with each row.
    pub id: i64,
    /// The row.
    pub row: AuditRow,
}
