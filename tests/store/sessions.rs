//! Who holds which session means the same in every store (durability.md 2.2; invariants L1, L2, S3).

use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, Scope, ServerName, SessionKey};
use caribou_core::session::{Life, Owner, Ownership, SessionRow};
use caribou_ports::store::{Replica, Resumption, TakeSession, Taken};
use futures::future::join_all;
use rstest::rstest;

use crate::opened::{Kind, Opened};

const OURS: &str = "019ad000-0000-7000-8000-000000000001";
const THEIRS: &str = "019ad000-0000-7000-8000-000000000002";
const NOBODYS: &str = "019ad000-0000-7000-8000-00000000000f";
const NO_GAP: Duration = Duration::ZERO;
const GAP: Duration = Duration::from_secs(3_600);

fn key() -> SessionKey {
    SessionKey { server: ServerName::from("jobs"), scope: Scope::new(Some("ann"), Some("t1")), credential: None }
}

fn row() -> SessionRow {
    SessionRow::of(&key())
}

fn taking(owner: &str) -> TakeSession {
    TakeSession { session: row(), key: key(), owner: owner.into() }
}

/// A store in which two replicas live.
async fn two(kind: Kind) -> Opened {
    let store = Opened::new(kind).await;
    for boot in [OURS, THEIRS] {
        let replica = Replica::alone(boot.into(), "h", "0.1.0");
        store.begin(replica).await.unwrap();
    }
    store
}

fn held_by(boot: &str, life: Life, epoch: u64) -> Ownership {
    Ownership { owner: Some(Owner { boot: boot.into(), life }), epoch: Epoch(epoch) }
}

#[rstest]
#[tokio::test]
async fn a_session_has_one_owner_and_each_one_its_own_epoch(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = two(kind).await;
    assert_eq!(store.find_session(row()).await.unwrap(), None);
    assert_eq!(store.take_session(taking(OURS), NO_GAP).await.unwrap(), Taken::Taken(Epoch(1)));
    let ours = held_by(OURS, Life::Up, 1);
    assert_eq!(store.take_session(taking(THEIRS), NO_GAP).await.unwrap(), Taken::Held(ours.clone()));
    assert_eq!(store.find_session(row()).await.unwrap(), Some(ours));
    // Whoever takes its own again has no child for the epoch before.
    assert_eq!(store.take_session(taking(OURS), NO_GAP).await.unwrap(), Taken::Taken(Epoch(2)));
    assert!(!store.free_session(row(), OURS.into(), Epoch(1)).await.unwrap(), "that one is over");
    assert!(!store.free_session(row(), THEIRS.into(), Epoch(2)).await.unwrap(), "not theirs to give");
    assert!(store.free_session(row(), OURS.into(), Epoch(2)).await.unwrap());
    assert_eq!(store.find_session(row()).await.unwrap(), Some(Ownership { owner: None, epoch: Epoch(2) }));
    assert_eq!(store.take_session(taking(THEIRS), NO_GAP).await.unwrap(), Taken::Taken(Epoch(3)));
}

#[rstest]
#[tokio::test]
async fn a_session_is_taken_from_a_dead_owner_after_the_gap_and_not_sooner(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = two(kind).await;
    store.take_session(taking(THEIRS), NO_GAP).await.unwrap();
    store.end(THEIRS.into()).await.unwrap();
    let Taken::Held(held) = store.take_session(taking(OURS), GAP).await.unwrap() else { panic!("the gap") };
    let owner = held.owner.unwrap();
    assert!(owner.boot == THEIRS.into() && matches!(owner.life, Life::Ended(since) if since < GAP), "{owner:?}");
    assert_eq!(store.take_session(taking(OURS), NO_GAP).await.unwrap(), Taken::Taken(Epoch(2)));
    // Nothing that the dead one still tries is accepted.
    assert!(!store.free_session(row(), THEIRS.into(), Epoch(1)).await.unwrap());
    assert!(matches!(store.take_session(taking(THEIRS), NO_GAP).await.unwrap(), Taken::Held(_)));
}

#[rstest]
#[tokio::test]
async fn an_owner_without_a_record_ended_long_ago_and_takes_nothing(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = two(kind).await;
    let nobody = Ownership { owner: None, epoch: Epoch(0) };
    assert_eq!(store.take_session(taking(NOBODYS), NO_GAP).await.unwrap(), Taken::Held(nobody));
    store.take_session(taking(THEIRS), NO_GAP).await.unwrap();
    store.end(THEIRS.into()).await.unwrap();
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 1);
    let forgotten = held_by(THEIRS, Life::Ended(Duration::MAX), 1);
    assert_eq!(store.find_session(row()).await.unwrap(), Some(forgotten));
    assert_eq!(store.take_session(taking(OURS), GAP).await.unwrap(), Taken::Taken(Epoch(2)));
}

#[rstest]
#[tokio::test]
async fn of_many_that_take_it_at_once_one_does(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = two(kind).await;
    let takings = (0..16).map(|n| store.take_session(taking(if n % 2 == 0 { OURS } else { THEIRS }), NO_GAP));
    let taken: Vec<Taken> = join_all(takings).await.into_iter().map(Result::unwrap).collect();
    let mut epochs: Vec<u64> =
        taken.iter().filter_map(|taken| if let Taken::Taken(epoch) = taken { Some(epoch.0) } else { None }).collect();
    epochs.sort_unstable();
    // The first one keeps it; only itself may take it again.
    assert_eq!(epochs, (1..=8).collect::<Vec<u64>>());
    let owner = store.find_session(row()).await.unwrap().unwrap().owner.unwrap();
    let others = taken.iter().filter(|taken| matches!(taken, Taken::Held(_))).count();
    assert!(others == 8 && owner.life == Life::Up);
}

#[rstest]
#[tokio::test]
async fn a_thread_is_told_of_an_epoch_once(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = two(kind).await;
    assert_eq!(store.told_epoch(row(), Epoch(1)).await.unwrap(), None, "nobody has it");
    store.take_session(taking(OURS), NO_GAP).await.unwrap();
    assert_eq!(store.told_epoch(row(), Epoch(1)).await.unwrap(), None);
    assert_eq!(store.told_epoch(row(), Epoch(3)).await.unwrap(), Some(Epoch(1)));
    assert_eq!(store.told_epoch(row(), Epoch(2)).await.unwrap(), Some(Epoch(3)), "an epoch only grows");
    assert_eq!(store.told_epoch(row(), Epoch(3)).await.unwrap(), Some(Epoch(3)));
}

#[rstest]
#[tokio::test]
async fn what_is_held_is_listed_the_youngest_first(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = two(kind).await;
    let other = SessionKey { server: ServerName::from("files"), ..key() };
    store.take_session(taking(OURS), NO_GAP).await.unwrap();
    let theirs = TakeSession { session: SessionRow::of(&other), key: other.clone(), owner: THEIRS.into() };
    caribou_tests::eventually(Duration::from_secs(10), "a later moment", async || {
        store.take_session(theirs.clone(), NO_GAP).await.unwrap();
        let listed = store.list_sessions(None, 10).await.unwrap();
        let keys: Vec<_> = listed.iter().map(|session| (session.key.clone(), session.owner.clone())).collect();
        (keys == [(other.clone(), THEIRS.into()), (key(), BootId::from(OURS))]).then_some(())
    })
    .await;
    assert_eq!(store.list_sessions(None, 1).await.unwrap().len(), 1);
    let ours = store.list_sessions(Some(OURS.into()), 10).await.unwrap();
    assert!(ours.len() == 1 && ours[0].key == key() && ours[0].epoch == Epoch(1), "{ours:?}");
}

#[rstest]
#[tokio::test]
async fn what_a_session_is_gone_on_with_is_kept_for_its_next_owner_alone(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = two(kind).await;
    let keep =
        async |boot: &str, epoch| store.keep_resumption(row(), boot.into(), Epoch(epoch), vec![7]).await.unwrap();
    assert!(!keep(OURS, 1).await, "nobody holds it");
    store.take_session(taking(OURS), NO_GAP).await.unwrap();
    assert_eq!(store.find_resumption(row()).await.unwrap(), None);
    assert!(!keep(THEIRS, 1).await && !keep(OURS, 2).await, "not theirs, not that one");
    assert!(keep(OURS, 1).await);
    assert_eq!(store.find_resumption(row()).await.unwrap(), Some(Resumption { epoch: Epoch(1), sealed: vec![7] }));
    // Left, it is there for the next one, until that one has taken it.
    assert!(store.leave_session(row(), OURS.into(), Epoch(1)).await.unwrap());
    assert_eq!(store.find_resumption(row()).await.unwrap(), Some(Resumption { epoch: Epoch(1), sealed: vec![7] }));
    assert!(!keep(OURS, 1).await, "it is not ours any more");
    store.take_session(taking(THEIRS), NO_GAP).await.unwrap();
    assert_eq!(store.find_resumption(row()).await.unwrap(), None);
    // Given back as one of which nothing is left, nothing is.
    assert!(keep(THEIRS, 2).await);
    assert!(!store.leave_session(row(), THEIRS.into(), Epoch(1)).await.unwrap());
    assert!(store.free_session(row(), THEIRS.into(), Epoch(2)).await.unwrap());
    assert_eq!(store.find_resumption(row()).await.unwrap(), None);
}
