//! What becomes of a delivery is written under its claim (invariants C1, N1).

use caribou_core::notification::{After, Delivery, Happened, Sink};
use caribou_core::task::{TaskId, TaskLimits};
use caribou_ports::store::{DeliveryClaim, Redelivered, Reserved, Settled, StoreError};
use sqlx::Connection as _;
use uuid::Uuid;

use super::rows::{DeliveryRow, delivery, delivery_columns};
use crate::sql::SqlStore;
use crate::sql::pools::change;
use crate::sql::replicas::{milliseconds, uuid};
use crate::sql::statement::{Statement, statement};

/// Whoever settles it waits here, or was faster.
pub(in crate::sql) const HOLD: Statement = Statement {
    postgres: concat!(
        "SELECT ",
        delivery_columns!(""),
        " FROM mcp_delivery WHERE task_id = $1 AND sink = $2 FOR UPDATE"
    ),
    sqlite: concat!("SELECT ", delivery_columns!(""), " FROM mcp_delivery WHERE task_id = $1 AND sink = $2"),
};

/// The last conditions are the fence of the claim (invariant C1).
const HOLD_CLAIMED: Statement = Statement {
    postgres: concat!(
        "SELECT ",
        delivery_columns!(""),
        " FROM mcp_delivery
         WHERE task_id = $1 AND sink = $2 AND claim_seq = $3 AND claim_owner = $4 AND due_at > clock_timestamp()
         FOR UPDATE"
    ),
    sqlite: concat!(
        "SELECT ",
        delivery_columns!(""),
        " FROM mcp_delivery
         WHERE task_id = $1 AND sink = $2 AND claim_seq = $3 AND claim_owner = $4
           AND due_at > CAST((julianday('now') - 2440587.5) * 86400000 AS integer)"
    ),
};

/// A new event for a sink. A delivery that is under way keeps its time and its claim; any other is due at once, and
/// whoever has claimed it finds its claim expired before it has sent anything.
pub(in crate::sql) const RENEW: Statement = statement!(
    "INSERT INTO mcp_delivery (task_id, sink, due_at, phase, newest, launched, attempt, failures, unclear, run_id, error)
     VALUES ($1, $2, " NOW ", $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (task_id, sink) DO UPDATE
     SET phase = excluded.phase, newest = excluded.newest, launched = excluded.launched, attempt = excluded.attempt,
         failures = excluded.failures, unclear = excluded.unclear, run_id = excluded.run_id, error = excluded.error,
         due_at = CASE WHEN $11 THEN excluded.due_at ELSE mcp_delivery.due_at END,
         claim_owner = CASE WHEN $11 THEN NULL ELSE mcp_delivery.claim_owner END"
);

/// `$11`: in how many ms it is due; null = never.
const WRITE: Statement = statement!(
    "UPDATE mcp_delivery
     SET phase = $3, newest = $4, launched = $5, attempt = $6, failures = $7, unclear = $8, run_id = $9, error = $10,
         due_at = " (MS_LATER 11) ", claim_owner = NULL
     WHERE task_id = $1 AND sink = $2"
);

/// The claim goes on.
const RESERVE: Statement = statement!(
    "UPDATE mcp_delivery
     SET phase = $3, newest = $4, launched = $5, attempt = $6, failures = $7, unclear = $8, run_id = $9, error = $10
     WHERE task_id = $1 AND sink = $2"
);

const DROP: Statement = statement!("DELETE FROM mcp_delivery WHERE task_id = $1 AND sink = $2");

const TELL: Statement =
    statement!("UPDATE mcp_event SET told_at = COALESCE(told_at, " NOW ") WHERE task_id = $1 AND seq = $2");

/// Only while it is claimed so: nothing was sent.
const GIVE_BACK: Statement = statement!(
    "UPDATE mcp_delivery SET due_at = " NOW ", claim_owner = NULL
     WHERE task_id = $1 AND sink = $2 AND claim_seq = $3 AND claim_owner = $4"
);

/// The columns of a delivery as parameters from `$3` on.
macro_rules! bound {
    ($query:expr, $delivery:expr) => {{
        let delivery: &caribou_core::notification::Delivery = &$delivery;
        let counted = $query.bind(delivery.phase.number()).bind(delivery.newest).bind(delivery.launched);
        let counted = counted.bind($crate::sql::notifications::number(delivery.attempt));
        let counted = counted.bind($crate::sql::notifications::number(delivery.failures));
        let counted = counted.bind($crate::sql::notifications::number(delivery.unclear));
        counted.bind(delivery.run_id.clone()).bind(delivery.error.clone())
    }};
}

/// Takes a new event of a task in, for one sink, within a transaction that holds the task.
macro_rules! renew_delivery {
    ($writing:ident, $word:ident, $task:ident, $sink:ident, $version:ident) => {{
        use crate::sql::notifications::{DeliveryRow, HOLD, RENEW, bound, delivery, undecodable};
        let hold = sqlx::query_as($word(HOLD)).bind($task).bind($sink.number());
        let before: Option<DeliveryRow> = hold.fetch_optional(&mut *$writing).await?;
        let (after, is_due) = match before {
            None => (caribou_core::notification::Delivery::first($version), true),
            Some(row) => delivery(row).map_err(undecodable)?.newer($version),
        };
        let renew = bound!(sqlx::query($word(RENEW)).bind($task).bind($sink.number()), after);
        renew.bind(is_due).execute(&mut *$writing).await?;
    }};
}

pub(in crate::sql) use {bound, renew_delivery};

/// What no version of Caribou has written, in the words of the driver.
pub(in crate::sql) fn undecodable(error: StoreError) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: "phase".to_owned(), source: Box::new(error) }
}

/// Reserves a launch.
pub(super) async fn reserve(store: &SqlStore, claim: DeliveryClaim, seq: i64) -> Result<Reserved, StoreError> {
    let (task, owner, sink) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?, claim.sink.number());
    change!(store, |connection, word| {
        let mut reserving = connection.begin().await?;
        let hold = sqlx::query_as(word(HOLD_CLAIMED)).bind(task).bind(sink).bind(claim.token.seq).bind(owner);
        let held: Option<DeliveryRow> = hold.fetch_optional(&mut *reserving).await?;
        let Some(held) = held else { return Ok(Reserved::Fenced) };
        let answer = match delivery(held).map_err(undecodable)?.reserve(seq) {
            Some(reserved) => {
                let write = bound!(sqlx::query(word(RESERVE)).bind(task).bind(sink), reserved);
                write.execute(&mut *reserving).await?;
                Reserved::Reserved(reserved)
            }
            None => {
                let back = sqlx::query(word(GIVE_BACK)).bind(task).bind(sink).bind(claim.token.seq).bind(owner);
                back.execute(&mut *reserving).await?;
                Reserved::Superseded
            }
        };
        reserving.commit().await.map(|()| answer)
    })
}

/// Settles a delivery.
pub(super) async fn settle(
    store: &SqlStore,
    claim: DeliveryClaim,
    happened: Happened,
    limits: TaskLimits,
) -> Result<Settled, StoreError> {
    let (task, owner, sink) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?, claim.sink.number());
    let is_told = matches!(happened, Happened::Taken | Happened::Succeeded);
    change!(store, |connection, word| {
        let mut settling = connection.begin().await?;
        let hold = sqlx::query_as(word(HOLD_CLAIMED)).bind(task).bind(sink).bind(claim.token.seq).bind(owner);
        let held: Option<DeliveryRow> = hold.fetch_optional(&mut *settling).await?;
        let Some(held) = held else { return Ok(Settled::Fenced) };
        let held = delivery(held).map_err(undecodable)?;
        let told = held.launched.filter(|_| is_told);
        match held.after(happened.clone(), &limits) {
            After::Done => {
                sqlx::query(word(DROP)).bind(task).bind(sink).execute(&mut *settling).await?;
            }
            After::Stays { delivery, due } => {
                let write = bound!(sqlx::query(word(WRITE)).bind(task).bind(sink), delivery);
                write.bind(due.map(milliseconds)).execute(&mut *settling).await?;
            }
        }
        if let Some(told) = told {
            sqlx::query(word(TELL)).bind(task).bind(told).execute(&mut *settling).await?;
        }
        settling.commit().await.map(|()| Settled::Settled)
    })
}

/// Gives claims back.
pub(super) async fn release(store: &SqlStore, mut claims: Vec<DeliveryClaim>) -> Result<(), StoreError> {
    claims.sort_by_key(|claim| (claim.task, claim.sink));
    let rows = claims.iter().map(|claim| {
        let owner = uuid(&claim.token.owner)?;
        Ok((Uuid::from_bytes(claim.task.0), claim.sink.number(), claim.token.seq, owner))
    });
    let rows = rows.collect::<Result<Vec<_>, StoreError>>()?;
    change!(store, |connection, word| {
        let mut releasing = connection.begin().await?;
        for (task, sink, seq, owner) in &rows {
            let back = sqlx::query(word(GIVE_BACK)).bind(*task).bind(*sink).bind(*seq).bind(*owner);
            back.execute(&mut *releasing).await?;
        }
        releasing.commit().await
    })
}

/// Takes up what was given up.
pub(super) async fn redeliver(store: &SqlStore, task: TaskId, sink: Sink) -> Result<Redelivered, StoreError> {
    let (task, sink) = (Uuid::from_bytes(task.0), sink.number());
    change!(store, |connection, word| {
        let mut taking = connection.begin().await?;
        let held: Option<DeliveryRow> =
            sqlx::query_as(word(HOLD)).bind(task).bind(sink).fetch_optional(&mut *taking).await?;
        let held = held.map(delivery).transpose().map_err(undecodable)?;
        let Some(again) = held.and_then(Delivery::taken_up) else { return Ok(Redelivered::NotGivenUp) };
        let write = bound!(sqlx::query(word(WRITE)).bind(task).bind(sink), again);
        write.bind(Some(0_i64)).execute(&mut *taking).await?;
        taking.commit().await.map(|()| Redelivered::TakenUp)
    })
}
