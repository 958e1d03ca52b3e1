//! Claiming deliveries that are due (invariants C1, N1). As with tasks, PostgreSQL gets the number of rows as a literal.

use caribou_core::notification::Audience;
use caribou_ports::store::{ClaimDeliveries, ClaimedDelivery, MAX_CLAIMED, StoreError};
use sqlx::Connection as _;
use uuid::Uuid;

use super::rows::{ClaimedRow, claimed_columns, delivery_columns, its_event};
use crate::sql::SqlStore;
use crate::sql::pools::{Pools, REQUEST, ask, within};
use crate::sql::replicas::{milliseconds, uuid};

/// `$1` sink, `$2` lease in ms, `$3` owner, `$4` whose tasks they are about (null: everybody's).
macro_rules! claim {
    ($limit:literal) => {
        concat!(
            "WITH due AS MATERIALIZED (
                SELECT task_id FROM mcp_delivery WHERE sink = $1 AND due_at <= now()
                  AND ($4::text[] IS NULL OR EXISTS (
                      SELECT 1 FROM mcp_task AS own WHERE own.task_id = mcp_delivery.task_id AND own.user_id = ANY($4)
                  ))
                ORDER BY due_at LIMIT ",
            $limit,
            " FOR UPDATE SKIP LOCKED
             )
             UPDATE mcp_delivery AS d
             SET due_at = clock_timestamp() + $2 * interval '1 millisecond', claim_owner = $3,
                 claim_seq = d.claim_seq + 1
             FROM due JOIN mcp_task AS t ON t.task_id = due.task_id JOIN mcp_event AS e ON e.task_id = due.task_id
             WHERE d.task_id = due.task_id AND d.sink = $1 AND ",
            its_event!(),
            "
             RETURNING ",
            claimed_columns!("CAST(extract(epoch FROM e.at) * 1000000 AS bigint)")
        )
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

const CLAIM_SOME: &str = "UPDATE mcp_delivery
     SET due_at = CAST((julianday('now') - 2440587.5) * 86400000 AS integer) + $2, claim_owner = $3,
         claim_seq = claim_seq + 1
     WHERE sink = $1 AND task_id IN (
         SELECT task_id FROM mcp_delivery
         WHERE sink = $1 AND due_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS integer)
           AND ($5 IS NULL OR EXISTS (
               SELECT 1 FROM mcp_task AS own WHERE own.task_id = mcp_delivery.task_id
                  AND own.user_id IN (SELECT value FROM json_each($5))
           ))
         ORDER BY due_at LIMIT $4
     )
     RETURNING task_id";

const CLAIMED: &str = concat!(
    "SELECT ",
    claimed_columns!("e.at * 1000"),
    " FROM mcp_delivery AS d JOIN mcp_task AS t ON t.task_id = d.task_id JOIN mcp_event AS e ON ",
    its_event!(),
    " WHERE d.task_id = $1 AND d.sink = $2"
);

/// Claims what is due.
pub(super) async fn claim(store: &SqlStore, wanted: ClaimDeliveries) -> Result<Vec<ClaimedDelivery>, StoreError> {
    let at_most = wanted.at_most.min(MAX_CLAIMED);
    let Some((limit, statement)) = CLAIM.into_iter().find(|(limit, _)| *limit <= at_most) else {
        return Ok(Vec::new());
    };
    let (owner, sink, lease) = (uuid(&wanted.owner)?, wanted.sink.number(), milliseconds(wanted.lease));
    let users: Option<Vec<String>> = match &wanted.of {
        Audience::Everybody => None,
        Audience::Users(users) => Some(users.iter().map(|user| user.as_str().to_owned()).collect()),
    };
    let broken = StoreError::OutcomeUnknown;
    let rows: Vec<ClaimedRow> = within(REQUEST, broken, async {
        match &store.pools {
            Pools::Postgres(pool) => ask!(pool, postgres, broken, |connection, _word| {
                let claim = sqlx::query_as(statement).bind(sink).bind(lease).bind(owner).bind(&users);
                claim.fetch_all(connection).await
            }),
            Pools::Sqlite { writer, .. } => ask!(writer, sqlite, broken, |connection, _word| {
                let mut claiming = connection.begin().await?;
                // Names of users are texts: writing them does not fail.
                let users = users.as_ref().map(|users| serde_json::to_string(users).unwrap_or_default());
                let claim = sqlx::query_scalar(CLAIM_SOME).bind(sink).bind(lease).bind(owner).bind(i64::from(limit));
                let claim = claim.bind(users);
                let tasks: Vec<Uuid> = claim.fetch_all(&mut *claiming).await?;
                let mut rows = Vec::with_capacity(tasks.len());
                for task in tasks {
                    rows.push(sqlx::query_as(CLAIMED).bind(task).bind(sink).fetch_one(&mut *claiming).await?);
                }
                claiming.commit().await.map(|()| rows)
            }),
        }
    })
    .await?;
    rows.into_iter().map(|row| row.claimed(&wanted.owner, wanted.sink)).collect()
}
