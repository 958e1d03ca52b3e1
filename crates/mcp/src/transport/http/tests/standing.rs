//! Standing streams for changes of the tool list.

use std::sync::Mutex;

use caribou_ports::mcp::{Session, SessionEvent};
use http::Method;
use serde_json::json;

use super::fake::{Client, Fake, discovered, event, legacy, result, stream, text};

const CHANGED: &str = "notifications/tools/list_changed";

fn watching() -> Client {
    Client { watch_lists: true, ..Client::new() }
}

#[tokio::test]
async fn a_legacy_server_tells_on_its_get_stream() {
    let held = Mutex::new(Vec::new());
    let fake = Fake::start(move |seen| match seen.method {
        Method::GET => {
            let (chunks, response) = stream();
            chunks.send(event(&json!({"jsonrpc": "2.0", "method": CHANGED}))).unwrap();
            held.lock().unwrap().push(chunks);
            response
        }
        _ => legacy(seen).unwrap(),
    })
    .await;
    let client = watching();
    let session = client.open(&fake.url()).await.unwrap();
    assert_eq!(client.was_told(1).await, [SessionEvent::ToolsChanged]);
    assert_eq!(fake.saw(|seen| seen.method == Method::GET).await.header("accept"), Some("text/event-stream"));
    session.close().await;
}

#[tokio::test]
async fn a_modern_server_tells_on_a_subscription() {
    let held = Mutex::new(Vec::new());
    let fake = Fake::start(move |seen| match seen.rpc() {
        "server/discover" => discovered(seen),
        "subscriptions/listen" => {
            let (chunks, response) = stream();
            let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"});
            chunks.send(event(&acknowledged)).unwrap();
            chunks.send(event(&json!({"jsonrpc": "2.0", "method": CHANGED}))).unwrap();
            held.lock().unwrap().push(chunks);
            response
        }
        _ => result(seen, json!({})),
    })
    .await;
    let client = watching();
    let _session = client.open(&fake.url()).await.unwrap();
    assert_eq!(client.was_told(1).await, [SessionEvent::ToolsChanged]);
    let listened = fake.saw(|seen| seen.rpc() == "subscriptions/listen").await;
    assert_eq!(listened.body["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(listened.header("mcp-method"), Some("subscriptions/listen"));
}

#[tokio::test]
async fn a_server_without_a_standing_stream_is_asked_once() {
    let fake = Fake::start(|seen| legacy(seen).unwrap()).await;
    let session = watching().open(&fake.url()).await.unwrap();
    fake.saw(|seen| seen.method == Method::GET).await;
    session.list_tools().await.unwrap();
    assert_eq!(fake.asked().iter().filter(|asked| *asked == "GET").count(), 1);
}

#[tokio::test]
async fn what_was_missed_while_the_stream_was_broken_is_made_up_for() {
    let fake = Fake::start(|seen| match seen.method {
        Method::GET => text(200, "text/event-stream", event(&json!({"jsonrpc": "2.0", "method": CHANGED}))),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let client = watching();
    let _session = client.open(&fake.url()).await.unwrap();
    // One on each stream, and one for the time between them.
    assert_eq!(client.was_told(3).await, [(); 3].map(|()| SessionEvent::ToolsChanged));
}
