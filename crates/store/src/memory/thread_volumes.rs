//! On which volume the files of a thread are.

use std::collections::HashMap;
use std::sync::PoisonError;

use caribou_core::ids::{BootId, Scope, VolumeId};
use caribou_core::session::Life;
use caribou_ports::BoxFuture;
use caribou_ports::store::{StoreError, ThreadVolume, ThreadVolumes};

use super::Memory;

/// Of threads, and of lives in the order in which they told.
#[derive(Debug, Default)]
pub(super) struct Kept {
    threads: HashMap<Scope, VolumeId>,
    mounted: Vec<(BootId, VolumeId)>,
}

impl ThreadVolumes for Memory {
    fn mount(&self, boot: BootId, volume: VolumeId) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut kept = self.thread_volumes.lock().unwrap_or_else(PoisonError::into_inner);
        kept.mounted.retain(|(other, _)| *other != boot);
        kept.mounted.push((boot, volume));
        Box::pin(async { Ok(()) })
    }

    fn thread_volume(&self, scope: Scope) -> BoxFuture<'_, Result<Option<ThreadVolume>, StoreError>> {
        let kept = self.thread_volumes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.threads.get(&scope).map(|volume| {
            let of = |life| {
                let has = |(boot, has): &&(BootId, VolumeId)| has == volume && self.standing(boot) == Some(life);
                kept.mounted.iter().rev().find(has).map(|(boot, _)| boot.clone())
            };
            ThreadVolume { volume: volume.clone(), held_by: of(Life::Up).or_else(|| of(Life::Draining)) }
        });
        Box::pin(async { Ok(found) })
    }

    fn keep_thread_volume(&self, scope: Scope, volume: VolumeId) -> BoxFuture<'_, Result<VolumeId, StoreError>> {
        let mut kept = self.thread_volumes.lock().unwrap_or_else(PoisonError::into_inner);
        let on_record = kept.threads.entry(scope).or_insert(volume).clone();
        Box::pin(async { Ok(on_record) })
    }

    fn forget_thread_volume(&self, scope: Scope, volume: VolumeId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut kept = self.thread_volumes.lock().unwrap_or_else(PoisonError::into_inner);
        let had = kept.threads.get(&scope) == Some(&volume);
        if had {
            kept.threads.remove(&scope);
        }
        Box::pin(async move { Ok(had) })
    }
}
