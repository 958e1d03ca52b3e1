//! Tasks for whoever looks at them (contract 2.3). Intents are never among them (invariant T1).
//!
//! Each way to look has an index that ends at its page. An absent condition compares a column with itself, and none of
//! them is ever null.

use caribou_core::ids::Scope;
use caribou_core::task::TaskId;
use caribou_ports::store::{PageKey, StoreError, StoredTask, TaskFilter};
use uuid::Uuid;

use super::cancel::belongs;
use super::rows::TaskRow;
use crate::sql::SqlStore;
use crate::sql::pools::read;
use crate::sql::statement::{Statement, statement};

/// The time of a page that begins with the newest: after every task, and within every database's time.
const AFTER_ALL_US: i64 = 253_370_764_800_000_000;

/// Of `t` (task), with what its work and its least told delivery know.
macro_rules! look {
    ([$($payload:tt)*] $($rest:tt)*) => {
        statement!(
            "SELECT t.task_id, t.user_id, t.thread_id, t.server, t.task_name, t.driver, t.ver, " (US "t.created_at") ",
                    " (US "t.updated_at") ", " (US "t.ended_at") ",
                    " (US "COALESCE(w.last_polled_at, t.last_polled_at)") ",
                    COALESCE(w.poll_errors, 0), t.last_poll_error, t.cancel_at IS NOT NULL,
                    CASE WHEN t.cancel_at IS NULL THEN 0 ELSE COALESCE(w.attempts, t.cancel_attempts) END,
                    t.last_cancel_error, t.waiting_answers, t.last_answer_error, d.phase, d.failures, d.error,
                    EXISTS (SELECT 1 FROM mcp_event AS e WHERE e.task_id = t.task_id AND e.told_at IS NOT NULL),
                    t.status, " $($payload)* "
             FROM mcp_task AS t
             LEFT JOIN mcp_work AS w ON w.task_id = t.task_id
             LEFT JOIN mcp_delivery AS d ON d.task_id = t.task_id
              AND d.sink = (SELECT min(sink) FROM mcp_delivery AS o WHERE o.task_id = t.task_id)
             WHERE t.status > 0 AND " $($rest)*
        )
    };
}

const ONE: Statement = look!(
    ["t.result, t.preview, t.is_truncated, t.artifact_uri, t.artifact_mime, t.error, t.input_required, t.rpc_error"]
    "t.task_id = $1"
);

/// `$1` time and `$2` task of the page before, `$3` rows, `$4` server, `$5` whether active, `$6` thread, `$7` user.
macro_rules! page {
    ($own:literal) => {
        look!(
            ["CAST(NULL AS text), CAST(NULL AS text), t.is_truncated, CAST(NULL AS text), CAST(NULL AS text), t.error,
              CAST(NULL AS text), CAST(NULL AS text)"]
            $own "(t.created_at, t.task_id) < (" (FROM_US 1) ", $2)
             AND t.server = COALESCE($4, t.server) AND (t.ended_at IS NULL) = COALESCE($5, t.ended_at IS NULL)
             AND t.thread_id = COALESCE($6, t.thread_id) AND t.user_id = COALESCE($7, t.user_id)
             ORDER BY t.created_at DESC, t.task_id DESC LIMIT $3"
        )
    };
}

const PAGE: Statement = page!("");

const PAGE_OF_USER: Statement = page!("t.user_id = $7 AND ");

const PAGE_OF_THREAD: Statement = page!("t.user_id = $7 AND t.thread_id = $6 AND ");

macro_rules! how_many {
    ($own:literal) => {
        statement!(
            "SELECT count(*) FROM mcp_task AS t
             WHERE " $own "t.status > 0 AND t.server = COALESCE($1, t.server)
               AND (t.ended_at IS NULL) = COALESCE($2, t.ended_at IS NULL)
               AND t.thread_id = COALESCE($3, t.thread_id) AND t.user_id = COALESCE($4, t.user_id)"
        )
    };
}

const COUNT: Statement = how_many!("");

const COUNT_OF_USER: Statement = how_many!("t.user_id = $4 AND ");

const COUNT_OF_THREAD: Statement = how_many!("t.user_id = $4 AND t.thread_id = $3 AND ");

/// One task.
pub(super) async fn one(store: &SqlStore, task: TaskId, of: Option<Scope>) -> Result<Option<StoredTask>, StoreError> {
    let id = Uuid::from_bytes(task.0);
    let row: Option<TaskRow> =
        read!(store, |connection, word| sqlx::query_as(word(ONE)).bind(id).fetch_optional(connection).await)?;
    row.filter(|row| belongs(of.as_ref(), &row.user_id, &row.thread_id)).map(TaskRow::stored).transpose()
}

/// A page of tasks.
pub(super) async fn page(
    store: &SqlStore,
    filter: TaskFilter,
    before: Option<PageKey>,
    limit: u32,
) -> Result<Vec<StoredTask>, StoreError> {
    let page = match (&filter.user, &filter.thread) {
        (Some(_), Some(_)) => PAGE_OF_THREAD,
        (Some(_), None) => PAGE_OF_USER,
        (None, _) => PAGE,
    };
    let (time, task) = before.map_or((AFTER_ALL_US, Uuid::max()), |key| (key.created_us, Uuid::from_bytes(key.task.0)));
    let rows: Vec<TaskRow> = read!(store, |connection, word| {
        let page = sqlx::query_as(word(page)).bind(time).bind(task).bind(i64::from(limit));
        let page = page.bind(filter.server.as_ref().map(|server| server.as_str())).bind(filter.is_active);
        let page = page.bind(filter.thread.as_ref().map(|thread| thread.as_str()));
        page.bind(filter.user.as_ref().map(|user| user.as_str())).fetch_all(connection).await
    })?;
    rows.into_iter().map(TaskRow::stored).collect()
}

/// How many tasks match.
pub(super) async fn count(store: &SqlStore, filter: TaskFilter) -> Result<u64, StoreError> {
    let count = match (&filter.user, &filter.thread) {
        (Some(_), Some(_)) => COUNT_OF_THREAD,
        (Some(_), None) => COUNT_OF_USER,
        (None, _) => COUNT,
    };
    let counted: i64 = read!(store, |connection, word| {
        let count = sqlx::query_scalar(word(count)).bind(filter.server.as_ref().map(|server| server.as_str()));
        let count = count.bind(filter.is_active).bind(filter.thread.as_ref().map(|thread| thread.as_str()));
        count.bind(filter.user.as_ref().map(|user| user.as_str())).fetch_one(connection).await
    })?;
    Ok(u64::try_from(counted).unwrap_or(0))
}
