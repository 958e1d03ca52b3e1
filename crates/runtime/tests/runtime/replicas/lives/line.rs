//! The store as one life of a replica reaches it: every request and every answer crosses its borders, and one of the
//! fences between two owners may be taken down on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, Scope, VolumeId};
use caribou_core::notification::{Delivery, Happened, Sink};
use caribou_core::session::{Life, Ownership, SessionRow};
use caribou_core::task::{Lane, Pin, TaskId, TaskLimits};
use caribou_ports::BoxFuture;
use caribou_ports::store::*;
use caribou_store::Memory;
use tokio::time::sleep;

use super::{Mutant, PROFILE};
use crate::borders::Borders;

/// What the store is to one life.
pub(super) struct Line {
    pub(super) store: Memory,
    pub(super) borders: Arc<Borders<Mutant>>,
    /// Nothing comes through: requests wait until it is mended.
    pub(super) cut: Arc<Borders<()>>,
    /// Whether the store's clock has jumped ahead: every lease looks over.
    pub(super) jumped: Arc<AtomicBool>,
}

impl Line {
    async fn asked<T>(&self, request: impl Future<Output = T>) -> T {
        self.cut.cross().await;
        self.borders.cross().await;
        let answer = request.await;
        self.cut.cross().await;
        self.borders.cross().await;
        answer
    }

    /// Takes a session on the strength of a look that is old by now.
    async fn taken_unlocked(&self, taking: TakeSession, gap: Duration) -> Result<Taken, StoreError> {
        let is_free = |held: &Ownership| match &held.owner {
            None => true,
            Some(owner) => matches!(owner.life, Life::Ended(since) if since >= gap),
        };
        let was_free = self.store.find_session(taking.session).await?.as_ref().is_none_or(is_free);
        sleep(Duration::from_millis(5)).await;
        if let (true, Some(Ownership { owner: Some(owner), epoch })) =
            (was_free, self.store.find_session(taking.session).await?)
        {
            self.store.free_session(taking.session, owner.boot, epoch).await?;
        }
        self.store.take_session(taking, gap).await
    }

    /// Takes a session whose owner's lease is over by the store's clock alone.
    async fn taken_on_time(&self, taking: TakeSession, gap: Duration) -> Result<Taken, StoreError> {
        let held = match self.store.take_session(taking.clone(), gap).await? {
            Taken::Held(Ownership { owner: Some(owner), .. }) => owner.boot,
            taken => return Ok(taken),
        };
        let is_over = |life: &StoredReplica| life.replica.boot == held && life.lease_left.is_zero();
        if self.listed().await?.iter().any(is_over) {
            self.store.declare_gone(held).await?;
        }
        self.store.take_session(taking, gap).await
    }

    async fn listed(&self) -> Result<Vec<StoredReplica>, StoreError> {
        let mut lives = self.store.list().await?;
        if self.jumped.load(Ordering::SeqCst) {
            lives.iter_mut().for_each(|life| life.lease_left = Duration::ZERO);
        }
        Ok(lives)
    }
}

/// Requests that are passed on as they are.
macro_rules! passed {
    ($port:ident: $($name:ident($($given:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl $port for Line {
            $(fn $name(&self, $($given: $type),*) -> BoxFuture<'_, Result<$answer, StoreError>> {
                Box::pin(self.asked(async move { self.store.$name($($given),*).await }))
            })*
        }
    };
}

passed! { Tasks:
    note_intent(intent: TaskIntent) -> Noted;
    withdraw(claim: TaskClaim) -> Settled;
    record(claim: TaskClaim, handle: Handle) -> Recorded;
    mark_unknown(claim: TaskClaim, change: Change) -> Settled;
    claim_due(wanted: ClaimTasks) -> Vec<ClaimedTask>;
    renew(claims: Vec<TaskClaim>, lease: Duration) -> Vec<TaskClaim>;
    move_pin(claim: TaskClaim, pin: Pin) -> Settled;
    release(claims: Vec<TaskClaim>, again: Duration) -> ();
    keep(unchanged: Vec<Unchanged>) -> Vec<TaskClaim>;
    apply(claim: TaskClaim, change: Change, again: Duration) -> Settled;
    put_off(claim: TaskClaim, failed: AttemptFailed) -> Settled;
    request_cancel(task: TaskId, of: Option<Scope>) -> CancelRequested;
    answer(task: TaskId, of: Option<Scope>, answer: NewAnswer) -> AnswerStored;
    waiting_answers(task: TaskId) -> Vec<NewAnswer>;
    answered(task: TaskId) -> Vec<String>;
    settle_answers(claim: TaskClaim, brought: Vec<BroughtAnswer>, again: Duration) -> Settled;
    read_task(task: TaskId, of: Option<Scope>) -> Option<StoredTask>;
    list_tasks(filter: TaskFilter, before: Option<PageKey>, limit: u32) -> Vec<StoredTask>;
    count_tasks(filter: TaskFilter) -> u64;
    next_due(lanes: Vec<Lane>) -> Option<Duration>;
    take_back(dead: BootId, within: Duration) -> u64;
    forget_tasks(age: Duration) -> u64;
}

passed! { Notifications:
    claim_deliveries(wanted: ClaimDeliveries) -> Vec<ClaimedDelivery>;
    reserve_launch(claim: DeliveryClaim, seq: i64) -> Reserved;
    settle_delivery(claim: DeliveryClaim, happened: Happened, limits: TaskLimits) -> Settled;
    release_deliveries(claims: Vec<DeliveryClaim>) -> ();
    deliveries(task: TaskId) -> Vec<(Sink, Delivery)>;
    dead_letters(after: Option<(TaskId, Sink)>, limit: u32) -> Vec<DeadLetter>;
    redeliver(task: TaskId, sink: Sink) -> Redelivered;
    events(task: TaskId, after: i64, limit: u32) -> Vec<StoredEvent>;
    next_delivery(sink: Sink) -> Option<Duration>;
    take_back_deliveries(dead: BootId, within: Duration) -> u64;
}

passed! { ThreadVolumes:
    mount(boot: BootId, volume: VolumeId) -> ();
    thread_volume(scope: Scope) -> Option<ThreadVolume>;
    keep_thread_volume(scope: Scope, volume: VolumeId) -> VolumeId;
    forget_thread_volume(scope: Scope, volume: VolumeId) -> bool;
}

impl Wakeups for Line {
    fn wake(&self, wake: Wake) -> BoxFuture<'_, ()> {
        self.store.wake(wake)
    }

    fn listen(&self) -> BoxFuture<'_, Result<Box<dyn Listening>, StoreError>> {
        self.store.listen()
    }
}

impl Replicas for Line {
    fn begin(&self, replica: Replica) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.asked(async move { self.store.begin(replica).await }))
    }

    fn renew_lease(&self, renewal: Renewal) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        // Whoever trusts itself for longer than it should still has the lease of all.
        let renewal = Renewal { lease: PROFILE.lease, ..renewal };
        Box::pin(self.asked(async move { self.store.renew_lease(renewal).await }))
    }

    fn declare_dead(&self, boot: BootId, seen_renewals: i64) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.declare_dead(boot, seen_renewals).await }))
    }

    fn declare_gone(&self, boot: BootId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.declare_gone(boot).await }))
    }

    fn drain(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.asked(async move { self.store.drain(boot).await }))
    }

    fn end(&self, boot: BootId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.asked(async move { self.store.end(boot).await }))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredReplica>, StoreError>> {
        Box::pin(self.asked(self.listed()))
    }

    fn forget_replicas(&self, age: Duration) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.asked(async move { self.store.forget_replicas(age).await }))
    }
}

impl Sessions for Line {
    fn find_session(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Ownership>, StoreError>> {
        Box::pin(self.asked(async move { self.store.find_session(session).await }))
    }

    fn take_session(&self, taking: TakeSession, gap: Duration) -> BoxFuture<'_, Result<Taken, StoreError>> {
        Box::pin(self.asked(async move {
            match self.borders.mutant {
                Some(Mutant::FenceWithoutLock) => self.taken_unlocked(taking, gap).await,
                Some(Mutant::StealOnTime) => self.taken_on_time(taking, gap).await,
                _ => self.store.take_session(taking, gap).await,
            }
        }))
    }

    fn free_session(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.free_session(session, owner, epoch).await }))
    }

    fn leave_session(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.leave_session(session, owner, epoch).await }))
    }

    fn keep_resumption(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
        sealed: Vec<u8>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.keep_resumption(session, owner, epoch, sealed).await }))
    }

    fn find_resumption(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Resumption>, StoreError>> {
        Box::pin(self.asked(async move { self.store.find_resumption(session).await }))
    }

    fn told_epoch(&self, session: SessionRow, epoch: Epoch) -> BoxFuture<'_, Result<Option<Epoch>, StoreError>> {
        Box::pin(self.asked(async move { self.store.told_epoch(session, epoch).await }))
    }

    fn list_sessions(
        &self,
        owner: Option<BootId>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>> {
        Box::pin(self.asked(async move { self.store.list_sessions(owner, limit).await }))
    }
}
