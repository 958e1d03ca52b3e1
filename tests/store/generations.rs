//! The generations that everything is opened under mean the same in every store (durability.md §4; invariants G1, G2).

use std::collections::HashSet;
use std::time::Duration;

use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::store::{Renewal, Replica};
use futures::future::join_all;
use rstest::rstest;

use crate::opened::{Database, Kind, Opened};

const OURS: &str = "019ad000-0000-7000-8000-000000000001";
const THEIRS: &str = "019ad000-0000-7000-8000-000000000002";
const NOBODYS: &str = "019ad000-0000-7000-8000-00000000000f";

fn server(name: &str) -> ResetScope {
    ResetScope::Server(name.into())
}

async fn of(store: &Opened, scope: &ResetScope) -> Option<ResetGeneration> {
    let all = store.generations().await.unwrap();
    all.into_iter().find(|(known, _)| known == scope).map(|(_, generation)| generation)
}

#[rstest]
#[tokio::test]
async fn each_scope_counts_by_itself(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    assert_eq!(store.generations().await.unwrap(), []);
    let first = store.bump(ResetScope::Global).await.unwrap();
    let other = store.bump(server("a: b")).await.unwrap();
    assert_eq!((first.counter, other.counter), (1, 1));
    assert_ne!(first.origin, other.origin);
    let second = store.bump(ResetScope::Global).await.unwrap();
    assert_eq!(second, ResetGeneration { counter: 2, ..first });
    assert_eq!(of(&store, &ResetScope::Global).await, Some(second));
    assert_eq!(of(&store, &server("a: b")).await, Some(other));
    assert_eq!(of(&store, &server("a")).await, None);
}

#[rstest]
#[tokio::test]
async fn of_many_at_once_each_has_its_own(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    let bumped = join_all((0..40).map(|_| store.bump(ResetScope::Global))).await;
    let bumped: HashSet<ResetGeneration> = bumped.into_iter().map(Result::unwrap).collect();
    assert_eq!(bumped.len(), 40);
    assert_eq!(bumped.iter().map(|generation| generation.origin).collect::<HashSet<_>>().len(), 1);
    assert_eq!(of(&store, &ResetScope::Global).await.map(|last| last.counter), Some(40));
}

#[rstest]
#[tokio::test]
async fn a_count_that_was_lost_never_comes_again(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    // A restored or emptied database: the same number is another generation.
    use caribou_ports::store::Generations as _;
    let database = Database::of(kind).await;
    let store = database.migrated().await;
    let before = store.bump(ResetScope::Global).await.unwrap();
    database.run("DELETE FROM reset_generation").await;
    let after = store.bump(ResetScope::Global).await.unwrap();
    assert_eq!(before.counter, after.counter);
    assert_ne!(before, after);
}

#[rstest]
#[tokio::test]
async fn only_replicas_that_live_are_waited_for_and_what_they_noted_last_counts(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Architecture.md §10, reset answer.
    let store = Opened::new(kind).await;
    for boot in [OURS, THEIRS] {
        store.begin(Replica::alone(boot.into(), "h", "0.1.0")).await.unwrap();
    }
    assert_eq!(store.confirmed(ResetScope::Global).await.unwrap(), [], "nobody's lease holds yet");
    for boot in [OURS, THEIRS] {
        let lease = Duration::from_secs(60);
        store.renew_lease(Renewal { boot: boot.into(), lease, configurations: Vec::new(), load: 0.0 }).await.unwrap();
    }
    let first = store.bump(ResetScope::Global).await.unwrap();
    let second = store.bump(ResetScope::Global).await.unwrap();
    store.confirm(OURS.into(), ResetScope::Global, second).await.unwrap();
    store.confirm(OURS.into(), ResetScope::Global, first).await.unwrap();
    store.confirm(NOBODYS.into(), ResetScope::Global, second).await.unwrap();
    let mut confirmed = store.confirmed(ResetScope::Global).await.unwrap();
    confirmed.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert_eq!(confirmed, [(OURS.into(), Some(second)), (THEIRS.into(), None)], "a request that was late says nothing");
    let other = store.bump(server("a")).await.unwrap();
    store.confirm(OURS.into(), ResetScope::Global, other).await.unwrap();
    store.end(THEIRS.into()).await.unwrap();
    assert_eq!(
        store.confirmed(ResetScope::Global).await.unwrap(),
        [(OURS.into(), Some(other))],
        "another count is later"
    );
}
