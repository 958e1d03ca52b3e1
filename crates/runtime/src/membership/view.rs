//! What everybody but the keeper reads: whether this replica may act, and who else there is.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use caribou_core::holding::{LeaseProfile, LifeOver};
use caribou_core::ids::BootId;
use caribou_core::task::SnapshotFingerprint;
use caribou_ports::machine::Machine;
use caribou_ports::store::Replica;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::pulse::{Pulse, Pulses};
use super::trust::{Moment, Trust};

/// The standing of this life. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Membership(Arc<Standing>);

#[derive(Debug)]
struct Standing {
    profile: LeaseProfile,
    trust: Trust,
    over: watch::Sender<Option<LifeOver>>,
    peers: RwLock<Arc<PeerView>>,
    pulses: Pulses,
    draining: AtomicBool,
    /// Told when the others are to be looked at before their time.
    changed: Notify,
    /// The bits of a number from 0 to 1.
    load: AtomicU32,
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
    /// Whether it hands over what it has, and takes nothing new.
    pub is_draining: bool,
    /// The part of its sessions that is in use, 0 to 1.
    pub load: f32,
    /// How long before that look it began, by the store's clock.
    pub age: Duration,
}

impl Peer {
    /// Whether it takes something new.
    pub fn takes_part(&self) -> bool {
        self.is_alive && !self.is_draining
    }
}

impl PeerView {
    /// The lives whose lease holds.
    pub fn alive(&self) -> Vec<BootId> {
        self.peers.iter().filter(|peer| peer.is_alive).map(|peer| peer.replica.boot.clone()).collect()
    }

    /// The lives that claim work. What a draining one would have claimed is for the others.
    pub fn claiming(&self) -> Vec<BootId> {
        self.peers.iter().filter(|peer| peer.takes_part()).map(|peer| peer.replica.boot.clone()).collect()
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
        let claiming = self.peers.iter().filter(|peer| peer.takes_part());
        SnapshotFingerprint::left_to_others(ours, claiming.flat_map(|peer| peer.configurations.iter().copied()))
    }
}

impl Membership {
    /// Not trusted yet, and all of this life ends with its process.
    #[cfg(test)]
    pub(crate) fn new(profile: LeaseProfile) -> Self {
        Self::on(profile, None)
    }

    /// Not trusted yet, on this machine.
    pub(crate) fn on(profile: LeaseProfile, machine: Option<Arc<dyn Machine>>) -> Self {
        Self(Arc::new(Standing {
            profile,
            trust: Trust::none_yet(machine),
            over: watch::Sender::new(None),
            peers: RwLock::default(),
            pulses: Pulses::default(),
            draining: AtomicBool::new(false),
            changed: Notify::new(),
            load: AtomicU32::new(0),
        }))
    }

    pub(super) fn profile(&self) -> LeaseProfile {
        self.0.profile
    }

    pub(super) fn machine(&self) -> Option<&Arc<dyn Machine>> {
        self.0.trust.machine()
    }

    /// Somebody says that other replicas are there now: they are looked at at once, or once more after the look that is
    /// under way.
    pub(crate) fn look_soon(&self) {
        self.0.changed.notify_one();
    }

    /// Resolves when the others are to be looked at before their time.
    pub(super) async fn wanted(&self) {
        self.0.changed.notified().await;
    }

    /// Whether this replica may settle at this moment, and go on with what it holds.
    pub(crate) fn may_act(&self) -> bool {
        !self.trust_left().is_zero()
    }

    /// Whether it may claim something new, too.
    pub(crate) fn may_claim(&self) -> bool {
        self.may_act() && !self.is_draining()
    }

    /// For how long this replica still trusts itself; zero = not at all.
    pub(crate) fn trust_left(&self) -> Duration {
        if self.is_over() { Duration::ZERO } else { self.0.trust.left() }
    }

    /// Resolves once this replica has been trusted.
    pub(super) async fn begun(&self) {
        self.0.trust.begun().await;
    }

    /// The part of its sessions that is in use, 0 to 1, told to the others with the next renewal.
    pub(crate) fn set_load(&self, load: f32) {
        self.0.load.store(load.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> f32 {
        f32::from_bits(self.0.load.load(Ordering::Relaxed))
    }

    /// Whether this replica hands over what it has, and takes nothing new.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Acquire)
    }

    /// From now on it does.
    pub(crate) fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
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

    /// Now, by the clocks that trust goes by.
    pub(super) fn now(&self) -> Moment {
        self.0.trust.now()
    }

    /// The renewal that was sent at `sent` was granted.
    pub(super) fn trust_from(&self, sent: Moment) {
        self.0.trust.grant(sent, self.0.profile.trust());
    }

    /// For good.
    pub(super) fn end(&self, why: LifeOver) {
        self.0.over.send_replace(Some(why));
        self.0.trust.end();
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.over.borrow().is_some()
    }

    pub(super) fn show(&self, peers: PeerView) {
        *self.0.peers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(peers);
    }
}
