//! The generations that everything is opened under. The row of a scope is locked while it moves, so that of two moves
//! the later one commits last: a count over all scopes could let a later number be seen before an earlier one.

use caribou_core::ids::BootId;
use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::store::{Generations, StoreError};
use uuid::Uuid;

use super::SqlStore;
use super::pools::{change, read};
use super::replicas::uuid;
use super::statement::{Statement, statement};

/// The origin counts only where there is no row.
pub(super) const BUMP: Statement = statement!(
    "INSERT INTO reset_generation (scope, origin, counter, moved_at) VALUES ($1, $2, 1, " NOW ")
     ON CONFLICT (scope) DO UPDATE SET counter = reset_generation.counter + 1, moved_at = excluded.moved_at
     RETURNING origin, counter"
);

/// The number is three more than [`caribou_core::reset::MAX_SCOPES`]: two are of no server, and nobody is left out
/// while one too many waits to be deleted.
const READ: Statement =
    statement!("SELECT scope, origin, counter FROM reset_generation ORDER BY moved_at DESC LIMIT 10003");

/// The number is [`caribou_core::reset::MAX_SCOPES`]. What is deleted begins another count when it comes again.
pub(super) const FORGET: Statement = statement!(
    "DELETE FROM reset_generation WHERE scope IN (
        SELECT scope FROM reset_generation WHERE scope LIKE 'server:%' ORDER BY moved_at DESC LIMIT 1000 OFFSET 10000
     )"
);

const _: () = assert!(caribou_core::reset::MAX_SCOPES == 10_000, "the statements say so");

/// The condition keeps what was noted later, whichever of two requests comes last.
const CONFIRM: Statement = statement!(
    "INSERT INTO replica_generation (boot_id, scope, origin, counter) VALUES ($1, $2, $3, $4)
     ON CONFLICT (boot_id, scope) DO UPDATE SET origin = excluded.origin, counter = excluded.counter
        WHERE replica_generation.origin <> excluded.origin OR replica_generation.counter < excluded.counter"
);

/// Of lives that are over; a life that begins notes nothing before it is on record.
const FORGET_CONFIRMED: Statement = statement!(
    "DELETE FROM replica_generation
     WHERE boot_id <> $1 AND boot_id NOT IN (SELECT boot_id FROM replica WHERE state < 3)"
);

const CONFIRMED: Statement = statement!(
    "SELECT replica.boot_id, origin, counter
     FROM replica LEFT JOIN replica_generation ON replica_generation.boot_id = replica.boot_id AND scope = $1
     WHERE state < 3 AND lease_until > " NOW " ORDER BY replica.boot_id"
);

impl Generations for SqlStore {
    fn bump(&self, scope: ResetScope) -> BoxFuture<'_, Result<ResetGeneration, StoreError>> {
        Box::pin(async move {
            let (scope, origin) = (scope.to_string(), Uuid::new_v4());
            let row = change!(self, |connection, word| {
                sqlx::query_as(word(BUMP)).bind(&scope).bind(origin).fetch_one(connection).await
            })?;
            Ok(generation(row))
        })
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<(ResetScope, ResetGeneration)>, StoreError>> {
        Box::pin(async move {
            let rows: Vec<(String, Uuid, i64)> =
                read!(self, |connection, word| sqlx::query_as(word(READ)).fetch_all(connection).await)?;
            let stored = |(scope, origin, counter): (String, Uuid, i64)| {
                Some((ResetScope::parse(&scope)?, generation((origin, counter))))
            };
            Ok(rows.into_iter().filter_map(stored).collect())
        })
    }

    fn confirm(
        &self,
        boot: BootId,
        scope: ResetScope,
        generation: ResetGeneration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (boot, scope, origin) = (uuid(&boot)?, scope.to_string(), Uuid::from_bytes(generation.origin));
            change!(self, |connection, word| {
                let confirm = sqlx::query(word(CONFIRM)).bind(boot).bind(&scope).bind(origin).bind(generation.counter);
                confirm.execute(&mut *connection).await?;
                sqlx::query(word(FORGET_CONFIRMED)).bind(boot).execute(connection).await.map(drop)
            })
        })
    }

    fn confirmed(
        &self,
        scope: ResetScope,
    ) -> BoxFuture<'_, Result<Vec<(BootId, Option<ResetGeneration>)>, StoreError>> {
        Box::pin(async move {
            let scope = scope.to_string();
            let rows: Vec<(Uuid, Option<Uuid>, Option<i64>)> = read!(self, |connection, word| {
                sqlx::query_as(word(CONFIRMED)).bind(&scope).fetch_all(connection).await
            })?;
            let noted = |(boot, origin, counter): (Uuid, Option<Uuid>, Option<i64>)| {
                (BootId::new(boot.to_string()), origin.zip(counter).map(generation))
            };
            Ok(rows.into_iter().map(noted).collect())
        })
    }
}

pub(super) fn generation((origin, counter): (Uuid, i64)) -> ResetGeneration {
    ResetGeneration { origin: origin.into_bytes(), counter }
}
