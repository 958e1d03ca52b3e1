//! Requests to cancel (contract 6.10; invariant C2).

use caribou_core::ids::Scope;
use caribou_core::task::cancel::{Asked, asked};
use caribou_core::task::{Duty, Shard, Status, TaskId};
use caribou_ports::store::{CancelRequested, StoreError};
use sqlx::Connection as _;
use uuid::Uuid;

use super::rows::strange;
use crate::sql::SqlStore;
use crate::sql::pools::change;
use crate::sql::statement::{Statement, statement};

/// Whoever settles the task waits here, or was faster.
pub(super) const HOLD_WORK: Statement = statement!(
    "SELECT lane, claim_owner IS NOT NULL AND due_at > " NOW " FROM mcp_work WHERE task_id = $1" LOCKED
);

const FIND: Statement =
    statement!("SELECT user_id, thread_id, status, cancel_at IS NOT NULL FROM mcp_task WHERE task_id = $1");

/// The grown number fences the claim of whoever polls (invariant C2). What is in quarantine stays alone.
const CANCEL_NOW: Statement = statement!(
    "UPDATE mcp_work SET lane = CASE WHEN lane / 256 = 3 THEN lane ELSE $2 END, due_at = " NOW ",
                         claim_seq = claim_seq + 1, claim_owner = NULL, attempts = 0
     WHERE task_id = $1"
);

const REMEMBER: Statement =
    statement!("UPDATE mcp_task SET cancel_at = " NOW ", updated_at = " NOW " WHERE task_id = $1");

/// Whether a task belongs to whoever asks; `None` may see all.
pub(super) fn belongs(of: Option<&Scope>, user: &str, thread: &str) -> bool {
    of.is_none_or(|of| of.user.as_str() == user && of.thread.as_str() == thread)
}

/// Stores a request to cancel.
pub(super) async fn request(store: &SqlStore, task: TaskId, of: Option<Scope>) -> Result<CancelRequested, StoreError> {
    let id = Uuid::from_bytes(task.0);
    let lane = Duty::Cancel.lane(Shard::of(task)).number();
    let requested: Option<CancelRequested> = change!(store, |connection, word| {
        let mut requesting = connection.begin().await?;
        let _held: Option<(i16, bool)> =
            sqlx::query_as(word(HOLD_WORK)).bind(id).fetch_optional(&mut *requesting).await?;
        let found: Option<(String, String, i16, bool)> =
            sqlx::query_as(word(FIND)).bind(id).fetch_optional(&mut *requesting).await?;
        let found = found.filter(|(user, thread, ..)| belongs(of.as_ref(), user, thread));
        let Some((_, _, status, was_asked)) = found else { return Ok(Some(CancelRequested::NotFound)) };
        let Some(status) = Status::from_number(status) else { return Ok(None) };
        Ok(Some(match asked(status, was_asked) {
            Asked::NotThere => CancelRequested::NotFound,
            Asked::TooLate => CancelRequested::Ended,
            Asked::Already => CancelRequested::Already,
            Asked::Now => {
                sqlx::query(word(CANCEL_NOW)).bind(id).bind(lane).execute(&mut *requesting).await?;
                sqlx::query(word(REMEMBER)).bind(id).execute(&mut *requesting).await?;
                requesting.commit().await?;
                CancelRequested::Requested
            }
        }))
    })?;
    requested.ok_or_else(|| strange("status"))
}
