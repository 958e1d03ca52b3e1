//! Personal connections mean the same in every store.

use caribou_core::ids::UserId;
use caribou_ports::store::{Connections as _, Expected, Put, StoredConnection};
use rstest::rstest;

use crate::opened::{Database, Kind, Opened, Store};

const MOST: u32 = 3;

fn connection(user: &str, name: &str, runtime_name: &str) -> StoredConnection {
    StoredConnection {
        user: user.into(),
        name: name.to_owned(),
        runtime_name: runtime_name.to_owned(),
        sealed: vec![0, 255, 7],
        enabled: true,
    }
}

fn exactly(connection: &StoredConnection) -> Expected {
    Expected::Exactly { runtime_name: connection.runtime_name.clone(), enabled: connection.enabled }
}

async fn put(store: &dyn Store, connection: &StoredConnection, expected: Expected) -> Put {
    store.put(connection.clone(), expected, MOST).await.unwrap()
}

async fn names(store: &dyn Store, user: &str) -> Vec<String> {
    let found = store.of_user(user.into()).await.unwrap();
    found.into_iter().map(|connection| connection.name).collect()
}

#[rstest]
#[tokio::test]
async fn a_user_has_its_own_by_name_and_nobody_elses(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    for (user, name) in [("ann", "b"), ("ann", "a"), ("bob", "a")] {
        assert_eq!(put(&*store, &connection(user, name, "r"), Expected::Nothing).await, Put::Stored);
    }
    assert_eq!(names(&*store, "ann").await, ["a", "b"]);
    assert_eq!(names(&*store, "bob").await, ["a"]);
    assert_eq!(names(&*store, "a").await, [""; 0]);
    assert_eq!(store.of_user("bob".into()).await.unwrap(), [connection("bob", "a", "r")]);
}

#[rstest]
#[tokio::test]
async fn a_change_is_made_only_over_what_was_expected(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let (one, two) = (connection("ann", "a", "one"), connection("ann", "a", "two"));
    assert_eq!(put(&*store, &one, exactly(&two)).await, Put::Unexpected);
    assert_eq!(put(&*store, &one, Expected::Nothing).await, Put::Stored);
    assert_eq!(put(&*store, &two, Expected::Nothing).await, Put::Unexpected);
    let switched = StoredConnection { enabled: false, ..one.clone() };
    assert_eq!(put(&*store, &switched, exactly(&one)).await, Put::Stored);
    assert_eq!(put(&*store, &two, exactly(&one)).await, Put::Unexpected);
    assert_eq!(store.of_user("ann".into()).await.unwrap(), std::slice::from_ref(&switched));
    let delete = async |expected| store.delete("ann".into(), "a".to_owned(), expected).await.unwrap();
    assert!(!delete(exactly(&one)).await && !delete(Expected::Nothing).await);
    assert!(delete(exactly(&switched)).await && !delete(exactly(&switched)).await);
    assert!(names(&*store, "ann").await.is_empty());
}

#[rstest]
#[tokio::test]
async fn the_revision_differs_after_every_change_and_only_then(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let revision = async || store.revision("ann".into()).await.unwrap();
    let mut seen = vec![revision().await];
    let one = connection("ann", "a", "one");
    assert_eq!(put(&*store, &one, Expected::Nothing).await, Put::Stored);
    seen.push(revision().await);
    put(&*store, &one, exactly(&one)).await;
    seen.push(revision().await);
    let now = revision().await;
    put(&*store, &one, Expected::Nothing).await;
    put(&*store, &connection("bob", "a", "one"), Expected::Nothing).await;
    assert!(store.reseal(one.clone(), vec![1]).await.unwrap());
    assert_eq!(revision().await, now, "refused, of somebody else, or the same under another key");
    assert!(store.delete("ann".into(), "a".to_owned(), exactly(&one)).await.unwrap());
    seen.push(revision().await);
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[rstest]
#[tokio::test]
async fn of_many_at_once_a_user_gets_no_more_than_it_may_have(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let all = (0..8).map(|number| {
        let store = &*store;
        async move { put(store, &connection("ann", &format!("c{number}"), "r"), Expected::Nothing).await }
    });
    let done = futures::future::join_all(all).await;
    assert_eq!(done.iter().filter(|put| **put == Put::Stored).count(), MOST as usize, "{done:?}");
    assert_eq!(done.iter().filter(|put| **put == Put::Full).count(), 8 - MOST as usize, "{done:?}");
    let kept = store.of_user("ann".into()).await.unwrap().remove(0);
    assert_eq!(put(&*store, &kept, exactly(&kept)).await, Put::Stored, "one that is there may be replaced");
}

#[rstest]
#[tokio::test]
async fn pages_show_each_one_once_and_a_reseal_replaces_only_what_was_read(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    for (user, name) in [("ann", "a"), ("ann", "b"), ("bob", "a"), ("cid", "z")] {
        put(&*store, &connection(user, name, "r"), Expected::Nothing).await;
    }
    let (mut after, mut seen) = ((String::new(), String::new()), Vec::new());
    loop {
        let page = store.page(after, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = (last.user.as_str().to_owned(), last.name.clone());
        seen.extend(page.iter().map(|connection| format!("{}/{}", connection.user, connection.name)));
    }
    assert_eq!(seen, ["ann/a", "ann/b", "bob/a", "cid/z"]);

    let before = store.of_user("bob".into()).await.unwrap().remove(0);
    assert!(store.reseal(before.clone(), vec![9]).await.unwrap());
    assert!(!store.reseal(before.clone(), vec![8]).await.unwrap(), "what it read stands there no longer");
    let after = StoredConnection { sealed: vec![9], ..before };
    assert_eq!(store.of_user("bob".into()).await.unwrap(), [after]);
}

#[tokio::test]
async fn the_connections_of_a_user_are_found_by_their_key() {
    let database = Database::postgres().await;
    let store = database.migrated().await;
    let rows = "INSERT INTO mcp_connection SELECT 'u' || n, 'c', 'r', '', true FROM generate_series(1, 20000) n";
    database.ask(&format!("{rows}; ANALYZE mcp_connection")).await;
    assert_eq!(store.of_user(UserId::from("u9")).await.unwrap().len(), 1);
    let plan = crate::plans::last_plan(&database).await;
    assert!(plan.contains("mcp_connection_pkey") && !plan.contains("Seq Scan"), "{plan}");
}
