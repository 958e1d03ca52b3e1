//! One writer of a file at a time: in this process and among all that share its folder (contract 1.11).
//!
//! Owns the order: first the lock of the process, then the advisory lock on the sidecar file `.<name>.lock` beside the
//! target. Both waits have one deadline (B1). The sidecar is never removed: another writer may just be opening it.
//! Who mounts the file alone, without its folder, shares no lock.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, timeout_at};

/// A write takes milliseconds; who waits this long waits for a writer that hangs.
const AT_MOST: Duration = Duration::from_secs(10);

/// How often a lock that another process holds is tried: advisory locks wake nobody who has a deadline.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// All writers of this process, whichever file they write.
static WRITERS: Mutex<()> = Mutex::const_new(());

/// The right to write. Given back when it is dropped.
pub(super) struct WriteLock {
    _process: MutexGuard<'static, ()>,
    sidecar: File,
}

/// Why there is no right to write.
pub(super) enum NoLock {
    /// The sidecar cannot be opened or locked.
    System(io::Error),
    /// Another writer holds it for too long.
    Held,
}

impl WriteLock {
    /// Waits for the right to write `target`.
    pub(super) async fn of(target: &Path) -> Result<Self, NoLock> {
        let deadline = Instant::now() + AT_MOST;
        let process = timeout_at(deadline, WRITERS.lock()).await.map_err(|_| NoLock::Held)?;
        let sidecar = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(beside(target, "lock"))
            .map_err(NoLock::System)?;
        loop {
            match sidecar.try_lock() {
                Ok(()) => return Ok(Self { _process: process, sidecar }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(TRY_AGAIN).await,
                Err(TryLockError::WouldBlock) => return Err(NoLock::Held),
                Err(TryLockError::Error(error)) => return Err(NoLock::System(error)),
            }
        }
    }
}

impl Drop for WriteLock {
    /// Unlocked by hand: a child that is being started holds a copy of the descriptor for a moment.
    fn drop(&mut self) {
        let _ = self.sidecar.unlock();
    }
}

/// The hidden file `.<name>.<suffix>` beside `target`.
pub(super) fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".");
    name.push(suffix);
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_held_elsewhere_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.json");
        let elsewhere = File::create(beside(&target, "lock")).unwrap();
        assert!(folder.path().join(".x.json.lock").exists());
        elsewhere.lock().unwrap();
        let waiting = tokio::spawn(async move { WriteLock::of(&target).await.is_ok() });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        elsewhere.unlock().unwrap();
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_at_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.json");
        let elsewhere = File::create(beside(&target, "lock")).unwrap();
        elsewhere.lock().unwrap();
        assert!(matches!(WriteLock::of(&target).await, Err(NoLock::Held)));
    }
}
