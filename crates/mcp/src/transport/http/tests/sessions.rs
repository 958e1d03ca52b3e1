//! Legacy sessions: kept, lost, opened again, ended.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use axum::response::Response;
use caribou_ports::mcp::{CallError, Session, SessionEvent};
use http::Method;
use serde_json::json;

use super::fake::{Client, Fake, PATIENCE, Seen, call, empty, initialized, legacy, result, stream, text, tool, with};

/// A server that knows the sessions in `known` and gives them the ids s-1, s-2, …; others are `gone`.
async fn server(known: Arc<Mutex<HashSet<String>>>, may_reopen: bool, gone: fn() -> Response) -> Fake {
    let given = Mutex::new(0);
    Fake::start(move |seen: &Seen| {
        let named = seen.header("mcp-session-id");
        let mut known = known.lock().unwrap();
        match (&seen.method, seen.rpc(), named) {
            (_, "server/discover", _) => empty(400),
            (_, "initialize", Some(_)) => empty(400),
            (_, "initialize", None) => {
                let mut given = given.lock().unwrap();
                *given += 1;
                let id = format!("s-{given}");
                if may_reopen || *given == 1 {
                    known.insert(id.clone());
                }
                with(result(seen, initialized("2025-11-25")), "mcp-session-id", &id)
            }
            (_, _, None) => empty(400),
            (_, _, Some(id)) if !known.contains(id) => gone(),
            (&Method::DELETE, _, Some(id)) => {
                known.remove(id);
                empty(200)
            }
            (_, "tools/call", Some(id)) => result(seen, json!({"session": id})),
            (_, "ping", _) => result(seen, json!({})),
            _ => legacy(seen).unwrap(),
        }
    })
    .await
}

#[tokio::test]
async fn a_forgotten_session_is_opened_once_for_all_and_the_calls_go_again() {
    const IN_WORDS: &str =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}"#;
    let answers: [fn() -> Response; 2] = [|| empty(404), || text(400, "application/json", IN_WORDS)];
    for gone in answers {
        let known = Arc::new(Mutex::new(HashSet::new()));
        let fake = server(Arc::clone(&known), true, gone).await;
        let client = Client::new();
        let session = client.open(&fake.url()).await.unwrap();
        assert!(session.facts().stateful);
        assert_eq!(call(&session, "x").await.unwrap(), r#"{"session":"s-1"}"#);
        known.lock().unwrap().clear();
        let answers = futures::future::join_all((0..10).map(|_| call(&session, "x"))).await;
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap() == r#"{"session":"s-2"}"#), "{answers:?}");
        assert_eq!(fake.asked().iter().filter(|asked| *asked == "initialize").count(), 2);
        assert_eq!(*client.events.lock().unwrap(), [SessionEvent::Reopened]);
    }
}

#[tokio::test]
async fn a_session_that_is_forgotten_twice_is_reported() {
    let known = Arc::new(Mutex::new(HashSet::new()));
    let fake = server(Arc::clone(&known), false, || empty(404)).await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    known.lock().unwrap().clear();
    let error = call(&session, "x").await.unwrap_err();
    assert!(error.to_string().contains("HTTP 404"), "{error}");
    let calls = fake.asked().iter().filter(|asked| *asked == "tools/call").count();
    assert!(calls <= 2, "{:?}", fake.asked());
}

#[tokio::test]
async fn closing_ends_the_session_upstream_once_and_fails_what_is_in_flight() {
    let held = Mutex::new(Vec::new());
    let fake = Fake::start(move |seen| match (&seen.method, seen.rpc()) {
        (_, "initialize") => with(result(seen, initialized("2025-11-25")), "mcp-session-id", "s-1"),
        (_, "tools/call") => {
            let (chunks, response) = stream();
            held.lock().unwrap().push(chunks);
            response
        }
        _ => legacy(seen).unwrap(),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    let closing = async {
        fake.saw(|seen| seen.rpc() == "tools/call").await;
        session.close().await;
        session.close().await;
    };
    let both = async { tokio::join!(session.call_tool(tool("sleep", "{}")), closing) };
    let (called, ()) = tokio::time::timeout(PATIENCE, both).await.expect("it hangs");
    assert!(matches!(called, Err(CallError::Disconnected { sent: true, .. })));
    let ended: Vec<Seen> = fake.seen().into_iter().filter(|seen| seen.method == Method::DELETE).collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].header("mcp-session-id"), Some("s-1"));
    assert!(matches!(call(&session, "x").await, Err(CallError::Disconnected { sent: false, .. })));
}

#[tokio::test]
async fn a_session_that_was_left_is_gone_on_with_while_the_server_keeps_it() {
    // Durability.md 2.2: sessions with remote servers outlive their owners where the server allows it.
    let known = Arc::new(Mutex::new(HashSet::new()));
    let fake = server(Arc::clone(&known), true, || empty(404)).await;
    let first = Client::new().open(&fake.url()).await.unwrap();
    assert!(!first.is_resumed());
    let resume = first.resumption();
    first.leave().await;
    drop(first);
    let next = Client { resume, ..Client::new() }.open(&fake.url()).await.unwrap();
    assert!(next.is_resumed() && next.facts().stateful && next.facts().capabilities.is_some());
    assert_eq!(call(&next, "x").await.unwrap(), r#"{"session":"s-1"}"#);
    assert_eq!(fake.asked().iter().filter(|asked| *asked == "initialize").count(), 1);
    assert!(fake.seen().iter().all(|seen| seen.method != Method::DELETE));

    // It forgets it: another one is opened, and that is said.
    known.lock().unwrap().clear();
    let later = Client { resume: next.resumption(), ..Client::new() }.open(&fake.url()).await.unwrap();
    assert!(!later.is_resumed());
    assert_eq!(call(&later, "x").await.unwrap(), r#"{"session":"s-2"}"#);
    // One that was gone on with is opened again in place like any other.
    known.lock().unwrap().clear();
    assert_eq!(call(&next, "x").await.unwrap(), r#"{"session":"s-3"}"#);
}

#[tokio::test]
async fn a_session_that_nobody_took_is_ended_upstream() {
    let fake = Fake::start(|seen| match seen.rpc() {
        "initialize" => with(result(seen, initialized("2025-11-25")), "mcp-session-id", "s-1"),
        _ => legacy(seen).unwrap(),
    })
    .await;
    drop(Client::new().open(&fake.url()).await.unwrap());
    fake.saw(|seen| seen.method == Method::DELETE).await;
}

#[tokio::test]
async fn a_server_that_holds_its_answer_to_a_notice_open_is_not_waited_for() {
    let held = Mutex::new(Vec::new());
    let fake = Fake::start(move |seen| match seen.rpc() {
        "notifications/initialized" => {
            let (chunks, response) = stream();
            held.lock().unwrap().push(chunks);
            response
        }
        "tools/call" => result(seen, json!({})),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    assert_eq!(call(&session, "x").await.unwrap(), "{}");
}
