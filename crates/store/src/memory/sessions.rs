//! Who holds which session.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, SessionKey};
use caribou_core::session::{Life, Owner, Ownership, SessionRow};
use caribou_ports::BoxFuture;
use caribou_ports::store::{Resumption, Sessions, StoreError, StoredSession, TakeSession, Taken};
use tokio::time::Instant;

use super::Memory;

/// All rows.
pub(super) type Kept = HashMap<SessionRow, Row>;

/// One row.
#[derive(Debug)]
pub(super) struct Row {
    key: SessionKey,
    owner: Option<BootId>,
    epoch: Epoch,
    told: Epoch,
    taken: Instant,
    resumption: Option<Vec<u8>>,
}

impl Row {
    fn is_held(&self, owner: &BootId, epoch: Epoch) -> bool {
        self.owner.as_ref() == Some(owner) && self.epoch == epoch
    }
}

impl Memory {
    fn ownership(&self, row: &Row) -> Ownership {
        let owner = row.owner.clone().map(|boot| Owner { life: self.life(&boot), boot });
        Ownership { owner, epoch: row.epoch }
    }

    /// How a life is; one that is not on record ended long ago.
    fn life(&self, boot: &BootId) -> Life {
        self.standing(boot).unwrap_or(Life::Ended(Duration::MAX))
    }
}

impl Sessions for Memory {
    fn find_session(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Ownership>, StoreError>> {
        let rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = rows.get(&session).map(|row| self.ownership(row));
        Box::pin(async { Ok(found) })
    }

    fn take_session(&self, taking: TakeSession, gap: Duration) -> BoxFuture<'_, Result<Taken, StoreError>> {
        let mut rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = rows.get(&taking.session).map(|row| self.ownership(row));
        let epoch = before.as_ref().map_or(Epoch(0), |before| before.epoch);
        let may_act = self.life(&taking.owner) == Life::Up;
        let is_free = before.as_ref().and_then(|before| before.owner.as_ref()).is_none_or(|owner| {
            let is_over = matches!(owner.life, Life::Ended(since) if since >= gap);
            owner.boot == taking.owner || is_over
        });
        let taken = if may_act && is_free {
            let told = rows.get(&taking.session).map_or(Epoch(0), |row| row.told);
            let (key, owner, epoch) = (taking.key, Some(taking.owner), epoch.next());
            rows.insert(taking.session, Row { key, owner, epoch, told, taken: Instant::now(), resumption: None });
            Taken::Taken(epoch)
        } else {
            Taken::Held(before.unwrap_or(Ownership { owner: None, epoch }))
        };
        Box::pin(async { Ok(taken) })
    }

    fn free_session(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let held = rows.get_mut(&session).filter(|row| row.is_held(&owner, epoch));
        let is_freed = held.map(|row| (row.owner, row.resumption) = (None, None)).is_some();
        Box::pin(async move { Ok(is_freed) })
    }

    fn leave_session(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let held = rows.get_mut(&session).filter(|row| row.is_held(&owner, epoch));
        let is_left = held.map(|row| row.owner = None).is_some();
        Box::pin(async move { Ok(is_left) })
    }

    fn keep_resumption(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
        sealed: Vec<u8>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let held = rows.get_mut(&session).filter(|row| row.is_held(&owner, epoch));
        let is_kept = held.map(|row| row.resumption = Some(sealed)).is_some();
        Box::pin(async move { Ok(is_kept) })
    }

    fn find_resumption(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Resumption>, StoreError>> {
        let rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let kept =
            rows.get(&session).and_then(|row| Some(Resumption { epoch: row.epoch, sealed: row.resumption.clone()? }));
        Box::pin(async { Ok(kept) })
    }

    fn told_epoch(&self, session: SessionRow, epoch: Epoch) -> BoxFuture<'_, Result<Option<Epoch>, StoreError>> {
        let mut rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = rows.get_mut(&session).map(|row| {
            let told = row.told.max(epoch);
            std::mem::replace(&mut row.told, told)
        });
        Box::pin(async move { Ok(before.filter(|before| before.0 > 0)) })
    }

    fn list_sessions(
        &self,
        owner: Option<BootId>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>> {
        let rows = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held: Vec<&Row> = rows.values().filter(|row| row.owner.is_some()).collect();
        held.retain(|row| owner.is_none() || row.owner == owner);
        held.sort_by_key(|row| std::cmp::Reverse(row.taken));
        let stored = |row: &&Row| {
            let key = SessionKey { credential: None, ..row.key.clone() };
            Some(StoredSession { key, owner: row.owner.clone()?, epoch: row.epoch, age: row.taken.elapsed() })
        };
        let listed = held.iter().filter_map(stored).take(limit as usize).collect();
        Box::pin(async { Ok(listed) })
    }
}
