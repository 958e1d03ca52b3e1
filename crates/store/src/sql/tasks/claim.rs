//! Claiming what is due (durability.md 1.5; invariants C1, T4).
//!
//! In PostgreSQL one statement, with the number of rows as a literal: as a parameter it would make the planner expect a
//! tenth of all rows, and read all of them. Rows that somebody else is claiming are skipped. SQLite has one writer, so
//! there is nobody else.

use std::time::Instant;

use caribou_core::task::poison::QUARANTINE_AFTER;
use caribou_ports::store::{ClaimTasks, ClaimedTask, MAX_CLAIMED, StoreError};
use sqlx::Connection as _;
use uuid::Uuid;

use super::rows::{ClaimedRow, claimed_columns};
use crate::sql::SqlStore;
use crate::sql::pools::{Pools, REQUEST, ask, within};
use crate::sql::replicas::{milliseconds, uuid};

/// As often as this a row goes to quarantine; the statements say it as a literal.
const _: () = assert!(QUARANTINE_AFTER == 3, "the statements of this file say 3");

/// `$1` lanes and `$2` their floors, `$3` ms overdue, `$4` configurations left to others, `$5` lease in ms, `$6` owner.
/// `now()` stands still, so the index can be searched by it; `clock_timestamp()` is the moment of the write. The conditions
/// after those of the index are put so that the planner expects them to hold: as `<> ALL` it would expect hardly a row,
/// and read and sort all that are due.
///
/// What is pinned to whoever claims need not be overdue, since nobody else comes for it. Who lives is read once for a
/// claim, and only when it finds something that is pinned to another replica.
macro_rules! claim {
    ($limit:literal) => {
        concat!(
            "WITH due AS MATERIALIZED (
                SELECT found.task_id, found.due_at, found.lane
                FROM unnest($1, $2) WITH ORDINALITY AS wanted(lane, floor_us, place)
                CROSS JOIN LATERAL (
                    SELECT task_id, due_at, lane FROM mcp_work
                    WHERE lane = wanted.lane
                      AND due_at >= timestamptz 'epoch' + wanted.floor_us * interval '1 microsecond'
                      AND due_at <= now()
                      AND NULLIF(due_at > now() - $3 * interval '1 millisecond'
                                 AND (pinned_to IS NULL OR pinned_to <> $6), true) IS NOT NULL
                      AND NULLIF(configuration = ANY ($4), true) IS NOT NULL
                      AND NULLIF(pinned_to IS NOT NULL AND pinned_to <> $6
                                 AND pinned_to = ANY (ARRAY(SELECT boot_id FROM replica WHERE state < 3)), true)
                          IS NOT NULL
                    ORDER BY due_at LIMIT ",
            $limit,
            " FOR UPDATE SKIP LOCKED
                ) AS found
                LIMIT ",
            $limit,
            "
             )
             UPDATE mcp_work AS w
             SET lane = CASE WHEN ",
            poisonous!(),
            " THEN 768 + w.lane % 256 ELSE w.lane END,
                 due_at = clock_timestamp()
                          + CASE WHEN ",
            poisonous!(),
            " THEN 0 ELSE $5 END * interval '1 millisecond',
                 claim_owner = CASE WHEN ",
            poisonous!(),
            " THEN NULL ELSE $6 END,
                 claim_seq = w.claim_seq + 1,
                 abandons = w.abandons + CASE WHEN w.claim_owner IS NULL THEN 0 ELSE 1 END,
                 attempts = w.attempts + CASE WHEN w.lane / 256 = 1 THEN 0 ELSE 1 END
             FROM due JOIN mcp_task AS t ON t.task_id = due.task_id
             WHERE w.task_id = due.task_id
             RETURNING due.lane, CAST(extract(epoch FROM due.due_at) * 1000000 AS bigint), ",
            claimed_columns!()
        )
    };
}

/// Whether the row has been abandoned so often, this time counted, that it is worked on alone
/// ([`caribou_core::task::poison`]).
macro_rules! poisonous {
    () => {
        "w.lane / 256 <> 3 AND w.abandons + CASE WHEN w.claim_owner IS NULL THEN 0 ELSE 1 END >= 3"
    };
}

/// One statement for each power of two.
const CLAIM: [(u32, &str); 9] = [
    (256, claim!("256")),
    (128, claim!("128")),
    (64, claim!("64")),
    (32, claim!("32")),
    (16, claim!("16")),
    (8, claim!("8")),
    (4, claim!("4")),
    (2, claim!("2")),
    (1, claim!("1")),
];

/// The same for one lane of SQLite, whose planner does not guess by the number of rows: `$1` lane, `$2` number of rows,
/// `$3` ms overdue, `$4` configurations left to others as JSON, `$5` lease in ms, `$6` owner.
const CLAIM_LANE: &str = concat!(
    "UPDATE mcp_work AS w
     SET lane = CASE WHEN ",
    poisonous!(),
    " THEN 768 + w.lane % 256 ELSE w.lane END,
         due_at = CAST((julianday('now') - 2440587.5) * 86400000 AS integer)
                  + CASE WHEN ",
    poisonous!(),
    " THEN 0 ELSE $5 END,
         claim_owner = CASE WHEN ",
    poisonous!(),
    " THEN NULL ELSE $6 END,
         claim_seq = w.claim_seq + 1,
         abandons = w.abandons + CASE WHEN w.claim_owner IS NULL THEN 0 ELSE 1 END,
         attempts = w.attempts + CASE WHEN w.lane / 256 = 1 THEN 0 ELSE 1 END
     WHERE w.task_id IN (
         SELECT task_id FROM mcp_work
         WHERE lane = $1 AND due_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS integer)
           AND (due_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS integer) - $3 OR pinned_to = $6)
           AND configuration NOT IN (SELECT value FROM json_each($4))
           AND (pinned_to IS NULL OR pinned_to = $6
                OR COALESCE((SELECT life.state FROM replica AS life WHERE life.boot_id = pinned_to), 3) = 3)
         ORDER BY due_at LIMIT $2
     )
     RETURNING task_id"
);

/// The claimed rows of `$1`, a lane, with their tasks: `$2` their ids in hexadecimal, as a JSON array. One statement for
/// all of them, since each one wakes the thread that SQLite runs in.
const CLAIMED: &str = concat!(
    "SELECT CAST($1 AS integer), 0, ",
    claimed_columns!(),
    " FROM json_each($2) AS claimed CROSS JOIN mcp_work AS w ON w.task_id = unhex(claimed.value)
           CROSS JOIN mcp_task AS t ON t.task_id = w.task_id"
);

/// Ids as a JSON array.
fn hexadecimal(tasks: &[Uuid]) -> String {
    let quoted: Vec<String> = tasks.iter().map(|task| format!("\"{}\"", task.simple())).collect();
    format!("[{}]", quoted.join(","))
}

/// Claims what is due.
pub(super) async fn claim(store: &SqlStore, wanted: ClaimTasks) -> Result<Vec<ClaimedTask>, StoreError> {
    let at_most = wanted.at_most.min(MAX_CLAIMED);
    let Some((limit, statement)) = CLAIM.into_iter().find(|(limit, _)| *limit <= at_most) else {
        return Ok(Vec::new());
    };
    let owner = uuid(&wanted.owner)?;
    let lanes: Vec<i16> = wanted.shards.iter().map(|shard| wanted.duty.lane(*shard).number()).collect();
    let not_of: Vec<i64> = wanted.not_of.iter().map(|fingerprint| fingerprint.0).collect();
    let (lease, overdue) = (milliseconds(wanted.lease), milliseconds(wanted.overdue));
    let broken = StoreError::OutcomeUnknown;
    let rows: Vec<ClaimedRow> = within(REQUEST, broken, async {
        match &store.pools {
            Pools::Postgres(pool) => {
                let now = Instant::now();
                let floors: Vec<i64> = lanes.iter().map(|lane| store.floors.of(*lane, now)).collect();
                ask!(pool, postgres, broken, |connection, _word| {
                    let claim = sqlx::query_as(statement).bind(&lanes).bind(floors).bind(overdue).bind(not_of);
                    claim.bind(lease).bind(owner).fetch_all(connection).await
                })
            }
            Pools::Sqlite { writer, .. } => ask!(writer, sqlite, broken, |connection, _word| {
                let mut claiming = connection.begin().await?;
                let (mut rows, mut left) = (Vec::new(), i64::from(limit));
                let not_of = serde_json::to_string(&not_of).map_err(|error| sqlx::Error::Encode(error.into()))?;
                for lane in &lanes {
                    let claim = sqlx::query_scalar(CLAIM_LANE).bind(*lane).bind(left).bind(overdue).bind(&not_of);
                    let tasks: Vec<Uuid> = claim.bind(lease).bind(owner).fetch_all(&mut *claiming).await?;
                    left -= i64::try_from(tasks.len()).unwrap_or(left);
                    if !tasks.is_empty() {
                        let claimed = sqlx::query_as(CLAIMED).bind(*lane).bind(hexadecimal(&tasks));
                        rows.extend(claimed.fetch_all(&mut *claiming).await?);
                    }
                    if left <= 0 {
                        break;
                    }
                }
                claiming.commit().await.map(|()| rows)
            }),
        }
    })
    .await?;
    for lane in lanes {
        // The oldest that was due in this lane: nothing before it is.
        if let Some(us) = rows.iter().filter(|row| row.due_lane == lane).map(|row| row.due_us).min() {
            store.floors.found(lane, us);
        }
    }
    rows.into_iter().filter_map(|row| row.claimed(&wanted.owner).transpose()).collect()
}
