//! What callers hold of a session: the gate that admits calls, and what is known about it.
//!
//! The gate is a semaphore with one permit for each call that may be in flight. To retire a session is to take all
//! permits, which succeeds only while no call is in flight, or to close the semaphore, after which none is given out
//! again. So a session can never be evicted under a running call, and needs no message to admit one. Tasks that live in
//! the session are noted by calls in flight, so that none is noted between the look whether there is one and the end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use caribou_core::bounds::BRIEF_LIFE;
use caribou_core::config::{Secret, ServerConfig};
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, SessionKey};
use caribou_core::task::TaskId;
use caribou_ports::mcp::{CallError, Disconnect, OpenError, Session};
use ractor::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::Instant;

use super::home::Home;
use super::registry::RegistryMessage;
use super::tenants::Tenants;
use crate::config::{Binding, Generation};

/// How often a session that is watched counts as used: more often than any session falls idle.
const STAYS_USED: Duration = Duration::from_secs(10);

/// One session, from the moment its creation is decided until it is gone.
pub(crate) struct Handle {
    pub(crate) key: SessionKey,
    pub(crate) server: Arc<ServerConfig>,
    /// The configuration it was opened under.
    pub(crate) generation: Generation,
    /// The headers of a caller that it was opened with; they name whom it acts for.
    pub(crate) headers: Option<Arc<[(String, Secret)]>>,
    /// Where it lives.
    pub(crate) home: Home,
    pub(crate) opened_at: Instant,
    /// Set once, when the session goes live.
    live: OnceLock<Arc<dyn Session>>,
    live_since: OnceLock<Instant>,
    /// Whether it has answered anything.
    answered: AtomicBool,
    /// Whether it ended by itself, soon and before any answer.
    never_worked: AtomicBool,
    gate: Arc<Semaphore>,
    max_calls: u32,
    /// Tasks that end with it.
    tenants: Tenants,
    epoch: AtomicU64,
    /// Whether it is on record that this replica holds it.
    is_held: AtomicBool,
    /// Whether it takes no further call: it is closed when those in flight have ended.
    is_leaving: AtomicBool,
    /// Whether the thread was told this epoch.
    told: AtomicBool,
    /// Milliseconds from `opened_at` to the end of the last call.
    last_used_ms: AtomicU64,
    registry: ActorRef<RegistryMessage>,
    /// Whether somebody waits for a session to fall idle.
    wanted: Arc<AtomicBool>,
}

/// Why a call was not admitted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// Still being opened.
    Opening,
    /// As many calls in flight as may be.
    Busy,
    /// Retired: another session takes its place.
    Retired,
}

impl Handle {
    pub(super) fn new(
        key: SessionKey,
        binding: Binding,
        epoch: Epoch,
        max_calls: usize,
        registry: ActorRef<RegistryMessage>,
        wanted: Arc<AtomicBool>,
    ) -> Arc<Self> {
        let max_calls = u32::try_from(max_calls.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX).max(1);
        Arc::new(Self {
            key,
            server: binding.server,
            generation: binding.generation,
            headers: binding.headers,
            home: binding.home,
            opened_at: Instant::now(),
            live: OnceLock::new(),
            live_since: OnceLock::new(),
            answered: AtomicBool::new(false),
            never_worked: AtomicBool::new(false),
            gate: Arc::new(Semaphore::new(max_calls as usize)),
            max_calls,
            tenants: Tenants::default(),
            epoch: AtomicU64::new(epoch.0),
            is_held: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            told: AtomicBool::new(false),
            last_used_ms: AtomicU64::new(0),
            registry,
            wanted,
        })
    }

    /// Admits one call, or says why not. Never waits.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admitted, NotAdmitted> {
        let Some(session) = self.live.get() else { return Err(NotAdmitted::Opening) };
        if self.is_leaving() {
            return Err(NotAdmitted::Retired);
        }
        match self.gate.clone().try_acquire_owned() {
            Ok(permit) => Ok(Admitted { handle: self.clone(), session: session.clone(), permit: Some(permit) }),
            Err(TryAcquireError::NoPermits) => Err(NotAdmitted::Busy),
            Err(TryAcquireError::Closed) => Err(NotAdmitted::Retired),
        }
    }

    /// Makes the session live and admits those who waited for it, as many as may be in flight, before anybody else
    /// can retire it.
    pub(super) fn go_live(self: &Arc<Self>, session: Arc<dyn Session>, waiting: usize) -> Vec<Admitted> {
        self.touch();
        let _ = self.live_since.set(Instant::now());
        let admitted = (0..waiting)
            .map_while(|_| self.gate.clone().try_acquire_owned().ok())
            .map(|permit| Admitted { handle: self.clone(), session: session.clone(), permit: Some(permit) })
            .collect();
        // Set last: until now `retire_if_idle` saw a session still opening.
        let _ = self.live.set(session);
        admitted
    }

    /// The session, once it is live.
    pub(crate) fn session(&self) -> Option<&Arc<dyn Session>> {
        self.live.get()
    }

    /// Retires the session if it is live, no call is in flight and no task lives in it. Whether it did.
    pub(super) fn retire_if_idle(&self) -> bool {
        // Looked at before too: taking all permits in vain would refuse whoever calls at this moment.
        if self.live.get().is_none() || self.is_needed() {
            return false;
        }
        match self.gate.try_acquire_many(self.max_calls) {
            Ok(_) if self.is_needed() => false,
            Ok(all) => {
                self.gate.close();
                drop(all);
                true
            }
            Err(_) => false,
        }
    }

    /// Whether something lives in it though no call is in flight: an unfinished task, or a call that waits for whoever
    /// made it.
    fn is_needed(&self) -> bool {
        !self.tenants.are_none() || self.live.get().is_some_and(|session| session.is_waited_for())
    }

    /// Lets no further call in: retired as soon as those in flight have ended. A session that is needed stays as it is.
    pub(super) fn leave(&self) {
        if !self.is_needed() {
            self.is_leaving.store(true, Ordering::Release);
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    /// Retires the session, whatever is in flight: it failed, or is to be closed.
    pub(super) fn retire(&self) {
        self.gate.close();
    }

    /// Has the session closed, whatever is in flight, without waiting for its end. Nobody enters it any more.
    pub(crate) fn close(self: &Arc<Self>) {
        self.retire();
        let _ = self.registry.cast(RegistryMessage::Lost(self.clone()));
    }

    /// Takes note of how a request came out. If it saw this very session fail, the session is retired and closed, and
    /// no other is (invariant S4).
    pub(crate) fn asked<T>(self: &Arc<Self>, outcome: &Result<T, CallError>) {
        match outcome {
            Ok(_)
            | Err(
                CallError::Rpc { .. } | CallError::Malformed(_) | CallError::Unreadable(_) | CallError::TooLarge { .. },
            ) => {
                if !self.answered.load(Ordering::Relaxed) && !self.answered.swap(true, Ordering::Relaxed) {
                    let _ = self.registry.cast(RegistryMessage::Answered(self.key.clone()));
                }
            }
            Err(CallError::Disconnected { disconnect, .. }) => {
                self.fell(disconnect);
                let _ = self.registry.cast(RegistryMessage::Lost(self.clone()));
            }
            Err(_) => {}
        }
    }

    /// The session ended by itself, unless it was retired before: it is now.
    pub(super) fn fell(&self, disconnect: &Disconnect) {
        let is_brief = self.live_since.get().is_some_and(|since| since.elapsed() < BRIEF_LIFE);
        // What becomes of a session elsewhere says nothing about its server.
        let is_blamed = !self.home.is_there() && !self.is_retired();
        let never_worked = is_brief && is_blamed && !self.answered.load(Ordering::Relaxed);
        // Several calls may see the same end, which counts once.
        if never_worked && !self.never_worked.swap(true, Ordering::AcqRel) {
            let failure = OpenError::Exited(disconnect.clone());
            let (key, generation) = (self.key.clone(), self.generation);
            let _ = self.registry.cast(RegistryMessage::NeverWorked { key, generation, failure });
        }
        self.retire();
    }

    /// Whether it went live and still never worked: that is a failed start.
    pub(super) fn never_worked(&self) -> bool {
        self.never_worked.load(Ordering::Acquire)
    }

    /// Keeps the session until `task` has ended, at most for so long. Only with a call of it in flight, or for one that
    /// it is kept for already.
    pub(crate) fn keep_for(&self, task: TaskId, span: Duration) {
        self.tenants.note(task, span);
    }

    /// `task` has ended, or does not live in this session.
    pub(crate) fn let_go_of(&self, task: TaskId) {
        if self.tenants.strike(&task) && self.wanted.load(Ordering::Acquire) {
            let _ = self.registry.cast(RegistryMessage::FellIdle);
        }
    }

    pub(super) fn is_retired(&self) -> bool {
        self.gate.is_closed()
    }

    /// Whether the session is live, not retired, and has neither a call in flight or waiting nor an unfinished task.
    pub(super) fn is_idle(&self) -> bool {
        self.live.get().is_some() && !self.gate.is_closed() && self.in_flight() == 0 && !self.is_needed()
    }

    /// Calls in flight.
    pub(crate) fn in_flight(&self) -> usize {
        (self.max_calls as usize).saturating_sub(self.gate.available_permits())
    }

    /// For how long nobody has called.
    pub(crate) fn idle_for(&self) -> Duration {
        let age = self.opened_at.elapsed();
        age.saturating_sub(Duration::from_millis(self.last_used_ms.load(Ordering::Relaxed)))
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// The epoch that the store gave out for it. `is_held` = to this replica.
    pub(super) fn at(&self, epoch: Epoch, is_held: bool) {
        self.epoch.store(epoch.0, Ordering::Release);
        self.is_held.store(is_held, Ordering::Release);
    }

    /// This replica holds it at this epoch; `None` = such sessions are not on record.
    pub(super) fn hold(&self, taken: Option<Epoch>) {
        if let Some(epoch) = taken {
            self.at(epoch, true);
        }
    }

    /// Whether it is on record that this replica holds it: then it may be used only while the replica is trusted
    /// (invariant L1).
    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// The life of the replica that it lives in.
    pub(crate) fn owner<'a>(&'a self, ours: &'a BootId) -> &'a BootId {
        match &self.home {
            Home::Here => ours,
            Home::There { peer, .. } => &peer.boot,
        }
    }

    /// The server forgot the session and it was opened anew in place: a later epoch, which nobody was told of.
    pub(crate) fn reopened(&self, epoch: Epoch) {
        self.epoch.fetch_max(epoch.0, Ordering::AcqRel);
        self.told.store(false, Ordering::Release);
    }

    /// Whether this is the first answer at this epoch; says so once.
    pub(crate) fn first_answer(&self) -> bool {
        !self.told.load(Ordering::Acquire) && !self.told.swap(true, Ordering::AcqRel)
    }

    /// Counts as used for as long as this is waited for.
    pub(crate) async fn stays_used(&self) -> std::convert::Infallible {
        loop {
            self.touch();
            tokio::time::sleep(STAYS_USED).await;
        }
    }

    fn touch(&self) {
        let age = u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used_ms.fetch_max(age, Ordering::Relaxed);
    }
}

/// One admitted call: while it lives, its session is not evicted.
pub(crate) struct Admitted {
    pub(crate) handle: Arc<Handle>,
    pub(crate) session: Arc<dyn Session>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.handle.touch();
        drop(self.permit.take());
        if self.handle.wanted.load(Ordering::Acquire) {
            // The registry is gone only when the whole replica stops.
            let _ = self.handle.registry.cast(RegistryMessage::FellIdle);
        }
    }
}

/// Who waits for a session: gets an admitted call or the reason there is none.
pub(crate) type Waiter = tokio::sync::oneshot::Sender<Result<Admitted, NotOpened>>;

/// Why there is no session.
#[derive(Clone, Debug)]
pub(crate) enum NotOpened {
    /// The bring-up failed.
    Failed(OpenError),
    /// The server failed to start several times in a row and is left alone for a while.
    BackingOff { last: OpenError, retry_after: Duration },
    /// More callers waited than may be in flight.
    Busy,
    /// Too many wait for room.
    NoRoom { limit: usize },
    /// The configuration this caller goes by is no longer in force.
    Superseded,
    /// It lives elsewhere than was believed: look it up again.
    Moved,
    /// The replica that it lives in could not open it.
    There { code: Code, detail: String, retry_after: Option<Duration> },
    /// This replica may not hold it now.
    Untrusted(String),
    /// It was not opened in this time.
    TooLate(Duration),
    /// Whatever is opened ends at once.
    KeepsEnding,
    /// The replica stops.
    Stopping,
}
