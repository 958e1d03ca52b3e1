//! Sessions of clients mean the same in every store (mcp.md §3.3).

use std::time::Duration;

use caribou_ports::store::ClientSession;
use caribou_tests::eventually;
use rstest::rstest;

use crate::opened::{Kind, Opened};

const LONG: Duration = Duration::from_secs(3_600);

fn session(id: &str, principal: &str) -> ClientSession {
    ClientSession {
        id: id.to_owned(),
        principal: principal.into(),
        server: Some("s\u{fc}d".to_owned()),
        version: "2025-11-25".to_owned(),
        capabilities: r#"{"b":1.0,"a":{}}"#.to_owned(),
        log_level: None,
        subscriptions: Vec::new(),
    }
}

#[rstest]
#[tokio::test]
async fn a_session_is_found_as_it_was_stored_until_it_is_ended(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // mcp.md §17, S19.
    let store = Opened::new(kind).await;
    let find = async |id: &str| store.use_client_session(id.to_owned(), LONG).await.unwrap();
    assert_eq!(find("a").await, None);
    assert!(store.begin_client_session(session("a", "ann"), 9).await.unwrap());
    assert!(!store.begin_client_session(session("a", "bob"), 9).await.unwrap(), "the name is taken");
    let everywhere = ClientSession { server: None, ..session("b", "bob") };
    assert!(store.begin_client_session(everywhere.clone(), 9).await.unwrap());
    assert_eq!((find("a").await, find("b").await), (Some(session("a", "ann")), Some(everywhere)));
    assert!(store.set_client_log_level("a".to_owned(), "warning".to_owned()).await.unwrap());
    assert!(!store.set_client_log_level("c".to_owned(), "warning".to_owned()).await.unwrap());
    let noted = ClientSession { log_level: Some("warning".to_owned()), ..session("a", "ann") };
    assert_eq!(find("a").await, Some(noted));
    assert!(store.end_client_session("a".to_owned()).await.unwrap());
    assert!(!store.end_client_session("a".to_owned()).await.unwrap());
    assert!(find("a").await.is_none() && find("b").await.is_some());
}

#[rstest]
#[tokio::test]
async fn what_is_agreed_on_after_the_beginning_is_noted(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // mcp.md §3.4: the stream comes before `initialize`.
    let store = Opened::new(kind).await;
    let begun = ClientSession { version: String::new(), capabilities: "{}".to_owned(), ..session("a", "ann") };
    assert!(store.begin_client_session(begun, 9).await.unwrap());
    let agree = async |id: &str| {
        let agreed = session(id, "ann");
        store.agree_with_client(agreed.id, agreed.version, agreed.capabilities).await.unwrap()
    };
    assert!(agree("a").await && !agree("b").await);
    assert_eq!(store.use_client_session("a".to_owned(), LONG).await.unwrap(), Some(session("a", "ann")));
}

#[rstest]
#[tokio::test]
async fn a_session_keeps_what_it_is_subscribed_to_each_once_and_within_a_bound(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // mcp.md 14.6, the downstream session; invariant B1.
    let store = Opened::new(kind).await;
    assert!(store.begin_client_session(session("a", "ann"), 9).await.unwrap());
    let change = async |id: &str, uri: &str, is_wanted: bool| {
        store.subscribe_client(id.to_owned(), uri.to_owned(), is_wanted, 20).await.unwrap()
    };
    for uri in ["a://1", "a://1/2", "a://1"] {
        assert!(change("a", uri, true).await, "{uri}");
    }
    let found = async || store.use_client_session("a".to_owned(), LONG).await.unwrap().unwrap().subscriptions;
    assert_eq!(found().await, ["a://1/2", "a://1"], "one is no part of another");
    assert!(!change("a", "b://123", true).await, "too much");
    assert!(change("a", "a://1/2", false).await && change("a", "none", false).await);
    assert_eq!(found().await, ["a://1"]);
    assert!(change("a", "s\u{fc}d://1", true).await && !change("b", "a://1", true).await);
    assert_eq!(found().await, ["a://1", "s\u{fc}d://1"]);
}

#[rstest]
#[tokio::test]
async fn there_are_no_more_than_may_be_and_unused_ones_are_gone(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariant B1.
    let store = Opened::new(kind).await;
    for id in ["a", "b"] {
        assert!(store.begin_client_session(session(id, "ann"), 2).await.unwrap());
    }
    assert!(!store.begin_client_session(session("c", "ann"), 2).await.unwrap());
    assert_eq!(store.forget_client_sessions(LONG, 9).await.unwrap(), 0);
    let brief = Duration::from_millis(1);
    eventually(Duration::from_secs(20), "both are unused for a while", async || {
        let found = store.use_client_session("a".to_owned(), LONG).await.unwrap();
        (found.is_some() && store.forget_client_sessions(brief, 1).await.unwrap() == 1).then_some(())
    })
    .await;
    eventually(Duration::from_secs(20), "the other one too", async || {
        (store.forget_client_sessions(brief, 9).await.unwrap() == 1).then_some(())
    })
    .await;
    assert!(store.begin_client_session(session("c", "ann"), 1).await.unwrap());
}
