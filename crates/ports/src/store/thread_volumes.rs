//! On which volume the files of a thread are, where replicas do not share one: a child that works with them must be
//! started where they are.

use caribou_core::ids::{BootId, Scope, VolumeId};

use super::StoreError;
use crate::BoxFuture;

/// Who has which files.
pub trait ThreadVolumes: Send + Sync + 'static {
    /// Records that this life has the files of this volume.
    fn mount(&self, boot: BootId, volume: VolumeId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Where the files of a thread are; `None` = it has none.
    fn thread_volume(&self, scope: Scope) -> BoxFuture<'_, Result<Option<ThreadVolume>, StoreError>>;

    /// Records that the files of a thread are on this volume, unless they are on another one. The one they are on.
    fn keep_thread_volume(&self, scope: Scope, volume: VolumeId) -> BoxFuture<'_, Result<VolumeId, StoreError>>;

    /// Forgets that a thread has files on this volume: it has none any more. Whether it had.
    fn forget_thread_volume(&self, scope: Scope, volume: VolumeId) -> BoxFuture<'_, Result<bool, StoreError>>;
}

/// Where the files of a thread are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadVolume {
    /// The volume.
    pub volume: VolumeId,
    /// The youngest life that has it and takes part; `None` = there is none.
    pub held_by: Option<BootId>,
}
