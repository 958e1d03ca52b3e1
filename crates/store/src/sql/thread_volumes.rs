//! On which volume the files of a thread are.

use caribou_core::ids::{BootId, Scope, VolumeId};
use caribou_ports::BoxFuture;
use caribou_ports::store::{StoreError, ThreadVolume, ThreadVolumes};
use uuid::Uuid;

use super::SqlStore;
use super::pools::{change, read};
use super::replicas::uuid;
use super::statement::{Statement, statement};

const MOUNT: Statement = statement!("UPDATE replica SET volume = $2 WHERE boot_id = $1");

/// One that drains comes last: what it has goes to another of the same volume, if there is one.
const FIND: Statement = statement!(
    "SELECT volume, (SELECT boot_id FROM replica WHERE replica.volume = mcp_thread_volume.volume AND state < 3
                     ORDER BY state, started_at DESC, boot_id DESC LIMIT 1)
     FROM mcp_thread_volume WHERE user_id = $1 AND thread_id = $2"
);

/// The one on record stays; it is answered either way.
const KEEP: Statement = statement!(
    "INSERT INTO mcp_thread_volume (user_id, thread_id, volume) VALUES ($1, $2, $3)
     ON CONFLICT (user_id, thread_id) DO UPDATE SET volume = mcp_thread_volume.volume
     RETURNING volume"
);

const FORGET: Statement =
    statement!("DELETE FROM mcp_thread_volume WHERE user_id = $1 AND thread_id = $2 AND volume = $3");

impl ThreadVolumes for SqlStore {
    fn mount(&self, boot: BootId, volume: VolumeId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (boot, volume) = (uuid(&boot)?, stored(&volume)?);
            change!(self, |connection, word| {
                sqlx::query(word(MOUNT)).bind(boot).bind(volume).execute(connection).await.map(drop)
            })
        })
    }

    fn thread_volume(&self, scope: Scope) -> BoxFuture<'_, Result<Option<ThreadVolume>, StoreError>> {
        Box::pin(async move {
            let found: Option<(Uuid, Option<Uuid>)> = read!(self, |connection, word| {
                let find = sqlx::query_as(word(FIND)).bind(scope.user.as_str()).bind(scope.thread.as_str());
                find.fetch_optional(connection).await
            })?;
            Ok(found.map(|(volume, boot)| ThreadVolume {
                volume: VolumeId::new(volume.to_string()),
                held_by: boot.map(|boot| BootId::new(boot.to_string())),
            }))
        })
    }

    fn keep_thread_volume(&self, scope: Scope, volume: VolumeId) -> BoxFuture<'_, Result<VolumeId, StoreError>> {
        Box::pin(async move {
            let volume = stored(&volume)?;
            let kept: Uuid = change!(self, |connection, word| {
                let keep = sqlx::query_scalar(word(KEEP)).bind(scope.user.as_str()).bind(scope.thread.as_str());
                keep.bind(volume).fetch_one(connection).await
            })?;
            Ok(VolumeId::new(kept.to_string()))
        })
    }

    fn forget_thread_volume(&self, scope: Scope, volume: VolumeId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let volume = stored(&volume)?;
            change!(self, |connection, word| {
                let forget = sqlx::query(word(FORGET)).bind(scope.user.as_str()).bind(scope.thread.as_str());
                forget.bind(volume).execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }
}

/// A volume as it is stored.
fn stored(volume: &VolumeId) -> Result<Uuid, StoreError> {
    volume.as_str().parse().map_err(|_| StoreError::Mismatch("a volume that is named by no UUID".to_owned()))
}
