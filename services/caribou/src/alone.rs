//! Proof that no earlier process still serves an embedded database.
//!
//! A lock beside the database is held for as long as this process lives, and no longer: whoever gets it is the only one,
//! so that what earlier lives held is taken over at once instead of when their leases end (durability.md 2.2, guard c).
//! Without it, because another process serves the same database, everything goes by leases.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::Context as _;
use caribou_core::bounds;
use caribou_core::ids::BootId;
use caribou_ports::store::{Notifications as _, Replicas as _, StoreError, Tasks as _};
use caribou_store::{Location, SqlStore};

/// Takes over what earlier lives left in a database of this machine. The lock, to be held to the end; `None` = it is no
/// such database, or another process serves it too.
///
/// # Errors
/// The file beside the database cannot be made or locked, or the store cannot be asked.
pub(crate) async fn take_over(store: &SqlStore, database: &Location, ours: &BootId) -> anyhow::Result<Option<File>> {
    let Location::Sqlite(path) = database else { return Ok(None) };
    let beside = path.with_extension("lock");
    let Some(lock) = lock(&beside).with_context(|| format!("locking {}", beside.display()))? else {
        tracing::warn!(database = %path.display(), "another process serves this database too");
        return Ok(None);
    };
    succeed(store, ours).await?;
    Ok(Some(lock))
}

/// `None` = another process has it.
fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Puts the end of every other life on record, and makes due at once what they held.
async fn succeed(store: &SqlStore, ours: &BootId) -> Result<(), StoreError> {
    for life in store.list().await? {
        let boot = life.replica.boot;
        if boot == *ours {
            continue;
        }
        store.end(boot.clone()).await?;
        let tasks = store.take_back(boot.clone(), bounds::LONGEST_CLAIM).await?;
        let deliveries = store.take_back_deliveries(boot.clone(), bounds::LONGEST_CLAIM).await?;
        tracing::info!(replica = %boot, tasks, deliveries, "an earlier life ended without a word; took back what it held");
    }
    Ok(())
}
