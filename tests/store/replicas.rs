//! Lives of replicas mean the same in every store.

use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, Scope, SessionKey};
use caribou_core::session::{GAP, Life, SessionRow};
use caribou_ports::store::{Renewal, Renewed, Replica, StoredReplica, TakeSession, Taken};
use caribou_tests::eventually;
use rstest::rstest;

use crate::opened::{Kind, Opened};

const FIRST: &str = "019ad000-0000-7000-8000-000000000001";
const SECOND: &str = "019ad000-0000-7000-8000-000000000002";
const THIRD: &str = "019ad000-0000-7000-8000-000000000003";

fn replica(boot: &str) -> Replica {
    Replica::alone(boot.into(), "pod-7", "0.1.0")
}

#[rstest]
#[tokio::test]
async fn a_life_is_recorded_once_and_its_end_is_final(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.begin(replica(FIRST)).await.unwrap();
    store.begin(replica(SECOND)).await.unwrap();
    store.end(FIRST.into()).await.unwrap();
    store.begin(replica(FIRST)).await.unwrap();
    store.end(FIRST.into()).await.unwrap();
    store.end("019ad000-0000-7000-8000-00000000000f".into()).await.unwrap();
    let found: Vec<_> = store.list().await.unwrap().into_iter().map(|life| life.replica).collect();
    assert_eq!(found, [replica(SECOND)]);
    store.begin(replica(THIRD)).await.unwrap();
    let found: Vec<_> = store.list().await.unwrap().into_iter().map(|life| life.replica).collect();
    assert_eq!(found, [replica(THIRD), replica(SECOND)], "the youngest first");
}

fn renewal(boot: &str, load: f32) -> Renewal {
    Renewal { boot: boot.into(), lease: Duration::from_secs(60), configurations: Vec::new(), load }
}

async fn only(store: &Opened) -> StoredReplica {
    let mut lives = store.list().await.unwrap();
    assert_eq!(lives.len(), 1, "{lives:?}");
    lives.remove(0)
}

#[rstest]
#[tokio::test]
async fn what_a_life_tells_of_itself_is_told_to_the_others(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Durability.md 2.2; architecture.md §10, flock proof.
    let store = Opened::new(kind).await;
    let told = Replica {
        address: Some("10.0.0.7:8751".to_owned()),
        host_id: Some("3f".to_owned()),
        lock_path: Some("/data/replica.lock".to_owned()),
        ..replica(FIRST)
    };
    store.begin(told.clone()).await.unwrap();
    let life = only(&store).await;
    assert_eq!((life.replica, life.load, life.is_draining), (told, 0.0, false));
    for load in [0.25, 1.0, 0.5] {
        store.renew_lease(renewal(FIRST, load)).await.unwrap();
        assert!((only(&store).await.load - load).abs() < f32::EPSILON);
    }
}

#[rstest]
#[tokio::test]
async fn a_life_that_drains_goes_on_renewing_and_takes_no_session(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Durability.md 2.2, drain.
    let store = Opened::new(kind).await;
    store.begin(replica(FIRST)).await.unwrap();
    store.begin(replica(SECOND)).await.unwrap();
    assert_eq!(store.take_session(taking(FIRST), GAP).await.unwrap(), Taken::Taken(Epoch(1)));
    store.drain(FIRST.into()).await.unwrap();
    store.drain(FIRST.into()).await.unwrap();
    let draining: Vec<_> = store.list().await.unwrap().into_iter().map(|life| life.is_draining).collect();
    assert_eq!(draining, [false, true], "the younger one does not");
    assert!(matches!(store.renew_lease(renewal(FIRST, 0.0)).await.unwrap(), Renewed::Renewed { .. }));
    let owner = store.find_session(session()).await.unwrap().unwrap().owner.unwrap();
    assert_eq!((owner.boot, owner.life), (FIRST.into(), Life::Draining));
    assert!(store.free_session(session(), FIRST.into(), Epoch(1)).await.unwrap());
    assert!(matches!(store.take_session(taking(FIRST), GAP).await.unwrap(), Taken::Held(_)));
    store.end(FIRST.into()).await.unwrap();
    store.drain(FIRST.into()).await.unwrap();
    assert_eq!(only(&store).await.replica, replica(SECOND), "an end is final");
}

#[rstest]
#[tokio::test]
async fn whoever_left_nothing_is_succeeded_without_the_gap(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
    #[values(true, false)] is_proved: bool,
) {
    // Durability.md 2.2: a clean end, and a lock that proves one. Whoever is only silent keeps the gap.
    let store = Opened::new(kind).await;
    for boot in [FIRST, SECOND] {
        store.begin(replica(boot)).await.unwrap();
    }
    store.renew_lease(renewal(FIRST, 0.0)).await.unwrap();
    assert_eq!(store.take_session(taking(FIRST), GAP).await.unwrap(), Taken::Taken(Epoch(1)));
    if is_proved {
        assert!(store.declare_gone(FIRST.into()).await.unwrap(), "whatever its lease says");
        assert!(!store.declare_gone(FIRST.into()).await.unwrap(), "it is dead already");
        assert!(!store.declare_gone(THIRD.into()).await.unwrap(), "nobody ever was");
    } else {
        store.end(FIRST.into()).await.unwrap();
    }
    assert_eq!(store.take_session(taking(SECOND), GAP).await.unwrap(), Taken::Taken(Epoch(2)));
    assert_eq!(store.renew_lease(renewal(FIRST, 0.0)).await.unwrap(), Renewed::Dead);
}

#[rstest]
#[tokio::test]
async fn whoever_was_only_silent_is_succeeded_after_the_gap(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    for boot in [FIRST, SECOND] {
        store.begin(replica(boot)).await.unwrap();
    }
    assert_eq!(store.take_session(taking(FIRST), GAP).await.unwrap(), Taken::Taken(Epoch(1)));
    assert!(store.declare_dead(FIRST.into(), 0).await.unwrap());
    let hour = Duration::from_secs(3_600);
    assert!(matches!(store.take_session(taking(SECOND), hour).await.unwrap(), Taken::Held(_)));
    let owner = store.find_session(session()).await.unwrap().unwrap().owner.unwrap();
    assert!(matches!(owner.life, Life::Ended(since) if since < Duration::from_secs(60)), "{owner:?}");
}

fn key() -> SessionKey {
    SessionKey { server: "jobs".into(), scope: Scope::new(Some("ann"), Some("t1")), credential: None }
}

fn session() -> SessionRow {
    SessionRow::of(&key())
}

fn taking(owner: &str) -> TakeSession {
    TakeSession { session: session(), key: key(), owner: owner.into() }
}

#[rstest]
#[tokio::test]
async fn the_record_of_a_life_is_kept_for_a_while_after_its_end(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    for boot in [FIRST, SECOND] {
        store.begin(replica(boot)).await.unwrap();
    }
    store.end(FIRST.into()).await.unwrap();
    assert_eq!(store.forget_replicas(Duration::from_secs(60)).await.unwrap(), 0);
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 0);
    assert_eq!(store.list().await.unwrap().len(), 1, "one that lives is not forgotten");
}

#[rstest]
#[tokio::test]
async fn the_age_of_a_life_is_told_by_the_store_and_grows(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.begin(replica(FIRST)).await.unwrap();
    let within = Duration::from_secs(30);
    let age = eventually(within, "a millisecond passes", async || {
        let age = store.list().await.unwrap()[0].age;
        (age >= Duration::from_millis(1)).then_some(age)
    });
    assert!(age.await <= within);
}

#[rstest]
#[tokio::test]
async fn a_boot_id_that_is_no_uuid_is_refused_by_databases(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    let error = store.end(BootId::new("pod-7")).await.unwrap_err();
    assert!(error.to_string().contains("UUID"), "{error}");
}
