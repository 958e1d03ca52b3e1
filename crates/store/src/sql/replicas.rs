//! Lives of replicas, on record, and their leases. Renewing and declaring dead meet on the row: one of them is first.

use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_core::session::GAP;
use caribou_core::task::SnapshotFingerprint;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Renewal, Renewed, Replica, Replicas, StoreError, StoredReplica};
use uuid::Uuid;

use super::SqlStore;
use super::pools::{change, read};
use super::row::row;
use super::statement::{Statement, statement};

const BEGIN: Statement = statement!(
    "INSERT INTO replica (boot_id, host, version, address, host_id, lock_path, started_at)
     VALUES ($1, $2, $3, $4, $5, $6, " NOW ")
     ON CONFLICT (boot_id) DO NOTHING"
);

/// The condition keeps the first end: dead is final. Nothing is left of it, so the gap counts as over.
const END: Statement =
    statement!("UPDATE replica SET state = 3, dead_at = " (MS_AGO 2) " WHERE boot_id = $1 AND state < 3");

/// The condition keeps an end.
const DRAIN: Statement = statement!("UPDATE replica SET state = 2 WHERE boot_id = $1 AND state < 2");

/// Dead is final, so a life that was declared dead finds no row; a lease that is over may be renewed.
const RENEW: Statement = statement!(
    "UPDATE replica SET lease_until = " (MS_LATER 2) ", renewals = renewals + 1, configurations = $3, load = $4
     WHERE boot_id = $1 AND state < 3 RETURNING renewals"
);

/// The conditions keep a life that renewed since it was looked at, and one whose lease holds by the database's time.
const DECLARE_DEAD: Statement = statement!(
    "UPDATE replica SET state = 3, dead_at = " NOW "
     WHERE boot_id = $1 AND state < 3 AND renewals = $2 AND lease_until < " NOW
);

const LIST: Statement = statement!(
    "SELECT boot_id, host, version, " (MS_SINCE started_at) ", renewals, " (MS_UNTIL "lease_until") ",
            configurations, address, host_id, lock_path, state, load
     FROM replica WHERE state < 3 ORDER BY started_at DESC, boot_id DESC"
);

/// The number is [`caribou_ports::store::FORGET_BATCH`].
const FORGET: Statement = statement!(
    "DELETE FROM replica WHERE boot_id IN (
        SELECT boot_id FROM replica WHERE dead_at <= " (MS_AGO 1) " ORDER BY dead_at LIMIT 1000
     )"
);

const _: () = assert!(caribou_ports::store::FORGET_BATCH == 1_000, "the statement says 1000");

impl Replicas for SqlStore {
    fn begin(&self, replica: Replica) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let boot = uuid(&replica.boot)?;
            change!(self.leases(), |connection, word| {
                let begin = sqlx::query(word(BEGIN)).bind(boot).bind(&replica.host).bind(&replica.version);
                let begin = begin.bind(&replica.address).bind(&replica.host_id).bind(&replica.lock_path);
                begin.execute(connection).await.map(drop)
            })
        })
    }

    fn renew_lease(&self, renewal: Renewal) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        Box::pin(async move {
            let boot = uuid(&renewal.boot)?;
            let configurations: Vec<String> = renewal.configurations.iter().map(|one| one.0.to_string()).collect();
            let configurations = configurations.join(",");
            let renewals: Option<i64> = change!(self.leases(), |connection, word| {
                let renew = sqlx::query_scalar(word(RENEW)).bind(boot).bind(milliseconds(renewal.lease));
                renew.bind(configurations).bind(renewal.load).fetch_optional(connection).await
            })?;
            Ok(renewals.map_or(Renewed::Dead, |renewals| Renewed::Renewed { renewals }))
        })
    }

    fn declare_dead(&self, boot: BootId, seen_renewals: i64) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let boot = uuid(&boot)?;
            change!(self.leases(), |connection, word| {
                let declare = sqlx::query(word(DECLARE_DEAD)).bind(boot).bind(seen_renewals);
                declare.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn declare_gone(&self, boot: BootId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let boot = uuid(&boot)?;
            change!(self.leases(), |connection, word| {
                let end = sqlx::query(word(END)).bind(boot).bind(milliseconds(GAP));
                end.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn drain(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let boot = uuid(&boot)?;
            change!(self.leases(), |connection, word| sqlx::query(word(DRAIN))
                .bind(boot)
                .execute(connection)
                .await
                .map(drop))
        })
    }

    fn end(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.declare_gone(boot).await.map(drop) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredReplica>, StoreError>> {
        Box::pin(async move {
            let rows = read!(self.leases(), |connection, word| sqlx::query_as(word(LIST)).fetch_all(connection).await)?;
            Ok(rows.into_iter().map(stored).collect())
        })
    }

    fn forget_replicas(&self, age: Duration) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            change!(self.leases(), |connection, word| {
                let forget = sqlx::query(word(FORGET)).bind(milliseconds(age));
                forget.execute(connection).await.map(|done| done.rows_affected())
            })
        })
    }
}

/// A boot id as it is stored.
pub(super) fn uuid(boot: &BootId) -> Result<Uuid, StoreError> {
    boot.as_str().parse().map_err(|_| StoreError::Mismatch("a boot id that is no UUID".to_owned()))
}

/// A duration as statements take it.
pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A number of milliseconds from the database; negative when its clock was set back, or a time has passed.
pub(super) fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

row! {
    /// A life that has not ended.
    LifeRow {
        boot_id: Uuid,
        host: String,
        version: String,
        age_ms: i64,
        renewals: i64,
        left_ms: i64,
        configurations: String,
        address: Option<String>,
        host_id: Option<String>,
        lock_path: Option<String>,
        state: i16,
        load: f32,
    }
}

fn stored(row: LifeRow) -> StoredReplica {
    let LifeRow { boot_id, host, version, address, host_id, lock_path, .. } = row;
    let configuration = |number: &str| number.parse().ok().map(SnapshotFingerprint);
    StoredReplica {
        replica: Replica { boot: BootId::new(boot_id.to_string()), host, version, address, host_id, lock_path },
        age: duration(row.age_ms),
        renewals: row.renewals,
        lease_left: duration(row.left_ms),
        configurations: row.configurations.split(',').filter_map(configuration).collect(),
        is_draining: row.state == 2,
        load: row.load,
    }
}
