//! The revisions of the configuration.

use std::sync::{Arc, PoisonError};
use std::time::UNIX_EPOCH;

use caribou_core::reset::{MAX_REVISIONS, ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::store::{ConfigRevisions, Revise, Revised, Revising, RevisionHead, StoreError, StoredRevision};

use super::Memory;

/// All that are kept, in the order of their numbers.
pub(super) type Kept = Vec<(StoredRevision, RevisionHead)>;

impl ConfigRevisions for Memory {
    fn last_revision(&self) -> BoxFuture<'_, Result<Option<(StoredRevision, ResetGeneration)>, StoreError>> {
        let revisions = self.config_revisions.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.generations.lock().unwrap_or_else(PoisonError::into_inner).of(&ResetScope::Document);
        let last = revisions.last().map(|(revision, _)| revision.clone()).zip(generation);
        Box::pin(async { Ok(last) })
    }

    fn find_revision(&self, number: i64) -> BoxFuture<'_, Result<Option<StoredRevision>, StoreError>> {
        let revisions = self.config_revisions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = revisions.iter().find(|(revision, _)| revision.number == number);
        let found = found.map(|(revision, _)| revision.clone());
        Box::pin(async { Ok(found) })
    }

    fn write_revision(&self, author: Arc<str>, revise: Revise) -> BoxFuture<'_, Result<Revised, StoreError>> {
        Box::pin(async move {
            let mut revisions = self.config_revisions.lock().unwrap_or_else(PoisonError::into_inner);
            let last = revisions.last().map(|(revision, _)| revision);
            let next = match revise(last) {
                Revising::Write(next) => next,
                Revising::Keep => return Ok(Revised::Kept),
                Revising::Refuse(why) => return Ok(Revised::Refused(why)),
            };
            let number = last.map_or(1, |last| last.number + 1);
            let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
            let scopes = [ResetScope::Document].into_iter().chain(next.scopes);
            let moved = scopes.map(|scope| (scope.clone(), generations.bump(scope))).collect();
            let at_ms = UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
            let (at_ms, bytes) =
                (i64::try_from(at_ms).unwrap_or(0), i64::try_from(next.text.len()).unwrap_or(i64::MAX));
            let head = RevisionHead { number, author, at_ms, bytes };
            revisions.push((StoredRevision { number, text: next.text }, head));
            if revisions.len() > MAX_REVISIONS as usize {
                revisions.remove(0);
            }
            Ok(Revised::Written(number, moved))
        })
    }

    fn list_revisions(&self, before: Option<i64>, limit: u32) -> BoxFuture<'_, Result<Vec<RevisionHead>, StoreError>> {
        let revisions = self.config_revisions.lock().unwrap_or_else(PoisonError::into_inner);
        let heads = revisions.iter().rev().map(|(_, head)| head);
        let heads = heads.filter(|head| before.is_none_or(|before| head.number < before)).cloned();
        let listed = heads.take(limit as usize).collect();
        Box::pin(async { Ok(listed) })
    }
}
