//! Standing streams for changes of the tool list.

use std::sync::{Arc, Mutex};

use caribou_ports::mcp::relayed::{CALLER, CAPABILITIES, INPUT_RESPONSES, REQUEST_STATE};
use caribou_ports::mcp::{Session, SessionEvent, ToolCall};
use http::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fake::{Client, Fake, discovered, empty, event, legacy, result, stream, text, tool, with};

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

/// A server with sessions that asks on its standing stream, if that is open, in the middle of each call.
async fn asking() -> Fake {
    let (standing, calls) = (Arc::new(Mutex::new(None)), Mutex::new(Vec::new()));
    Fake::start(move |seen| match (&seen.method, seen.rpc()) {
        (&Method::GET, _) => {
            let (chunks, response) = stream();
            *standing.lock().unwrap() = Some(chunks);
            response
        }
        (_, "tools/call") => {
            let Some(standing) = &*standing.lock().unwrap() else { return result(seen, json!({ "content": [] })) };
            let params = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
            let asked = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params });
            standing.send(event(&asked)).unwrap();
            let (chunks, response) = stream();
            calls.lock().unwrap().push((seen.body["id"].clone(), chunks));
            response
        }
        _ if seen.body["id"] == "q" => {
            for (id, call) in calls.lock().unwrap().drain(..) {
                let done = json!({ "answered": seen.body["result"] });
                call.send(event(&json!({ "jsonrpc": "2.0", "id": id, "result": done }))).unwrap();
            }
            empty(202)
        }
        (_, "initialize") => with(legacy(seen).unwrap(), "mcp-session-id", "s-1"),
        _ => legacy(seen).unwrap(),
    })
    .await
}

/// A call of somebody who can be asked this.
fn call_of(capabilities: &Value, more: &[(&str, &RawValue)]) -> ToolCall {
    let raw = |value: &Value| RawValue::from_string(value.to_string()).unwrap();
    let caller = raw(&json!({ "principal": "ann", "modern": true }));
    let mut meta = vec![(CAPABILITIES.to_owned(), raw(capabilities)), (CALLER.to_owned(), caller)];
    meta.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    ToolCall { meta, ..tool("ask", "{}") }
}

#[tokio::test]
async fn what_a_server_asks_on_its_standing_stream_is_asked_of_the_only_call_that_runs() {
    let fake = asking().await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    let can_fill_in = json!({ "elicitation": {} });
    let asked = session.call_tool(call_of(&can_fill_in, &[])).await.unwrap();
    let asked: Value = serde_json::from_str(asked.get()).unwrap();
    assert_eq!(asked["inputRequests"]["ask-1"]["params"]["message"], "?", "{asked}");
    let state = RawValue::from_string(asked["requestState"].to_string()).unwrap();
    let answers = RawValue::from_string(json!({ "ask-1": { "action": "accept" } }).to_string()).unwrap();
    let brought = [(REQUEST_STATE, &*state), (INPUT_RESPONSES, &*answers)];
    let done = session.call_tool(call_of(&can_fill_in, &brought)).await.unwrap();
    assert_eq!(done.get(), r#"{"answered":{"action":"accept"}}"#);
    let listened = fake.saw(|seen| seen.method == Method::GET).await;
    assert_eq!(listened.header("mcp-session-id"), Some("s-1"));
    assert_eq!(fake.asked().iter().filter(|asked| *asked == "GET").count(), 1);
}

#[tokio::test]
async fn nobody_listens_for_questions_that_nobody_could_answer() {
    let fake = asking().await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    for call in [tool("ask", "{}"), call_of(&json!({}), &[])] {
        assert_eq!(session.call_tool(call).await.unwrap().get(), r#"{"content":[]}"#);
    }
    assert!(!fake.asked().contains(&"GET".to_owned()));
}
