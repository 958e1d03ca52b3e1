//! What is still to be told, was given up, and was recorded; and what a dead replica held.

use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_core::notification::{Delivery, Sink};
use caribou_core::task::TaskId;
use caribou_ports::store::{DeadLetter, StoreError, StoredEvent};
use uuid::Uuid;

use super::rows::{delivery, delivery_columns, event};
use crate::sql::SqlStore;
use crate::sql::pools::{change, read};
use crate::sql::replicas::{duration, milliseconds, uuid};
use crate::sql::row::row;
use crate::sql::statement::{Statement, statement};
use crate::sql::tasks::strange;

const fn same(text: &'static str) -> Statement {
    Statement { postgres: text, sqlite: text }
}

const OF_TASK: Statement = same(concat!(
    "SELECT task_id, sink, ",
    delivery_columns!(""),
    " FROM mcp_delivery WHERE task_id = $1 ORDER BY sink"
));

/// `$3` rows after task `$1` and sink `$2`.
const DEAD: Statement = same(concat!(
    "SELECT task_id, sink, ",
    delivery_columns!(""),
    " FROM mcp_delivery WHERE (task_id, sink) > ($1, $2) AND phase = 4 ORDER BY task_id, sink LIMIT $3"
));

const EVENTS: Statement = statement!(
    "SELECT seq, status, body, " (US "at") " FROM mcp_event WHERE task_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
);

const NEXT: Statement = statement!(
    "SELECT " (MS_UNTIL "due_at") " FROM mcp_delivery WHERE sink = $1 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1"
);

/// Only of a replica that was declared dead, and only what it holds.
const TAKE_BACK: Statement = statement!(
    "UPDATE mcp_delivery SET due_at = " NOW "
     WHERE sink IN (1, 2, 3) AND due_at > " STABLE_NOW " AND due_at <= " (MS_AHEAD 2) " AND claim_owner = $1
       AND EXISTS (SELECT 1 FROM replica WHERE boot_id = $1 AND state = 3)"
);

row! {
    /// One delivery, with what it is of.
    NamedRow {
        task_id: Uuid,
        sink: i16,
        phase: i16,
        newest: i64,
        launched: Option<i64>,
        attempt: i32,
        failures: i32,
        unclear: i32,
        run_id: Option<String>,
        error: Option<String>,
    }
}

impl NamedRow {
    fn named(self) -> Result<DeadLetter, StoreError> {
        let sink = Sink::from_number(self.sink).ok_or_else(|| strange("sink"))?;
        let counts = (self.attempt, self.failures, self.unclear);
        let row = (self.phase, self.newest, self.launched, counts.0, counts.1, counts.2, self.run_id, self.error);
        Ok(DeadLetter { task: TaskId(self.task_id.into_bytes()), sink, delivery: delivery(row)? })
    }
}

/// The deliveries of a task.
pub(super) async fn of_task(store: &SqlStore, task: TaskId) -> Result<Vec<(Sink, Delivery)>, StoreError> {
    let task = Uuid::from_bytes(task.0);
    let rows: Vec<NamedRow> =
        read!(store, |connection, word| sqlx::query_as(word(OF_TASK)).bind(task).fetch_all(connection).await)?;
    rows.into_iter().map(|row| row.named().map(|named| (named.sink, named.delivery))).collect()
}

/// What was given up.
pub(super) async fn dead(
    store: &SqlStore,
    after: Option<(TaskId, Sink)>,
    limit: u32,
) -> Result<Vec<DeadLetter>, StoreError> {
    let (task, sink) = after.map_or((Uuid::nil(), 0), |(task, sink)| (Uuid::from_bytes(task.0), sink.number()));
    let rows: Vec<NamedRow> = read!(store, |connection, word| {
        sqlx::query_as(word(DEAD)).bind(task).bind(sink).bind(i64::from(limit)).fetch_all(connection).await
    })?;
    rows.into_iter().map(NamedRow::named).collect()
}

/// The events of a task.
pub(super) async fn events(
    store: &SqlStore,
    task: TaskId,
    after: i64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let task = Uuid::from_bytes(task.0);
    let rows: Vec<(i64, i16, String, i64)> = read!(store, |connection, word| {
        sqlx::query_as(word(EVENTS)).bind(task).bind(after).bind(i64::from(limit)).fetch_all(connection).await
    })?;
    rows.into_iter().map(event).collect()
}

/// How long until a delivery is due.
pub(super) async fn next(store: &SqlStore, sink: Sink) -> Result<Option<Duration>, StoreError> {
    let sink = sink.number();
    let ms: Option<i64> =
        read!(store, |connection, word| sqlx::query_scalar(word(NEXT)).bind(sink).fetch_optional(connection).await)?;
    Ok(ms.map(duration))
}

/// Makes due what a dead replica holds.
pub(super) async fn take_back(store: &SqlStore, dead: BootId, ahead: Duration) -> Result<u64, StoreError> {
    let dead = uuid(&dead)?;
    change!(store, |connection, word| {
        let take = sqlx::query(word(TAKE_BACK)).bind(dead).bind(milliseconds(ahead));
        take.execute(connection).await.map(|done| done.rows_affected())
    })
}
