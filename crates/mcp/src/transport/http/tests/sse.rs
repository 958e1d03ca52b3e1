//! HTTP+SSE of 2024-11-05.

use std::sync::{Arc, Mutex};

use caribou_core::era::Era;
use caribou_ports::mcp::{CallError, OpenError, Progress, Session};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::fake::{Client, Fake, PATIENCE, call, empty, event, initialized, stream, text, tool};

type Stream = Arc<Mutex<Option<UnboundedSender<String>>>>;

/// A server whose stream at `/api/sse` names `endpoint` and that takes messages at `/api/messages`.
async fn server(endpoint: impl Into<String>) -> (Fake, Stream) {
    let (open, endpoint) = (Stream::default(), endpoint.into());
    let held = Arc::clone(&open);
    let fake = Fake::start(move |seen| {
        let mut open = open.lock().unwrap();
        match (&seen.method, seen.path.split('?').next().unwrap()) {
            (&Method::GET, "/api/sse") => {
                let (chunks, response) = stream();
                chunks.send(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n")).unwrap();
                *open = Some(chunks);
                response
            }
            (&Method::POST, "/api/messages") => {
                if let Some(answer) = answer(&seen.body) {
                    let chunks = open.as_ref().unwrap();
                    let _ = chunks.send(event(&json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": answer})));
                }
                text(202, "text/plain", "Accepted")
            }
            _ => empty(404),
        }
    })
    .await;
    (fake, held)
}

fn answer(body: &Value) -> Option<Value> {
    match body["method"].as_str()? {
        "initialize" => Some(initialized("2024-11-05")),
        "tools/call" if body["params"]["name"] == "hang" => None,
        "tools/call" => Some(json!({"content": []})),
        _ => None,
    }
}

async fn open(fake: &Fake, more: Value) -> Result<crate::session::ChannelSession, OpenError> {
    let mut settings = json!({"type": "sse", "headers": {"X-Key": "hunter22"}});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Client::new().open_with(&format!("{}/api/sse", fake.origin), settings).await
}

#[tokio::test]
async fn the_named_url_may_have_any_form() {
    for endpoint in ["/api/messages?sid=1", "messages?sid=1", "ABSOLUTE"] {
        let (fake, stream) = server("/api/messages?sid=1").await;
        let (fake, _stream) = match endpoint {
            "ABSOLUTE" => (fake, stream),
            relative => server(relative).await,
        };
        let session = open(&fake, json!({})).await.unwrap();
        assert_eq!((session.facts().era, session.facts().stateful), (Era::Legacy, true));
        assert_eq!(call(&session, "echo").await.unwrap(), r#"{"content":[]}"#);
        let posts = fake.seen().into_iter().filter(|seen| seen.method == Method::POST);
        assert!(posts.clone().count() >= 3);
        assert!(posts.into_iter().all(|seen| seen.path == "/api/messages?sid=1" && seen.header("x-key").is_some()));
    }
}

#[tokio::test]
async fn a_url_of_another_origin_is_refused_and_gets_no_request() {
    let other = Fake::start(|_| empty(200)).await;
    let (fake, _) = server(format!("{}/api/messages?sid=hunter23", other.origin)).await;
    let refused = open(&fake, json!({})).await.err().unwrap();
    let why = refused.to_string();
    assert!(why.contains("another origin") && !why.contains("hunter23"), "{why}");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_configured_message_url_wins_and_takes_the_servers_query() {
    let (fake, _stream) = server("/messages?sid=1").await;
    let session = open(&fake, json!({"message_url": format!("{}/api/messages", fake.origin)})).await.unwrap();
    call(&session, "echo").await.unwrap();
    fake.saw(|seen| seen.path == "/api/messages?sid=1").await;
}

#[tokio::test]
async fn a_stream_without_the_endpoint_event_says_so() {
    let fake = Fake::start(|_| text(200, "text/event-stream", ": nothing\n\n")).await;
    let refused = open(&fake, json!({})).await.err().unwrap();
    assert!(matches!(&refused, OpenError::Protocol(why) if why.contains("`endpoint` event")), "{refused}");
}

#[tokio::test]
async fn giving_up_the_wait_for_the_endpoint_closes_the_stream() {
    let (sender, mut opened) = tokio::sync::mpsc::unbounded_channel();
    let sender = Mutex::new(sender);
    let fake = Fake::start(move |_| {
        let (chunks, response) = stream();
        sender.lock().unwrap().send(chunks).unwrap();
        response
    })
    .await;
    let mut opening = Box::pin(open(&fake, json!({})));
    let stream_opened = tokio::time::timeout(PATIENCE, opened.recv());
    let chunks = tokio::select! {
        _ = &mut opening => panic!("it cannot open"),
        chunks = stream_opened => chunks.expect("no stream is asked for").unwrap(),
    };
    drop(opening);
    tokio::time::timeout(PATIENCE, chunks.closed()).await.expect("the stream stays open");
}

#[tokio::test]
async fn the_end_of_the_stream_ends_the_session_and_its_calls() {
    let (fake, stream) = server("/api/messages").await;
    let session = open(&fake, json!({})).await.unwrap();
    let ending = async {
        fake.saw(|seen| seen.body["params"]["name"] == "hang").await;
        stream.lock().unwrap().take();
    };
    let (called, ()) = tokio::join!(call(&session, "hang"), ending);
    assert!(matches!(called, Err(CallError::Disconnected { sent: true, .. })), "{called:?}");
    let ended = tokio::time::timeout(PATIENCE, session.ended()).await.expect("it never ends");
    assert!(ended.reason.contains("ended its event stream"), "{ended}");
    assert!(matches!(call(&session, "echo").await, Err(CallError::Disconnected { sent: false, .. })));
}

#[tokio::test]
async fn a_refusal_of_both_eras_leads_to_http_sse_on_the_same_url() {
    let (fake, _stream) = server("/api/messages").await;
    let session = Client::new().open(&format!("{}/api/sse", fake.origin)).await.unwrap();
    assert_eq!(session.facts().version, "2024-11-05");
    assert_eq!(fake.asked()[..4], ["server/discover", "initialize", "GET", "initialize"]);
    call(&session, "echo").await.unwrap();
}

#[tokio::test]
async fn questions_and_progress_come_over_the_one_stream() {
    let (fake, stream) = server("/api/messages").await;
    let session = open(&fake, json!({})).await.unwrap();
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let mut calling = tool("hang", "{}");
    calling.progress = Some(Arc::new(move |progress| {
        let Progress::Progress(report) = progress else { return };
        sender.send(report.get().to_owned()).unwrap();
    }));
    let serving = async {
        let seen = fake.saw(|seen| seen.body["params"]["name"] == "hang").await;
        let tell = |message: Value| stream.lock().unwrap().as_ref().unwrap().send(event(&message)).unwrap();
        let token = &seen.body["params"]["_meta"]["progressToken"];
        let params = json!({"progressToken": token, "progress": 1});
        tell(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        tell(json!({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"}));
        assert_eq!(heard.recv().await.unwrap(), r#"{"progress":1}"#);
        let answered = fake.saw(|seen| seen.body["id"] == "q1").await;
        assert_eq!(answered.body["error"]["code"], -32601);
        tell(json!({"jsonrpc": "2.0", "id": seen.body["id"].to_string(), "result": {"ok": 1}}));
    };
    let both = async { tokio::join!(session.call_tool(calling), serving) };
    let (called, ()) = tokio::time::timeout(PATIENCE, both).await.expect("it hangs");
    assert_eq!(called.unwrap().get(), r#"{"ok":1}"#);
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_and_a_closed_session_refuses() {
    let (fake, _stream) = server("/api/messages").await;
    let session = open(&fake, json!({})).await.unwrap();
    let seen = tokio::select! {
        _ = session.call_tool(tool("hang", "{}")) => panic!("it never answers"),
        seen = fake.saw(|seen| seen.body["params"]["name"] == "hang") => seen,
    };
    let cancelled = fake.saw(|seen| seen.rpc() == "notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], seen.body["id"]);
    session.close().await;
    assert!(matches!(call(&session, "echo").await, Err(CallError::Disconnected { sent: false, .. })));
}
