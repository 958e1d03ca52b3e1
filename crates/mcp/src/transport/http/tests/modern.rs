//! What every modern request carries, and mirrored arguments.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use caribou_ports::mcp::{CallError, Session};
use serde_json::json;

use super::fake::{Client, Fake, PATIENCE, Seen, call, discovered, error, result, stream, text, tool};

fn listed(seen: &Seen) -> axum::response::Response {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let bad = json!({"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}});
    let tools = json!([{"name": "where", "inputSchema": schema}, {"name": "bad", "inputSchema": bad}]);
    result(seen, json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}))
}

#[tokio::test]
async fn headers_mirror_the_body() {
    let fake = Fake::start(|seen| match seen.rpc() {
        "server/discover" => discovered(seen),
        "tools/list" => listed(seen),
        _ => result(seen, json!({"resultType": "complete"})),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    let listing = session.list_tools().await.unwrap();
    assert_eq!((listing.tools.len(), listing.warnings.len()), (1, 1));
    session.call_tool(tool("where", r#"{"region":"süd"}"#)).await.unwrap();
    session.call_tool(tool("where", r#"{"region":null}"#)).await.unwrap();
    for seen in fake.seen() {
        let meta = &seen.body["params"]["_meta"];
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
        assert_eq!(seen.header("mcp-method"), Some(seen.rpc()));
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(seen.header("mcp-session-id"), None);
    }
    let calls: Vec<Seen> = fake.seen().into_iter().filter(|seen| seen.rpc() == "tools/call").collect();
    assert_eq!(calls[0].header("mcp-name"), Some("where"));
    assert_eq!(calls[0].header("mcp-param-region"), Some("=?base64?c8O8ZA==?="));
    assert_eq!(calls[1].header("mcp-param-region"), None);
}

#[tokio::test]
async fn a_call_refused_for_its_headers_leads_to_one_list_and_one_retry() {
    let calls = AtomicU32::new(0);
    let fake = Fake::start(move |seen| match (seen.rpc(), seen.header("mcp-param-region")) {
        ("server/discover", _) => discovered(seen),
        ("tools/list", _) => listed(seen),
        (_, Some("eu")) if calls.fetch_add(1, Ordering::SeqCst) == 0 => result(seen, json!({"ok": true})),
        _ => error(seen, 400, -32020, "Header mismatch"),
    })
    .await;
    let client = Client::new();
    let session = client.open(&fake.url()).await.unwrap();
    let calling = || session.call_tool(tool("where", r#"{"region":"eu"}"#));
    assert_eq!(calling().await.unwrap().get(), r#"{"ok":true}"#);
    let refused = calling().await.unwrap_err();
    assert!(matches!(refused, CallError::Rpc { code: -32020, .. }), "{refused}");
    let expected = ["tools/call", "tools/list", "tools/call"];
    assert_eq!(fake.asked()[1..], [expected, expected].concat());
}

#[tokio::test]
async fn a_modern_stream_is_never_resumed() {
    let fake = Fake::start(|seen| match seen.rpc() {
        "server/discover" => discovered(seen),
        _ => text(200, "text/event-stream", "id: e-1\nretry: 0\ndata:\n\n"),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    let error = call(&session, "x").await.unwrap_err();
    assert!(matches!(error, CallError::StreamEnded(_)), "{error}");
    assert_eq!(fake.asked(), ["server/discover", "tools/call"]);
}

#[tokio::test]
async fn giving_a_call_up_closes_its_stream_and_says_nothing() {
    let (sender, mut opened) = tokio::sync::mpsc::unbounded_channel();
    let sender = Mutex::new(sender);
    let fake = Fake::start(move |seen| match seen.rpc() {
        "server/discover" => discovered(seen),
        _ => {
            let (chunks, response) = stream();
            sender.lock().unwrap().send(chunks).unwrap();
            response
        }
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    let calling = session.call_tool(tool("sleep", "{}"));
    let chunks = tokio::select! {
        _ = calling => panic!("it never answers"),
        chunks = opened.recv() => chunks.unwrap(),
    };
    let closed = async {
        chunks.closed().await;
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the stream stays open");
    assert_eq!(fake.asked(), ["server/discover", "tools/call"]);
}
