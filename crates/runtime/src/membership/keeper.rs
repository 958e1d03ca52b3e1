//! Renews the lease, watches the other lives, and buries those that are gone.
//!
//! Renewing and looking are two chains, each of one request after the other; a request that hangs delays only its own
//! chain, and only for as long as it may take.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::holding::{LifeOver, Sighting, renewed};
use caribou_core::ids::BootId;
use caribou_core::task::SnapshotFingerprint;
use caribou_ports::machine::Machine;
use caribou_ports::peers::{Nudge, PeerAddress, Peers};
use caribou_ports::store::{Renewal, Renewed, Replica, StoreError, StoredReplica, TaskStore};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::{Instant, sleep, timeout};

use super::message::MembershipMessage;
use super::trust::Moment;
use super::view::{Membership, Peer, PeerView};
use crate::chance::chance;
use crate::survived::survived;

/// Between two looks, whoever wants one.
const AT_LEAST: Duration = Duration::from_millis(20);

/// Keeps the lease of one life. Its begin is on record before.
#[derive(Clone)]
pub(crate) struct Keeper {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) boot: BootId,
    pub(crate) configurations: Vec<SnapshotFingerprint>,
    pub(crate) membership: Membership,
    /// Told who lives; `None` = nobody is reached.
    pub(crate) peers: Option<Arc<dyn Peers>>,
}

/// Whose end a look may bring.
#[derive(Default)]
struct Ends {
    /// Those who may be declared dead, with the renewals seen.
    silent: Vec<(BootId, i64)>,
    /// The others of this machine: there may be proof that they are gone.
    beside: Vec<Replica>,
}

/// What the keeper remembers; started anew, it only waits longer before it calls anybody dead.
#[derive(Default)]
pub(crate) struct KeeperState {
    renewals: Option<i64>,
    was_trusted: bool,
    /// Of each life that has not ended: the renewals last seen, and when they moved. As many as there are replicas.
    seen: HashMap<BootId, (i64, Instant)>,
    /// Whether the others were told that this life has begun.
    is_announced: bool,
    /// Whether the lease of some life is about to end: it is looked at more often then.
    is_ending: bool,
    /// Lives that ended since we watch, and whose work is not taken back yet.
    owed: BTreeSet<BootId>,
}

impl Actor for Keeper {
    type Msg = MembershipMessage;
    type State = KeeperState;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        myself.cast(MembershipMessage::Renew)?;
        myself.cast(MembershipMessage::Look)?;
        Ok(KeeperState::default())
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            MembershipMessage::Renew => self.renew(myself),
            MembershipMessage::Renewed { sent, answer } => self.heard(&myself, state, sent, answer),
            MembershipMessage::Look => self.look(myself),
            MembershipMessage::Looked(answer) => self.saw(myself, state, answer),
            MembershipMessage::Buried(owed) => {
                state.owed = owed;
                let pause = if state.is_ending { bounds::PEER_LOOK_SOON } else { bounds::PEER_LOOK };
                self.look_after(pause.mul_f64(0.8 + 0.2 * chance()), myself);
            }
        }
        Ok(())
    }
}

impl Keeper {
    /// Asks for another while, if every role is alive.
    fn renew(&self, myself: ActorRef<MembershipMessage>) {
        if self.membership.is_over() {
            return;
        }
        if let Some(role) = self.membership.hanging() {
            tracing::error!(role, "a role shows no sign of life, so the lease of this replica is not renewed");
            drop(myself.send_after(bounds::LEASE_RETRY, || MembershipMessage::Renew));
            return;
        }
        let (store, at_most) = (self.store.clone(), self.membership.profile().trust());
        let (boot, configurations) = (self.boot.clone(), self.configurations.clone());
        let renewal =
            Renewal { boot, lease: self.membership.profile().lease, configurations, load: self.membership.load() };
        let membership = self.membership.clone();
        tokio::spawn(async move {
            let sent = membership.now();
            let answer = asked(at_most, store.renew_lease(renewal)).await;
            let _ = myself.cast(MembershipMessage::Renewed { sent, answer });
        });
    }

    /// Takes the answer to a renewal, and goes on.
    fn heard(
        &self,
        myself: &ActorRef<MembershipMessage>,
        state: &mut KeeperState,
        sent: Moment,
        answer: Option<Result<Renewed, StoreError>>,
    ) {
        let over = match answer {
            Some(Ok(Renewed::Renewed { renewals })) => renewed(state.renewals.replace(renewals), renewals).err(),
            Some(Ok(Renewed::Dead)) => Some(LifeOver::DeclaredDead),
            failed => return self.not_heard(myself, state, failed),
        };
        if let Some(why) = over {
            return self.over(why);
        }
        self.membership.trust_from(sent);
        if !std::mem::replace(&mut state.was_trusted, true) {
            tracing::info!(replica = %self.boot, "the lease of this replica holds: it takes part");
            // So that the others hear of it.
            self.membership.look_soon();
        }
        let wait = self.membership.profile().renew.mul_f64(0.9 + 0.2 * chance());
        drop(myself.send_after(wait, || MembershipMessage::Renew));
    }

    fn over(&self, why: LifeOver) {
        if !self.membership.is_over() {
            tracing::error!("this replica stops for good: {why}; it claims and settles nothing any more");
            self.membership.end(why);
        }
    }

    fn not_heard(
        &self,
        myself: &ActorRef<MembershipMessage>,
        state: &mut KeeperState,
        failed: Option<Result<Renewed, StoreError>>,
    ) {
        let why = failed.map_or_else(
            || "no answer in time".to_owned(),
            |failed| failed.map_or_else(|e| e.to_string(), |_| String::new()),
        );
        if !self.membership.may_act() && std::mem::take(&mut state.was_trusted) {
            tracing::error!(
                "the lease of this replica is over: it claims and settles nothing until it is renewed: {why}"
            );
        } else {
            tracing::warn!("the lease of this replica could not be renewed: {why}");
        }
        drop(myself.send_after(bounds::LEASE_RETRY, || MembershipMessage::Renew));
    }

    /// Has the others looked at after a pause, or soon after somebody says that they are others now.
    fn look_after(&self, pause: Duration, myself: ActorRef<MembershipMessage>) {
        let membership = self.membership.clone();
        tokio::spawn(async move {
            let _ = timeout(pause, async {
                // Many that begin together are looked at together.
                sleep(AT_LEAST).await;
                membership.wanted().await;
            })
            .await;
            let _ = myself.cast(MembershipMessage::Look);
        });
    }

    /// Asks who there is.
    fn look(&self, myself: ActorRef<MembershipMessage>) {
        let (store, at_most) = (self.store.clone(), self.membership.profile().lease);
        tokio::spawn(async move {
            let answer = asked(at_most, store.list()).await;
            let _ = myself.cast(MembershipMessage::Looked(answer));
        });
    }

    /// Notes who there is, and buries who is not.
    fn saw(
        &self,
        myself: ActorRef<MembershipMessage>,
        state: &mut KeeperState,
        answer: Option<Result<Vec<StoredReplica>, StoreError>>,
    ) {
        let mut ends = Ends::default();
        match answer {
            Some(Ok(lives)) => ends = self.note(state, lives),
            Some(Err(error)) => tracing::debug!("the other replicas could not be looked at: {error}"),
            None => tracing::debug!("the other replicas could not be looked at in time"),
        }
        // Whoever may not act has no business with the work of others.
        if !self.membership.may_act() {
            ends = Ends::default();
        }
        let (store, owed, machine) = (self.store.clone(), state.owed.clone(), self.membership.machine().cloned());
        tokio::spawn(async move {
            let left = survived(async {
                let mut owed = owed.clone();
                if let Some(machine) = machine {
                    owed.extend(prove(&*store, &*machine, ends.beside).await);
                }
                bury(&*store, ends.silent, owed).await
            });
            let left = left.await;
            let _ = myself.cast(MembershipMessage::Buried(left.unwrap_or(owed)));
        });
    }

    /// Compares with what was seen before.
    fn note(&self, state: &mut KeeperState, lives: Vec<StoredReplica>) -> Ends {
        let now = Instant::now();
        let is_up = |boot: &BootId| lives.iter().any(|life| life.replica.boot == *boot);
        let Some(us) = lives.iter().find(|life| life.replica.boot == self.boot) else {
            self.over(LifeOver::DeclaredDead);
            return Ends::default();
        };
        let machine = us.replica.host_id.clone();
        // The others take no notice of a life without a lease.
        let holds = !us.lease_left.is_zero();
        // Whoever declared them dead may have died before it took their work back. Taking back twice changes nothing.
        state.owed.extend(state.seen.keys().filter(|boot| !is_up(boot)).cloned());
        state.seen.retain(|boot, _| is_up(boot));
        let (mut peers, mut ends) = (Vec::new(), Ends::default());
        state.is_ending = lives.iter().any(|life| life.lease_left < bounds::PEER_LOOK * 2 && life.renewals > 0);
        for life in lives {
            let seen = state.seen.entry(life.replica.boot.clone()).or_insert((life.renewals, now));
            if seen.0 != life.renewals {
                *seen = (life.renewals, now);
            }
            let sighting = Sighting { renewals: seen.0, still_for: now.duration_since(seen.1) };
            let is_us = life.replica.boot == self.boot;
            if !is_us && self.membership.profile().may_declare_dead(sighting, life.lease_left) {
                ends.silent.push((life.replica.boot.clone(), sighting.renewals));
            }
            if !is_us && machine.is_some() && life.replica.host_id == machine {
                ends.beside.push(life.replica.clone());
            }
            peers.push(Peer {
                is_alive: is_us || !life.lease_left.is_zero(),
                renewals: sighting.renewals,
                still_for: sighting.still_for,
                configurations: life.configurations,
                is_draining: life.is_draining,
                load: life.load,
                age: life.age,
                replica: life.replica,
            });
        }
        if let Some(reached) = &self.peers {
            let living: Vec<BootId> = peers.iter().map(|peer| peer.replica.boot.clone()).collect();
            reached.keep(&living);
            if holds && !std::mem::replace(&mut state.is_announced, true) {
                self.announce(&**reached, &peers);
            }
        }
        self.membership.show(PeerView { peers, looked: Some(now) });
        ends
    }

    /// Tells the others that this replica is there, so that their hints reach it from its beginning.
    fn announce(&self, reached: &dyn Peers, peers: &[Peer]) {
        for Replica { boot, address, .. } in peers.iter().map(|peer| &peer.replica) {
            if let Some(address) = address.clone().filter(|_| *boot != self.boot) {
                reached.nudge(PeerAddress { boot: boot.clone(), address }, Nudge::Replicas);
            }
        }
    }
}

/// Declares gone at once those of whom this machine has proof, without waiting for their leases (durability.md 2.2,
/// guard c). Whom.
async fn prove(store: &dyn TaskStore, machine: &dyn Machine, beside: Vec<Replica>) -> BTreeSet<BootId> {
    let mut proved = BTreeSet::new();
    for replica in beside {
        let boot = replica.boot.clone();
        if !timeout(bounds::STORE_REQUEST, machine.is_gone(replica.clone())).await.unwrap_or(false) {
            continue;
        }
        match timeout(bounds::STORE_REQUEST, store.declare_gone(boot.clone())).await {
            Ok(Ok(is_declared)) => {
                machine.forget(&replica);
                if is_declared {
                    tracing::warn!(replica = %boot, "a replica on this machine is gone: its lock is free");
                    proved.insert(boot);
                }
            }
            Ok(Err(_)) | Err(_) => tracing::debug!(replica = %boot, "the end of a replica is not on record yet"),
        }
    }
    proved
}

/// Declares dead who is gone, and makes due at once what they held. What is left to be taken back.
async fn bury(store: &dyn TaskStore, gone: Vec<(BootId, i64)>, mut owed: BTreeSet<BootId>) -> BTreeSet<BootId> {
    for (boot, renewals) in gone {
        match timeout(bounds::STORE_REQUEST, store.declare_dead(boot.clone(), renewals)).await {
            Ok(Ok(true)) => {
                tracing::warn!(replica = %boot, "a replica is gone: its lease is over and it did not renew it");
                owed.insert(boot);
            }
            // Somebody else declared it, which the next look shows, or it lives.
            Ok(Ok(false)) | Err(_) => {}
            Ok(Err(error)) => tracing::debug!(replica = %boot, "a replica could not be declared dead: {error}"),
        }
    }
    let mut left = BTreeSet::new();
    for boot in owed {
        let both = async {
            let tasks = store.take_back(boot.clone(), bounds::LONGEST_CLAIM).await?;
            let deliveries = store.take_back_deliveries(boot.clone(), bounds::LONGEST_CLAIM).await?;
            Ok::<_, StoreError>((tasks, deliveries))
        };
        match timeout(bounds::STORE_REQUEST, both).await {
            Ok(Ok((tasks, deliveries))) => tracing::info!(replica = %boot, tasks, deliveries, "took back what it held"),
            Ok(Err(_)) | Err(_) => {
                left.insert(boot);
            }
        }
    }
    left
}

/// The store's answer; `None` = none within `at_most`, or a fault of ours.
async fn asked<T>(
    at_most: Duration,
    request: impl Future<Output = Result<T, StoreError>>,
) -> Option<Result<T, StoreError>> {
    timeout(at_most, survived(request)).await.ok().flatten()
}
