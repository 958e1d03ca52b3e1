//! The lease in paused time, over the store in memory.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::holding::{LeaseProfile, LifeOver};
use caribou_core::ids::BootId;
use caribou_ports::store::{Renewal, Replica, Replicas as _};
use caribou_store::Memory;
use ractor::{Actor, ActorRef};
use tokio::time::{Instant, sleep};

use super::{Keeper, Membership, MembershipMessage};

const FAST: LeaseProfile = LeaseProfile::FAST;

async fn begun(store: &Memory, name: &str) -> BootId {
    let replica = Replica { boot: BootId::from(name), host: "test".to_owned(), version: "0".to_owned() };
    store.begin(replica).await.unwrap();
    BootId::from(name)
}

async fn kept(store: &Memory, name: &str) -> (Membership, ActorRef<MembershipMessage>) {
    let (boot, membership) = (begun(store, name).await, Membership::new(FAST));
    let keeper =
        Keeper { store: Arc::new(store.clone()), boot, configurations: Vec::new(), membership: membership.clone() };
    (membership, Actor::spawn(None, keeper, ()).await.unwrap().0)
}

async fn renew(store: &Memory, boot: &BootId) {
    let renewal = Renewal { boot: boot.clone(), lease: FAST.lease, configurations: Vec::new() };
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
    let keeper = Keeper { store, boot, configurations: Vec::new(), membership: membership.clone() };
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
