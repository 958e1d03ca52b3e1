//! Proof that no earlier process still serves an embedded database.
//!
//! Every process that serves one shares a lock beside it for as long as it lives, and no longer. Whoever gets the lock for
//! itself alone knows that all earlier ones are gone, and takes over what they held at once instead of when their leases
//! end (durability.md 2.2, guard c). That comes before its own life is on record, so that nobody takes it for an earlier
//! one while the lock changes hands. Beside a process that lives everything goes by leases.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use caribou_core::bounds;
use caribou_ports::store::{Notifications as _, Replicas as _, StoreError, Tasks as _};
use caribou_store::{Location, SqlStore};
use tokio::time::{Instant, sleep};

/// How long the lock may take to be shared: somebody else has it alone only while taking over.
const SHARED: Duration = Duration::from_secs(10);

/// Before the lock is asked for again.
const AGAIN: Duration = Duration::from_millis(20);

/// Takes over what earlier lives left in a database of this machine; before our own life begins. The lock, to be held to
/// the end; `None` = it is no such database.
///
/// # Errors
/// The file beside the database cannot be made or locked, or the store cannot be asked.
pub(crate) async fn take_over(store: &SqlStore, database: &Location) -> anyhow::Result<Option<File>> {
    let Location::Sqlite(path) = database else { return Ok(None) };
    let beside = path.with_extension("lock");
    let locking = || format!("locking {}", beside.display());
    let lock = open(&beside).with_context(locking)?;
    if is_alone(&lock).with_context(locking)? {
        succeed(store).await?;
    } else {
        tracing::warn!(database = %path.display(), "another process serves this database too");
    }
    share(&lock).await.with_context(locking)?;
    Ok(Some(lock))
}

fn open(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}

/// Whether nobody else has it; then it is ours alone.
fn is_alone(lock: &File) -> std::io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

async fn share(lock: &File) -> std::io::Result<()> {
    let until = Instant::now() + SHARED;
    loop {
        match lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(AGAIN).await,
            shared => return Ok(shared?),
        }
    }
}

/// Puts the end of every life on record, and makes due at once what they held.
async fn succeed(store: &SqlStore) -> Result<(), StoreError> {
    for life in store.list().await? {
        let boot = life.replica.boot;
        store.end(boot.clone()).await?;
        let tasks = store.take_back(boot.clone(), bounds::LONGEST_CLAIM).await?;
        let deliveries = store.take_back_deliveries(boot.clone(), bounds::LONGEST_CLAIM).await?;
        tracing::info!(replica = %boot, tasks, deliveries, "an earlier life ended without a word; took back what it held");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_has_the_lock_alone_is_the_only_one_whatever_came_and_went_before() {
        let folder = tempfile::tempdir().unwrap();
        let opened = || open(&folder.path().join("caribou.lock")).unwrap();
        let (first, second, third) = (opened(), opened(), opened());
        assert!(is_alone(&first).unwrap());
        share(&first).await.unwrap();
        assert!(!is_alone(&second).unwrap());
        share(&second).await.unwrap();
        drop(first);
        assert!(!is_alone(&third).unwrap(), "the second one lives");
        drop(second);
        assert!(is_alone(&third).unwrap());
    }
}
