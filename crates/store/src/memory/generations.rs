//! The generations that everything is opened under.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use caribou_core::ids::BootId;
use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::store::{Generations, Replicas as _, StoreError};
use uuid::Uuid;

use super::Memory;

/// The generations, and who goes by which.
#[derive(Debug, Default)]
pub(super) struct Kept {
    generations: BTreeMap<ResetScope, ResetGeneration>,
    confirmed: HashMap<(BootId, ResetScope), ResetGeneration>,
}

impl Kept {
    /// The next generation of `scope`.
    pub(super) fn bump(&mut self, scope: ResetScope) -> ResetGeneration {
        let begun = || ResetGeneration { origin: Uuid::new_v4().into_bytes(), counter: 0 };
        let generation = self.generations.entry(scope).or_insert_with(begun);
        generation.counter += 1;
        *generation
    }

    /// How `scope` stands.
    pub(super) fn of(&self, scope: &ResetScope) -> Option<ResetGeneration> {
        self.generations.get(scope).copied()
    }
}

impl Generations for Memory {
    fn bump(&self, scope: ResetScope) -> BoxFuture<'_, Result<ResetGeneration, StoreError>> {
        let next = self.generations.lock().unwrap_or_else(PoisonError::into_inner).bump(scope);
        Box::pin(async move { Ok(next) })
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<(ResetScope, ResetGeneration)>, StoreError>> {
        let kept = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let all = kept.generations.iter().map(|(scope, generation)| (scope.clone(), *generation)).collect();
        Box::pin(async { Ok(all) })
    }

    fn confirm(
        &self,
        boot: BootId,
        scope: ResetScope,
        generation: ResetGeneration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut kept = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = kept.confirmed.entry((boot, scope)).or_insert(generation);
        if !noted.includes(generation) {
            *noted = generation;
        }
        Box::pin(async { Ok(()) })
    }

    fn confirmed(
        &self,
        scope: ResetScope,
    ) -> BoxFuture<'_, Result<Vec<(BootId, Option<ResetGeneration>)>, StoreError>> {
        Box::pin(async move {
            let lives = self.list().await?;
            let kept = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
            let alive = lives.into_iter().filter(|life| !life.lease_left.is_zero()).map(|life| life.replica.boot);
            let noted = alive.map(|boot| {
                let generation = kept.confirmed.get(&(boot.clone(), scope.clone())).copied();
                (boot, generation)
            });
            Ok(noted.collect())
        })
    }
}
