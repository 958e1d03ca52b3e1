//! Lives of replicas, on record.

use std::sync::PoisonError;
use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_core::session::{GAP, Life as Standing};
use caribou_core::task::SnapshotFingerprint;
use caribou_ports::BoxFuture;
use caribou_ports::store::{FORGET_BATCH, Renewal, Renewed, Replica, Replicas, StoreError, StoredReplica};
use tokio::time::Instant;

use super::Memory;

/// One life.
#[derive(Debug)]
pub(super) struct Life {
    replica: Replica,
    began: Instant,
    ended: Option<Instant>,
    renewals: i64,
    lease_until: Instant,
    configurations: Vec<SnapshotFingerprint>,
    is_draining: bool,
    load: f32,
}

impl Life {
    /// Ends it if it has not ended. Nothing is left of it, so the gap counts as over.
    fn end(&mut self) -> bool {
        let now = Instant::now();
        let is_up = self.ended.is_none();
        self.ended.get_or_insert(now.checked_sub(GAP).unwrap_or(now));
        is_up
    }
}

impl Memory {
    /// Whether this life is known to have ended.
    pub(super) fn is_dead(&self, boot: &BootId) -> bool {
        let lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        lives.iter().any(|life| life.replica.boot == *boot && life.ended.is_some())
    }

    /// How this life is; `None` = it is not on record.
    pub(super) fn standing(&self, boot: &BootId) -> Option<Standing> {
        let lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let life = lives.iter().find(|life| life.replica.boot == *boot)?;
        Some(match life.ended {
            Some(ended) => Standing::Ended(ended.elapsed()),
            None if life.is_draining => Standing::Draining,
            None => Standing::Up,
        })
    }

    /// The lives that have not ended.
    pub(super) fn living(&self) -> Vec<BootId> {
        let lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        lives.iter().filter(|life| life.ended.is_none()).map(|life| life.replica.boot.clone()).collect()
    }
}

impl Replicas for Memory {
    fn begin(&self, replica: Replica) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        if lives.iter().all(|life| life.replica.boot != replica.boot) {
            let now = Instant::now();
            let (began, lease_until, ended) = (now, now, None);
            let (configurations, is_draining, load) = (Vec::new(), false, 0.0);
            lives.push(Life { replica, began, ended, renewals: 0, lease_until, configurations, is_draining, load });
        }
        Box::pin(async { Ok(()) })
    }

    fn renew_lease(&self, renewal: Renewal) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let life = lives.iter_mut().find(|life| life.replica.boot == renewal.boot && life.ended.is_none());
        let renewed = life.map_or(Renewed::Dead, |life| {
            life.renewals += 1;
            life.lease_until = Instant::now() + renewal.lease;
            life.configurations = renewal.configurations;
            life.load = renewal.load;
            Renewed::Renewed { renewals: life.renewals }
        });
        Box::pin(async move { Ok(renewed) })
    }

    fn declare_dead(&self, boot: BootId, seen_renewals: i64) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let life = lives.iter_mut().find(|life| {
            let is_over = life.renewals == seen_renewals && life.lease_until < Instant::now();
            life.replica.boot == boot && life.ended.is_none() && is_over
        });
        let is_declared = life.map(|life| life.ended = Some(Instant::now())).is_some();
        Box::pin(async move { Ok(is_declared) })
    }

    fn declare_gone(&self, boot: BootId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let is_declared = lives.iter_mut().find(|life| life.replica.boot == boot).is_some_and(Life::end);
        Box::pin(async move { Ok(is_declared) })
    }

    fn drain(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        for life in lives.iter_mut().filter(|life| life.replica.boot == boot) {
            life.is_draining = true;
        }
        Box::pin(async { Ok(()) })
    }

    fn end(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.declare_gone(boot).await.map(drop) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredReplica>, StoreError>> {
        let lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = |life: &Life| StoredReplica {
            replica: life.replica.clone(),
            age: life.began.elapsed(),
            renewals: life.renewals,
            lease_left: life.lease_until.checked_duration_since(Instant::now()).unwrap_or(Duration::ZERO),
            configurations: life.configurations.clone(),
            is_draining: life.is_draining,
            load: life.load,
        };
        let listed = lives.iter().rev().filter(|life| life.ended.is_none()).map(stored).collect();
        Box::pin(async { Ok(listed) })
    }

    fn forget_replicas(&self, age: Duration) -> BoxFuture<'_, Result<u64, StoreError>> {
        let mut lives = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let mut forgotten = 0;
        lives.retain(|life| {
            let is_old = life.ended.is_some_and(|ended| ended.elapsed() >= age);
            let goes = is_old && forgotten < u64::from(FORGET_BATCH);
            forgotten += u64::from(goes);
            !goes
        });
        Box::pin(async move { Ok(forgotten) })
    }
}
