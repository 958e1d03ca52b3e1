//! Lives of replicas, on record.

use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Replica, ReplicaState, Replicas, StoreError, StoredReplica};
use uuid::Uuid;

use super::SqlStore;
use super::pools::{change, read};
use super::statement::{Statement, statement};

/// The stored number of *dead*.
const DEAD: i16 = 3;

const BEGIN: Statement = statement!(
    "INSERT INTO replica (boot_id, host, version, started_at) VALUES ($1, $2, $3, " NOW ")
     ON CONFLICT (boot_id) DO NOTHING"
);

/// The condition keeps the first end: dead is final.
const END: Statement = statement!("UPDATE replica SET state = 3, dead_at = " NOW " WHERE boot_id = $1 AND state < 3");

const LIST: Statement = statement!(
    "SELECT boot_id, host, version, state, " (MS_SINCE started_at) " FROM replica ORDER BY started_at DESC, boot_id DESC"
);

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
}

fn uuid(boot: &BootId) -> Result<Uuid, StoreError> {
    boot.as_str().parse().map_err(|_| StoreError::Mismatch("a boot id that is no UUID".to_owned()))
}

fn stored((boot, host, version, state, age_ms): (Uuid, String, String, i16, i64)) -> StoredReplica {
    StoredReplica {
        replica: Replica { boot: BootId::new(boot.to_string()), host, version },
        state: if state == DEAD { ReplicaState::Dead } else { ReplicaState::Up },
        // Negative when the machine's clock was set back.
        age: Duration::from_millis(u64::try_from(age_ms).unwrap_or(0)),
    }
}
