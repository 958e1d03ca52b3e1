//! The lease in paused time, over the store in memory.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::holding::{LeaseProfile, LifeOver};
use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_ports::BoxFuture;
use caribou_ports::machine::Machine;
use caribou_ports::peers::{ClientWord, Nudge, OpenedThere, PeerAddress, PeerError, Peers, Wanted};
use caribou_ports::store::{Renewal, Replica, Replicas as _};
use caribou_store::Memory;
use ractor::{Actor, ActorRef};
use tokio::time::{Instant, sleep};

use super::{Keeper, Membership, MembershipMessage};

const FAST: LeaseProfile = LeaseProfile::FAST;

async fn begun(store: &Memory, name: &str) -> BootId {
    let replica = Replica::alone(BootId::from(name), "test", "0");
    store.begin(replica).await.unwrap();
    BootId::from(name)
}

async fn kept(store: &Memory, name: &str) -> (Membership, ActorRef<MembershipMessage>) {
    let boot = begun(store, name).await;
    keep(store, boot, Membership::new(FAST)).await
}

async fn keep(store: &Memory, boot: BootId, membership: Membership) -> (Membership, ActorRef<MembershipMessage>) {
    let (store, configurations) = (Arc::new(store.clone()), Vec::new());
    let keeper = Keeper { store, boot, configurations, membership: membership.clone(), peers: None };
    (membership, Actor::spawn(None, keeper, ()).await.unwrap().0)
}

/// A machine whose processes and clock the test plays.
struct FakeMachine {
    began: Instant,
    /// For how long it was suspended.
    suspended: Mutex<Duration>,
    trusted: Mutex<Vec<Duration>>,
    gone: Mutex<BTreeSet<BootId>>,
    forgotten: Mutex<BTreeSet<BootId>>,
}

impl FakeMachine {
    fn new() -> Arc<Self> {
        let (suspended, trusted, gone, forgotten) = Default::default();
        Arc::new(Self { began: Instant::now(), suspended, trusted, gone, forgotten })
    }

    fn trusted_until(&self) -> Duration {
        self.trusted.lock().unwrap().last().copied().unwrap_or_default()
    }
}

impl Machine for FakeMachine {
    fn uptime(&self) -> Duration {
        self.began.elapsed() + *self.suspended.lock().unwrap()
    }

    fn trust_until(&self, uptime: Duration) {
        self.trusted.lock().unwrap().push(uptime);
    }

    fn is_gone(&self, replica: Replica) -> BoxFuture<'static, bool> {
        let is_gone = self.gone.lock().unwrap().contains(&replica.boot);
        Box::pin(async move { is_gone })
    }

    fn forget(&self, replica: &Replica) {
        self.forgotten.lock().unwrap().insert(replica.boot.clone());
    }
}

/// A life on this machine, with a lock there.
async fn begun_on(store: &Memory, name: &str, machine: &str) -> BootId {
    let lock_path = Some(format!("/data/{name}.lock"));
    let replica = Replica { host_id: Some(machine.to_owned()), lock_path, ..Replica::alone(name.into(), "test", "0") };
    store.begin(replica).await.unwrap();
    BootId::from(name)
}

async fn renew(store: &Memory, boot: &BootId) {
    let renewal = Renewal { boot: boot.clone(), lease: FAST.lease, configurations: Vec::new(), load: 0.0 };
    store.renew_lease(renewal).await.unwrap();
}

async fn is_up(store: &Memory, boot: &BootId) -> bool {
    store.list().await.unwrap().into_iter().any(|life| life.replica.boot == *boot)
}

#[tokio::test(start_paused = true)]
async fn a_life_that_renews_is_trusted_and_never_called_dead() {
    // Durability.md 2.2; invariant L1.
    let store = Memory::default();
    let (one, _one) = kept(&store, "a").await;
    let (other, _other) = kept(&store, "b").await;
    assert!(!one.may_act(), "not before the first renewal is granted");
    sleep(Duration::from_millis(100)).await;
    for _ in 0..300 {
        assert!(one.may_act() && other.may_act());
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(one.peers().alive().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_life_that_is_silent_is_called_dead_only_after_it_stopped_trusting_itself() {
    // Durability.md 2.3.
    let store = Memory::default();
    let (silent, keeper) = kept(&store, "a").await;
    let (_other, _keeper) = kept(&store, "b").await;
    sleep(Duration::from_secs(5)).await;
    keeper.kill();
    let mut trusted = true;
    let began = Instant::now();
    while is_up(&store, &BootId::from("a")).await {
        trusted = silent.may_act();
        assert!(began.elapsed() < FAST.lease + Duration::from_secs(3));
        sleep(Duration::from_millis(50)).await;
    }
    assert!(!trusted, "called dead while it trusted itself");
}

#[tokio::test(start_paused = true)]
async fn a_life_whose_role_hangs_does_not_renew() {
    // Durability.md 1.5, hung work.
    let store = Memory::default();
    let (membership, _keeper) = kept(&store, "a").await;
    let pulse = membership.watch("a role");
    for _ in 0..20 {
        pulse.beat();
        sleep(Duration::from_secs(1)).await;
    }
    assert!(membership.may_act());
    sleep(FAST.pulse() + FAST.trust() + FAST.renew).await;
    assert!(!membership.may_act(), "it hangs");
    pulse.beat();
    sleep(Duration::from_secs(2)).await;
    assert!(membership.may_act(), "nobody called it dead meanwhile, so it takes part again");
    drop(pulse);
    sleep(FAST.lease * 3).await;
    assert!(membership.may_act(), "a role that ended is not missed");
}

#[tokio::test(start_paused = true)]
async fn a_life_that_was_called_dead_is_over_for_good() {
    // Durability.md 2.2: dead is final.
    let store = Memory::default();
    let (membership, _keeper) = kept(&store, "a").await;
    sleep(Duration::from_secs(1)).await;
    store.end(BootId::from("a")).await.unwrap();
    assert_eq!(membership.over().await, LifeOver::DeclaredDead);
    sleep(FAST.lease).await;
    assert!(!membership.may_act());
}

#[tokio::test(start_paused = true)]
async fn a_life_that_never_began_is_over() {
    let membership = Membership::new(FAST);
    let store: Arc<Memory> = Arc::default();
    let boot = BootId::from("nobody");
    let keeper = Keeper { store, boot, configurations: Vec::new(), membership: membership.clone(), peers: None };
    let _keeper = Actor::spawn(None, keeper, ()).await.unwrap();
    assert_eq!(membership.over().await, LifeOver::DeclaredDead);
}

#[tokio::test(start_paused = true)]
async fn one_renewal_in_time_saves_a_life() {
    // Durability.md 1.6: the peer itself must have seen the number stand still.
    let store = Memory::default();
    let late = begun(&store, "late").await;
    renew(&store, &late).await;
    let (_membership, _keeper) = kept(&store, "b").await;
    for _ in 0..4 {
        sleep(FAST.lease - Duration::from_millis(500)).await;
        renew(&store, &late).await;
    }
    assert!(is_up(&store, &late).await);
    sleep(FAST.lease + Duration::from_secs(2)).await;
    assert!(!is_up(&store, &late).await);
}

#[tokio::test(start_paused = true)]
async fn trust_ends_with_the_clock_that_a_suspend_does_not_stop_and_the_guard_is_told_of_each_renewal() {
    // Durability.md 2.3; invariant L1.
    let (store, machine) = (Memory::default(), FakeMachine::new());
    let boot = begun(&store, "a").await;
    let (membership, _keeper) = keep(&store, boot, Membership::on(FAST, Some(machine.clone()))).await;
    assert_eq!(machine.trusted_until(), Duration::ZERO, "not before the first renewal is granted");
    sleep(Duration::from_millis(100)).await;
    for _ in 0..60 {
        let told = machine.trusted_until();
        assert!(membership.may_act() && told > machine.uptime() && told <= machine.uptime() + FAST.trust());
        assert!(membership.trust_left() <= FAST.trust());
        sleep(Duration::from_secs(1)).await;
    }
    // The machine is suspended: this process's own clock stands still, and so do its timers.
    *machine.suspended.lock().unwrap() += FAST.trust();
    assert!(!membership.may_act() && membership.trust_left().is_zero());
    sleep(FAST.renew * 2).await;
    assert!(membership.may_act(), "nobody called it dead meanwhile");
    assert!(machine.trusted_until() > machine.uptime());
}

#[tokio::test(start_paused = true)]
async fn a_life_that_is_over_ends_its_children_at_once() {
    // Invariant L1: what it held may be taken a moment later.
    let (store, machine) = (Memory::default(), FakeMachine::new());
    let boot = begun(&store, "a").await;
    let (membership, _keeper) = keep(&store, boot.clone(), Membership::on(FAST, Some(machine.clone()))).await;
    sleep(Duration::from_secs(1)).await;
    store.end(boot).await.unwrap();
    assert_eq!(membership.over().await, LifeOver::DeclaredDead);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(machine.trusted_until(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_life_of_the_same_machine_is_declared_gone_by_proof_and_one_of_another_machine_by_its_lease() {
    // Durability.md 2.2, guard c; architecture.md §10, flock proof.
    let (store, machine) = (Memory::default(), FakeMachine::new());
    let (beside, elsewhere) = (begun_on(&store, "beside", "m1").await, begun_on(&store, "elsewhere", "m2").await);
    for boot in [&beside, &elsewhere] {
        renew(&store, boot).await;
    }
    let boot = begun_on(&store, "a", "m1").await;
    let (_membership, _keeper) = keep(&store, boot, Membership::on(FAST, Some(machine.clone()))).await;
    sleep(Duration::from_secs(2)).await;
    assert!(is_up(&store, &beside).await && is_up(&store, &elsewhere).await, "there is no proof");
    machine.gone.lock().unwrap().extend([beside.clone(), elsewhere.clone()]);
    sleep(Duration::from_secs(1)).await;
    assert!(!is_up(&store, &beside).await, "its lease holds, and it is gone all the same");
    assert!(is_up(&store, &elsewhere).await, "this machine knows nothing of the other");
    assert_eq!(*machine.forgotten.lock().unwrap(), BTreeSet::from([beside]));
    sleep(FAST.lease + Duration::from_secs(2)).await;
    assert!(!is_up(&store, &elsewhere).await);
}

#[tokio::test(start_paused = true)]
async fn a_life_that_drains_says_so_is_trusted_and_claims_nothing() {
    // Durability.md 2.2, drain.
    let store = Memory::default();
    let (one, _one) = kept(&store, "a").await;
    let (other, _other) = kept(&store, "b").await;
    one.set_load(0.75);
    sleep(FAST.renew * 2).await;
    assert!(one.may_claim());
    one.drain();
    store.drain("a".into()).await.unwrap();
    sleep(FAST.lease * 2).await;
    assert!(one.may_act() && !one.may_claim());
    let view = other.peers();
    assert_eq!((view.alive().len(), view.claiming()), (2, vec![BootId::from("b")]));
    let seen = view.peers.iter().find(|peer| peer.replica.boot.as_str() == "a").unwrap();
    assert!(seen.is_draining && (seen.load - 0.75).abs() < f32::EPSILON);
}

/// Two replicas that hear each other.
#[derive(Default)]
struct Near(Mutex<HashMap<BootId, Membership>>);

impl Peers for Near {
    fn open(&self, _: PeerAddress, _: Wanted) -> BoxFuture<'static, Result<OpenedThere, PeerError>> {
        Box::pin(async { Err(PeerError::Unreachable("nothing is opened here".to_owned())) })
    }

    fn close_sessions(
        &self,
        _: PeerAddress,
        _: Scope,
        _: Option<ServerName>,
    ) -> BoxFuture<'static, Result<u64, PeerError>> {
        Box::pin(async { Ok(0) })
    }

    fn tell(&self, _: PeerAddress, _: ClientWord) -> BoxFuture<'static, Result<bool, PeerError>> {
        Box::pin(async { Ok(false) })
    }

    fn nudge(&self, peer: PeerAddress, about: Nudge) {
        assert_eq!(about, Nudge::Replicas);
        self.0.lock().unwrap()[&peer.boot].look_soon();
    }

    fn keep(&self, _: &[BootId]) {}
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_begins_is_known_to_the_others_at_once() {
    let (store, near) = (Memory::default(), Arc::new(Near::default()));
    let begin = async |name: &str| {
        let replica = Replica { address: Some(name.to_owned()), ..Replica::alone(name.into(), "test", "0") };
        store.begin(replica).await.unwrap();
        let membership = Membership::new(FAST);
        near.0.lock().unwrap().insert(name.into(), membership.clone());
        let (peers, configurations): (Arc<dyn Peers>, _) = (near.clone(), Vec::new());
        let (store, boot) = (Arc::new(store.clone()), name.into());
        let keeper = Keeper { store, boot, configurations, membership: membership.clone(), peers: Some(peers) };
        (membership, Actor::spawn(None, keeper, ()).await.unwrap().0)
    };
    let (first, _first) = begin("a").await;
    sleep(Duration::from_secs(30)).await;
    let (second, _second) = begin("b").await;
    // Far less than the time between two looks.
    sleep(bounds::PEER_LOOK / 10).await;
    for membership in [first, second] {
        assert_eq!(membership.peers().alive().len(), 2);
    }
}
