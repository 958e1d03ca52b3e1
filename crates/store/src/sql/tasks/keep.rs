//! Settling many polls that brought nothing new at once, giving claims back, and putting them off.
//!
//! Rows are touched in the order of their ids, so that two of these never wait for each other.

use std::time::Duration;

use caribou_ports::store::{StoreError, TaskClaim, Unchanged};
use sqlx::Connection as _;
use uuid::Uuid;

use crate::sql::SqlStore;
use crate::sql::pools::{Pools, ask, change, within};
use crate::sql::replicas::{milliseconds, uuid};
use crate::sql::statement::{Statement, statement};

/// All rows at once. The last conditions are the fence of the claim (invariant C1). A task that
/// has answered harms nobody: it leaves quarantine, whose lanes are those from 768 on.
macro_rules! keep {
    ($later:expr, $now:expr, $from:literal, $claimed:literal, $task_id:literal) => {
        concat!(
            "UPDATE mcp_work AS w
             SET due_at = ",
            $later,
            ", claim_owner = NULL, abandons = 0, poll_errors = 0, last_polled_at = ",
            $now,
            ",
                 lane = CASE WHEN w.lane / 256 = 3 THEN 256 + w.lane % 256 ELSE w.lane END
             ",
            $from,
            "
             WHERE ",
            $claimed,
            " AND w.due_at > ",
            $now,
            "
             RETURNING ",
            $task_id
        )
    };
}

const KEEP_MANY: &str = keep!(
    "clock_timestamp() + x.again * interval '1 millisecond'",
    "clock_timestamp()",
    "FROM unnest($1, $2, $3, $4) AS x(task_id, seq, owner, again)",
    "w.task_id = x.task_id AND w.claim_seq = x.seq AND w.claim_owner = x.owner",
    "w.task_id"
);

/// `$1` the rows as a JSON array of arrays, ids in hexadecimal: one statement, since each one wakes the thread that
/// SQLite runs in.
const KEEP_LISTED: &str = keep!(
    "CAST((julianday('now') - 2440587.5) * 86400000 AS integer) + x.again",
    "CAST((julianday('now') - 2440587.5) * 86400000 AS integer)",
    "FROM (SELECT unhex(value ->> 0) AS task_id, value ->> 1 AS seq, unhex(value ->> 2) AS owner, value ->> 3 AS again
           FROM json_each($1)) AS x",
    "w.task_id = x.task_id AND w.claim_seq = x.seq AND w.claim_owner = x.owner",
    "task_id"
);

/// The condition is the fence of the claim (invariant C1).
const RENEW: Statement = statement!(
    "UPDATE mcp_work SET due_at = " (MS_LATER 4) "
     WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW
);

/// One that has expired may be given back too: as long as nobody else has claimed it, nothing else has changed.
const RELEASE: Statement = statement!(
    "UPDATE mcp_work SET due_at = " (MS_LATER 4) ", claim_owner = NULL,
                         attempts = attempts - CASE WHEN lane / 256 <> 1 AND attempts > 0 THEN 1 ELSE 0 END
     WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3"
);

/// A claim in the words of statements.
fn key(claim: &TaskClaim) -> Result<(Uuid, i64, Uuid), StoreError> {
    Ok((Uuid::from_bytes(claim.task.0), claim.token.seq, uuid(&claim.token.owner)?))
}

/// Settles polls that brought nothing new. The claims that are lost.
pub(super) async fn keep(store: &SqlStore, mut unchanged: Vec<Unchanged>) -> Result<Vec<TaskClaim>, StoreError> {
    if unchanged.is_empty() {
        return Ok(Vec::new());
    }
    unchanged.sort_by_key(|one| one.claim.task);
    let rows = unchanged.iter().map(|one| {
        let (task, seq, owner) = key(&one.claim)?;
        Ok((task, seq, owner, milliseconds(one.again)))
    });
    let rows: Vec<(Uuid, i64, Uuid, i64)> = rows.collect::<Result<_, StoreError>>()?;
    let broken = StoreError::OutcomeUnknown;
    let kept: Vec<Uuid> = within(crate::sql::pools::REQUEST, broken, async {
        match &store.pools {
            Pools::Postgres(pool) => ask!(pool, postgres, broken, |connection, _word| {
                let column = |at: fn(&(Uuid, i64, Uuid, i64)) -> i64| rows.iter().map(at).collect::<Vec<_>>();
                let (seqs, agains) = (column(|row| row.1), column(|row| row.3));
                let tasks: Vec<Uuid> = rows.iter().map(|row| row.0).collect();
                let owners: Vec<Uuid> = rows.iter().map(|row| row.2).collect();
                let keep = sqlx::query_scalar(KEEP_MANY).bind(tasks).bind(seqs).bind(owners).bind(agains);
                keep.fetch_all(connection).await
            }),
            Pools::Sqlite { writer, .. } => ask!(writer, sqlite, broken, |connection, _word| {
                let listed = rows.iter().map(|(task, seq, owner, again)| {
                    (task.simple().to_string(), seq, owner.simple().to_string(), again)
                });
                let listed = serde_json::to_string(&listed.collect::<Vec<_>>());
                let listed = listed.map_err(|error| sqlx::Error::Encode(error.into()))?;
                sqlx::query_scalar(KEEP_LISTED).bind(listed).fetch_all(connection).await
            }),
        }
    })
    .await?;
    let is_lost = |claim: &TaskClaim| !kept.iter().any(|task| task.into_bytes() == claim.task.0);
    Ok(unchanged.into_iter().map(|one| one.claim).filter(is_lost).collect())
}

/// Puts claims off. The ones that are lost.
pub(super) async fn renew(
    store: &SqlStore,
    claims: Vec<TaskClaim>,
    lease: Duration,
) -> Result<Vec<TaskClaim>, StoreError> {
    each(store, RENEW, claims, lease).await
}

/// Gives claims back.
pub(super) async fn release(store: &SqlStore, claims: Vec<TaskClaim>, again: Duration) -> Result<(), StoreError> {
    each(store, RELEASE, claims, again).await.map(drop)
}

/// Runs a statement for each claim, in one commit. The claims it did not find.
async fn each(
    store: &SqlStore,
    statement: Statement,
    mut claims: Vec<TaskClaim>,
    ahead: Duration,
) -> Result<Vec<TaskClaim>, StoreError> {
    claims.sort_by_key(|claim| claim.task);
    let rows = claims.iter().map(key).collect::<Result<Vec<_>, _>>()?;
    let found: Vec<bool> = change!(store, |connection, word| {
        let mut each = connection.begin().await?;
        let mut found = Vec::with_capacity(rows.len());
        for (task, seq, owner) in &rows {
            let one = sqlx::query(word(statement)).bind(*task).bind(*seq).bind(*owner).bind(milliseconds(ahead));
            found.push(one.execute(&mut *each).await?.rows_affected() > 0);
        }
        each.commit().await.map(|()| found)
    })?;
    Ok(claims.into_iter().zip(found).filter(|(_, found)| !found).map(|(claim, _)| claim).collect())
}
