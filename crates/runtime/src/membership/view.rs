//! What everybody but the keeper reads: whether this replica may act, and who else there is.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use caribou_core::holding::{LeaseProfile, LifeOver};
use caribou_core::ids::BootId;
use caribou_core::task::SnapshotFingerprint;
use caribou_ports::store::Replica;
use tokio::sync::watch;
use tokio::time::Instant;

use super::pulse::{Pulse, Pulses};

/// The standing of this life. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Membership(Arc<Standing>);

#[derive(Debug)]
struct Standing {
    profile: LeaseProfile,
    trusted_until: Mutex<Option<Instant>>,
    over: watch::Sender<Option<LifeOver>>,
    peers: RwLock<Arc<PeerView>>,
    pulses: Pulses,
}

/// Who is alive, as of the last look at the store.
#[derive(Clone, Debug, Default)]
pub struct PeerView {
    /// The lives that have not ended as far as anybody knows, this one too, the youngest first.
    pub peers: Vec<Peer>,
    /// When it was looked; `None` = not yet.
    pub looked: Option<Instant>,
}

/// One life of one replica, as this one sees it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Who.
    pub replica: Replica,
    /// Whether its lease holds by the store's clock.
    pub is_alive: bool,
    /// The renewals so far.
    pub renewals: i64,
    /// For how long this replica has seen no other number.
    pub still_for: Duration,
    /// The configurations of task servers it was started with.
    pub configurations: Vec<SnapshotFingerprint>,
}

impl PeerView {
    /// The lives whose lease holds.
    pub fn alive(&self) -> Vec<BootId> {
        self.peers.iter().filter(|peer| peer.is_alive).map(|peer| peer.replica.boot.clone()).collect()
    }

    /// Whether the lease of this life holds.
    pub fn is_alive(&self, boot: &BootId) -> bool {
        self.peers.iter().any(|peer| peer.is_alive && peer.replica.boot == *boot)
    }

    /// Whether this life has ended, as far as the last look at the store tells; never before the first one.
    pub fn has_ended(&self, boot: &BootId) -> bool {
        self.looked.is_some() && self.peers.iter().all(|peer| peer.replica.boot != *boot)
    }

    /// The configurations of task servers that a replica with `ours` leaves to others.
    pub fn left_to_others(&self, ours: &[SnapshotFingerprint]) -> Vec<SnapshotFingerprint> {
        let alive = self.peers.iter().filter(|peer| peer.is_alive);
        SnapshotFingerprint::left_to_others(ours, alive.flat_map(|peer| peer.configurations.iter().copied()))
    }
}

impl Membership {
    /// Not trusted yet.
    pub(crate) fn new(profile: LeaseProfile) -> Self {
        Self(Arc::new(Standing {
            profile,
            trusted_until: Mutex::default(),
            over: watch::Sender::new(None),
            peers: RwLock::default(),
            pulses: Pulses::default(),
        }))
    }

    pub(super) fn profile(&self) -> LeaseProfile {
        self.0.profile
    }

    /// Whether this replica may claim and settle at this moment.
    pub(crate) fn may_act(&self) -> bool {
        let until = *self.0.trusted_until.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.over.borrow().is_none() && until.is_some_and(|until| Instant::now() < until)
    }

    /// Who there is.
    pub(crate) fn peers(&self) -> Arc<PeerView> {
        self.0.peers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to watch a role: it must show a sign of life within half the trust, each time.
    pub(crate) fn watch(&self, role: &'static str) -> Pulse {
        self.0.pulses.watch(role)
    }

    /// Resolves when this life is over.
    pub(crate) async fn over(&self) -> LifeOver {
        let mut over = self.0.over.subscribe();
        loop {
            if let Some(why) = *over.borrow_and_update() {
                return why;
            }
            if over.changed().await.is_err() {
                // The sender is ours.
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn hanging(&self) -> Option<&'static str> {
        self.0.pulses.hanging(self.0.profile.pulse())
    }

    /// The renewal that was sent at `sent` was granted.
    pub(super) fn trust_from(&self, sent: Instant) {
        *self.0.trusted_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent + self.0.profile.trust());
    }

    /// For good.
    pub(super) fn end(&self, why: LifeOver) {
        self.0.over.send_replace(Some(why));
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.over.borrow().is_some()
    }

    pub(super) fn show(&self, peers: PeerView) {
        *self.0.peers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(peers);
    }
}
