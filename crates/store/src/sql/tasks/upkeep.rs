//! When something is next due, what a dead replica held, and what is old enough to be forgotten.

use std::time::{Duration, Instant};

use caribou_core::ids::BootId;
use caribou_core::task::Lane;
use caribou_ports::store::StoreError;

use crate::sql::SqlStore;
use crate::sql::pools::{Pools, REQUEST, ask, change, within};
use crate::sql::replicas::{duration, milliseconds, uuid};
use crate::sql::statement::{Statement, statement};

/// The first of each lane from its floor on, and the time. `$1` lanes and `$2` their floors. `now()` is the time before
/// anything was read, so that what is set meanwhile is later.
const FIRST_OF_EACH: &str = "SELECT wanted.lane,
            (SELECT CAST(extract(epoch FROM due_at) * 1000000 AS bigint) FROM mcp_work
             WHERE lane = wanted.lane AND due_at >= timestamptz 'epoch' + wanted.floor_us * interval '1 microsecond'
             ORDER BY due_at LIMIT 1),
            CAST(extract(epoch FROM now()) * 1000000 AS bigint)
     FROM unnest(CAST($1 AS smallint[]), CAST($2 AS bigint[])) AS wanted(lane, floor_us)";

/// The first of all lanes, each from the head of the index: SQLite has no old versions there. `$1` lanes as JSON.
const FIRST_OF_ALL: &str = "SELECT min(ms) FROM (
        SELECT (SELECT due_at - CAST((julianday('now') - 2440587.5) * 86400000 AS integer) FROM mcp_work
                WHERE lane = CAST(wanted.value AS integer) ORDER BY due_at LIMIT 1) AS ms
        FROM json_each($1) AS wanted
     ) AS first";

/// Every lane there is, so that the index on lane and time is searched.
macro_rules! all_lanes {
    () => {
        "0, 1, 2, 3, 4, 5, 6, 7, 256, 257, 258, 259, 260, 261, 262, 263, 512, 513, 514, 515, 516, 517, 518, 519, 768,
         769, 770, 771, 772, 773, 774, 775, 1024, 1025, 1026, 1027, 1028, 1029, 1030, 1031"
    };
}

/// Only of a replica that was declared dead, and only what it holds: its claims stay counted as abandoned.
const TAKE_BACK: Statement = Statement {
    postgres: concat!(
        "UPDATE mcp_work SET due_at = clock_timestamp()
         WHERE lane IN (",
        all_lanes!(),
        ") AND due_at > now()
           AND due_at <= now() + CAST($2 AS bigint) * interval '1 millisecond' AND claim_owner = $1
           AND EXISTS (SELECT 1 FROM replica WHERE boot_id = $1 AND state = 3)"
    ),
    sqlite: concat!(
        "UPDATE mcp_work SET due_at = CAST((julianday('now') - 2440587.5) * 86400000 AS integer)
         WHERE lane IN (",
        all_lanes!(),
        ")
           AND due_at > CAST((julianday('now') - 2440587.5) * 86400000 AS integer)
           AND due_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS integer) + $2 AND claim_owner = $1
           AND EXISTS (SELECT 1 FROM replica WHERE boot_id = $1 AND state = 3)"
    ),
};

/// What waits for a question that only a replica could ask that is dead now.
const LET_GO: Statement = statement!(
    "UPDATE mcp_work SET due_at = " NOW "
     WHERE pinned_to = $1 AND claim_owner IS NULL AND due_at > " NOW "
       AND EXISTS (SELECT 1 FROM replica WHERE boot_id = $1 AND state = 3)"
);

/// With their events, answers and dead letters; the number is [`caribou_ports::store::FORGET_BATCH`]. What is still to be
/// told keeps its task (invariant N1).
const FORGET: Statement = statement!(
    "DELETE FROM mcp_task WHERE task_id IN (
        SELECT task_id FROM mcp_task AS t
        WHERE ended_at < " (MS_AGO 1) "
          AND NOT EXISTS (SELECT 1 FROM mcp_delivery AS d WHERE d.task_id = t.task_id AND d.due_at IS NOT NULL)
        ORDER BY ended_at LIMIT 1000
     )"
);

const _: () = assert!(caribou_ports::store::FORGET_BATCH == 1_000, "the statement says 1000");

/// How long until something is due.
pub(super) async fn next_due(store: &SqlStore, lanes: Vec<Lane>) -> Result<Option<Duration>, StoreError> {
    let lanes: Vec<i16> = lanes.iter().map(|lane| lane.number()).collect();
    let broken = StoreError::Unavailable;
    let ms: Option<i64> = within(REQUEST, broken, async {
        match &store.pools {
            Pools::Postgres(pool) => {
                let now = Instant::now();
                let floors: Vec<i64> = lanes.iter().map(|lane| store.floors.of(*lane, now)).collect();
                let first: Vec<(i16, Option<i64>, i64)> = ask!(pool, postgres, broken, |connection, _word| {
                    sqlx::query_as(FIRST_OF_EACH).bind(&lanes).bind(floors).fetch_all(connection).await
                })?;
                for (lane, first_us, now_us) in &first {
                    store.floors.seen(*lane, *first_us, *now_us);
                }
                let until = first.iter().filter_map(|(_, first_us, now_us)| Some((*first_us)? - now_us)).min();
                // Upwards: who comes a moment too early finds nothing.
                Ok(until.map(|us| us.saturating_add(999).div_euclid(1_000)))
            }
            Pools::Sqlite { readers, .. } => ask!(readers, sqlite, broken, |connection, _word| {
                let lanes = serde_json::to_string(&lanes).map_err(|error| sqlx::Error::Encode(error.into()))?;
                sqlx::query_scalar(FIRST_OF_ALL).bind(lanes).fetch_one(connection).await
            }),
        }
    })
    .await?;
    Ok(ms.map(duration))
}

/// Makes due what a dead replica holds, and what was left to it.
pub(super) async fn take_back(store: &SqlStore, dead: BootId, ahead: Duration) -> Result<u64, StoreError> {
    let dead = uuid(&dead)?;
    change!(store, |connection, word| {
        let let_go = sqlx::query(word(LET_GO)).bind(dead).execute(&mut *connection).await?.rows_affected();
        let take = sqlx::query(word(TAKE_BACK)).bind(dead).bind(milliseconds(ahead));
        take.execute(connection).await.map(|done| done.rows_affected() + let_go)
    })
}

/// Deletes what is old.
pub(super) async fn forget(store: &SqlStore, age: Duration) -> Result<u64, StoreError> {
    change!(store, |connection, word| {
        let forget = sqlx::query(word(FORGET)).bind(milliseconds(age));
        forget.execute(connection).await.map(|done| done.rows_affected())
    })
}

#[cfg(test)]
mod tests {
    use caribou_core::task::Duty;

    #[test]
    fn every_lane_is_searched_for_what_a_dead_replica_holds() {
        // Invariant T4.
        let listed: Vec<i16> = all_lanes!().split(',').map(|lane| lane.trim().parse().unwrap()).collect();
        let all: Vec<i16> = Duty::ALL.into_iter().flat_map(Duty::lanes).map(|lane| lane.number()).collect();
        assert_eq!(listed, all);
    }
}
