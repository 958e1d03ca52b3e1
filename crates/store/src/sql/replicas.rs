//! Lives of replicas, on record, and their leases. Renewing and declaring dead meet on the row: one of them is first.

use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_core::task::SnapshotFingerprint;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Renewal, Renewed, Replica, Replicas, StoreError, StoredReplica};
use uuid::Uuid;

use super::SqlStore;
use super::pools::{change, read};
use super::statement::{Statement, statement};

const BEGIN: Statement = statement!(
    "INSERT INTO replica (boot_id, host, version, started_at) VALUES ($1, $2, $3, " NOW ")
     ON CONFLICT (boot_id) DO NOTHING"
);

/// The condition keeps the first end: dead is final.
const END: Statement = statement!("UPDATE replica SET state = 3, dead_at = " NOW " WHERE boot_id = $1 AND state < 3");

/// Dead is final, so a life that was declared dead finds no row; a lease that is over may be renewed.
const RENEW: Statement = statement!(
    "UPDATE replica SET lease_until = " (MS_LATER 2) ", renewals = renewals + 1, configurations = $3
     WHERE boot_id = $1 AND state < 3 RETURNING renewals"
);

/// The conditions keep a life that renewed since it was looked at, and one whose lease holds by the database's time.
const DECLARE_DEAD: Statement = statement!(
    "UPDATE replica SET state = 3, dead_at = " NOW "
     WHERE boot_id = $1 AND state < 3 AND renewals = $2 AND lease_until < " NOW
);

const LIST: Statement = statement!(
    "SELECT boot_id, host, version, " (MS_SINCE started_at) ", renewals, " (MS_UNTIL "lease_until") ",
            configurations
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
            change!(self, |connection, word| {
                let begin = sqlx::query(word(BEGIN)).bind(boot).bind(&replica.host).bind(&replica.version);
                begin.execute(connection).await.map(drop)
            })
        })
    }

    fn renew_lease(&self, renewal: Renewal) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        Box::pin(async move {
            let boot = uuid(&renewal.boot)?;
            let configurations: Vec<String> = renewal.configurations.iter().map(|one| one.0.to_string()).collect();
            let configurations = configurations.join(",");
            let renewals: Option<i64> = change!(self, |connection, word| {
                let renew = sqlx::query_scalar(word(RENEW)).bind(boot).bind(milliseconds(renewal.lease));
                renew.bind(configurations).fetch_optional(connection).await
            })?;
            Ok(renewals.map_or(Renewed::Dead, |renewals| Renewed::Renewed { renewals }))
        })
    }

    fn declare_dead(&self, boot: BootId, seen_renewals: i64) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let boot = uuid(&boot)?;
            change!(self, |connection, word| {
                let declare = sqlx::query(word(DECLARE_DEAD)).bind(boot).bind(seen_renewals);
                declare.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn end(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let boot = uuid(&boot)?;
            change!(self, |connection, word| sqlx::query(word(END)).bind(boot).execute(connection).await.map(drop))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredReplica>, StoreError>> {
        Box::pin(async move {
            let rows = read!(self, |connection, word| sqlx::query_as(word(LIST)).fetch_all(connection).await)?;
            Ok(rows.into_iter().map(stored).collect())
        })
    }

    fn forget_replicas(&self, age: Duration) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            change!(self, |connection, word| {
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

type Row = (Uuid, String, String, i64, i64, i64, String);

fn stored((boot, host, version, age_ms, renewals, left_ms, configurations): Row) -> StoredReplica {
    let configuration = |number: &str| number.parse().ok().map(SnapshotFingerprint);
    StoredReplica {
        replica: Replica { boot: BootId::new(boot.to_string()), host, version },
        age: duration(age_ms),
        renewals,
        lease_left: duration(left_ms),
        configurations: configurations.split(',').filter_map(configuration).collect(),
    }
}
