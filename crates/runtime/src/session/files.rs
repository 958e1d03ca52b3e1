//! Children work where the files of their thread are (contract 4.6): with a volume of its own for each replica, a thread
//! that has files gets its children there or nowhere.
//!
//! Remote servers have no files of ours. A thread that has none, or none any more, is bound to no volume.

use std::sync::Arc;

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_core::ids::{Scope, SessionKey, VolumeId};
use caribou_ports::store::ThreadVolume;
use caribou_ports::workspace::ThreadFolders;
use tokio::time::timeout;

use super::home::{Homes, NotHeld, Shared, away};
use crate::error::VerbError;
use crate::outside::Outside;

/// The files that this replica has.
pub(super) struct Files {
    volume: VolumeId,
    folders: Arc<dyn ThreadFolders>,
}

impl Files {
    /// `None` = all replicas share the files of threads, or there are none.
    pub(super) fn of(outside: &Outside) -> Option<Self> {
        let volume = outside.cluster.as_ref()?.volume.clone()?;
        Some(Self { volume, folders: outside.folders.clone()? })
    }

    /// Whether they are these.
    pub(super) fn are_at(&self, found: &ThreadVolume) -> bool {
        found.volume == self.volume
    }
}

impl Shared {
    /// Where the files of a thread are, as far as that matters.
    pub(super) async fn files_of(&self, scope: &Scope) -> Result<Option<ThreadVolume>, VerbError> {
        match timeout(bounds::STORE_REQUEST, self.store.thread_volume(scope.clone())).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(away(&error.to_string())),
            Err(_) => Err(away("it does not answer")),
        }
    }
}

impl Homes {
    /// Notes that a thread has files here, before its child is started.
    pub(super) async fn keep_files(&self, key: &SessionKey) -> Result<(), NotHeld> {
        let Some((shared, files)) = self.files().filter(|_| self.are_shared(key)) else { return Ok(()) };
        let kept = shared.store.keep_thread_volume(key.scope.clone(), files.volume.clone());
        match timeout(bounds::STORE_REQUEST, kept).await {
            Ok(Ok(volume)) if volume == files.volume => Ok(()),
            Ok(Ok(_)) => Err(NotHeld::Moved),
            Ok(Err(error)) => Err(NotHeld::Refused(away(&error.to_string()).detail)),
            Err(_) => Err(NotHeld::Refused(away("it does not answer").detail)),
        }
    }

    /// No child of the thread is left here: if it has no files either, its children may be started anywhere.
    pub(super) fn left_files(&self, scope: &Scope) {
        if self.files().is_none() || scope.is_catalog() {
            return;
        }
        let (homes, scope) = (self.clone(), scope.clone());
        tokio::spawn(async move {
            let Some((shared, files)) = homes.files() else { return };
            let looked = timeout(bounds::FILES_LOOK, files.folders.snapshot(&scope)).await;
            if !looked.is_ok_and(|seen| seen.files.is_some_and(|files| files.is_empty())) {
                return;
            }
            let forget = shared.store.forget_thread_volume(scope, files.volume.clone());
            // A row that stays binds the thread longer than it must, and no more.
            let _ = timeout(bounds::STORE_REQUEST, forget).await;
        });
    }
}

/// The files of a thread are where nobody is.
pub(super) fn unreachable(scope: &Scope) -> VerbError {
    let detail = format!(
        "the files of thread `{}` are on a volume of which no replica is up: start that replica again, or share one \
         volume between all replicas (`threads.shared`)",
        scope.thread
    );
    VerbError::new(Code::Unavailable, detail)
}
