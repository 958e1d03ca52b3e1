//! Wakes who waits for the file to change.
//!
//! Owns the sources of hints: events of the folders the file is reached through, so that a renamed-over file, a
//! swapped `..data` link and a file that does not exist yet are noticed, and a slow timer for file systems without
//! events. A hint never decides: after it the stamp does. Where no events can be had, one warning and the timer remain.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::source::Followed;

/// Without events a change is seen after this long at most; each look costs a handful of system calls.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// An editor that writes piece by piece is left alone until it rests this long.
const REST: Duration = Duration::from_millis(100);

/// A file that never rests is looked at after this long all the same.
const REST_AT_MOST: Duration = Duration::from_secs(1);

/// Said once by each process: it may be started again for every change.
static TOLD_NO_EVENTS: AtomicBool = AtomicBool::new(false);

/// One wait for a change.
pub(super) struct Watch {
    followed: Arc<Followed>,
    events: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    folders: HashSet<PathBuf>,
}

impl Watch {
    pub(super) fn of(followed: Arc<Followed>) -> Self {
        let events = Arc::new(Notify::new());
        let wakes = events.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| may_change(event.kind)) {
                wakes.notify_one();
            }
        });
        if let Err(error) = &watcher
            && !TOLD_NO_EVENTS.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("no events of files can be had, so changes are looked for by a timer: {error}");
        }
        Self { followed, events, watcher: watcher.ok(), folders: HashSet::new() }
    }

    /// Resolves when the content differs from what was last loaded.
    pub(super) async fn changed(mut self) {
        loop {
            // Watched first, looked at second: a change in between is seen by one of the two.
            self.watch_folders();
            if self.look().await {
                return;
            }
            if timeout(LOOK_AGAIN, self.events.notified()).await.is_ok() {
                self.rest().await;
            }
        }
    }

    async fn look(&self) -> bool {
        let followed = self.followed.clone();
        tokio::task::spawn_blocking(move || followed.has_changed()).await.unwrap_or(false)
    }

    async fn rest(&self) {
        let deadline = Instant::now() + REST_AT_MOST;
        while Instant::now() < deadline && timeout(REST, self.events.notified()).await.is_ok() {}
    }

    /// Watches the folders of the file and of what it leads to. One that is gone is tried again at the next look.
    fn watch_folders(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        let folders = folders_of(&self.followed.place());
        for gone in self.folders.difference(&folders) {
            let _ = watcher.unwatch(gone);
        }
        self.folders =
            folders.into_iter().filter(|folder| watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()).collect();
    }
}

/// The folders of each link on the way to the file, and of the file.
fn folders_of(place: &Path) -> HashSet<PathBuf> {
    let target = std::fs::canonicalize(place).ok();
    [Some(place), target.as_deref()].into_iter().flatten().filter_map(Path::parent).map(Path::to_owned).collect()
}

/// Reading the file makes events too, which must not wake whoever reads it.
fn may_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}
