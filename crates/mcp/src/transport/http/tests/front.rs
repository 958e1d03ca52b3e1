//! A stdio front, seen from the server behind it.

use std::sync::Mutex;

use caribou_core::config::Secret;
use caribou_egress::WayOut;
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};

use super::fake::{Fake, PATIENCE, empty, error, event, legacy, result, stream, text, with};
use crate::front::{Front, FrontOptions};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The client of a front that runs.
struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
}

impl Client {
    fn of(fake: &Fake) -> Self {
        let options = FrontOptions {
            url: fake.url(),
            headers: vec![("X-Key".to_owned(), Secret::new("hunter2-hunter2"))],
            way_out: WayOut::default(),
            max_message_bytes: 1024 * 1024,
        };
        let (input, theirs) = duplex(64 * 1024);
        let (ours, output) = duplex(64 * 1024);
        let front = Front::new(options).unwrap();
        tokio::spawn(front.run(theirs, ours, std::future::pending()));
        Self { input, output: BufReader::new(output).lines() }
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a line comes");
        serde_json::from_str(&line.unwrap().expect("the front runs")).unwrap()
    }
}

/// A request of the modern era.
fn modern(id: u32, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": id });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[tokio::test]
async fn the_stream_of_a_session_is_opened_again_where_it_ended() {
    let fake = Fake::start(|seen| match (&seen.method, seen.rpc()) {
        (&Method::GET, _) => {
            let place = seen.header("last-event-id").unwrap_or("none");
            let told = json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "after": place } });
            text(200, "text/event-stream", format!("id: e-1\nretry: 10\n{}", event(&told)))
        }
        (_, "initialize") => with(legacy(seen).unwrap(), "mcp-session-id", "s-1"),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let mut client = Client::of(&fake);
    client.write(HELLO).await;
    assert_eq!(client.read().await["id"], 0);
    client.write(INITIALIZED).await;
    for after in ["none", "e-1", "e-1"] {
        assert_eq!(client.read().await["params"]["after"], after);
    }
    let heard = fake.saw(|seen| seen.method == Method::GET).await;
    let header = |name| heard.header(name).unwrap().to_owned();
    assert_eq!(
        [header("mcp-session-id"), header("mcp-protocol-version"), header("x-key")],
        ["s-1", "2025-11-25", "hunter2-hunter2"]
    );
    client.input.shutdown().await.unwrap();
    let goodbye = fake.saw(|seen| seen.method == Method::DELETE).await;
    assert_eq!(goodbye.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn headers_of_the_modern_era_mirror_the_message_also_for_a_tool_that_was_not_listed() {
    // mcp.md §3.1.
    let fake = Fake::start(|seen| match (seen.rpc(), seen.header("mcp-param-region")) {
        ("tools/list", _) => {
            let region = json!({ "type": "string", "x-mcp-header": "Region" });
            let tool = |name| json!({ "name": name, "inputSchema": { "properties": { "region": region.clone() } } });
            let second = seen.body["params"]["cursor"] == "2";
            let page =
                if second { json!({ "tools": [tool("deploy")] }) } else { json!({ "tools": [], "nextCursor": "2" }) };
            result(seen, page)
        }
        ("tools/call", None) => error(seen, 400, -32_020, "Mcp-Param-Region is missing"),
        _ => result(seen, json!({ "content": [] })),
    })
    .await;
    let mut client = Client::of(&fake);
    for id in [1, 2] {
        let call = json!({ "name": "deploy", "arguments": { "region": "eu" } });
        client.write(&modern(id, "tools/call", call)).await;
        let answer = client.read().await;
        assert!(answer["id"] == id && answer["result"].is_object(), "{answer}");
    }
    assert_eq!(fake.asked(), ["tools/call", "tools/list", "tools/list", "tools/call", "tools/call"]);
    let called = fake.saw(|seen| seen.header("mcp-param-region").is_some()).await;
    let header = |name| called.header(name).unwrap().to_owned();
    assert_eq!(
        [header("mcp-protocol-version"), header("mcp-method"), header("mcp-name"), header("mcp-param-region")],
        ["2026-07-28", "tools/call", "deploy", "eu"]
    );
    let listed = fake.saw(|seen| seen.rpc() == "tools/list").await;
    assert!(listed.body["params"]["_meta"]["progressToken"].is_null(), "{:?}", listed.body);
}

#[tokio::test]
async fn a_request_of_the_modern_era_is_cancelled_by_closing_its_stream() {
    // mcp.md §2.4: there is no such notice over HTTP.
    let held = std::sync::Arc::new(Mutex::new(None));
    let holds = held.clone();
    let fake = Fake::start(move |seen| match seen.rpc() {
        "tools/call" => {
            let (chunks, response) = stream();
            *holds.lock().unwrap() = Some(chunks);
            response
        }
        "ping" => result(seen, json!({})),
        _ => empty(202),
    })
    .await;
    let mut client = Client::of(&fake);
    client.write(&modern(1, "tools/call", json!({ "name": "long" }))).await;
    fake.saw(|seen| seen.rpc() == "tools/call").await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1, "_meta": meta } });
    client.write(&cancel.to_string()).await;
    let chunks = held.lock().unwrap().take().unwrap();
    tokio::time::timeout(PATIENCE, chunks.closed()).await.expect("the stream is closed");
    client.write(&modern(2, "ping", json!({}))).await;
    assert_eq!(client.read().await["id"], 2, "nothing is said of the other");
    assert_eq!(fake.asked(), ["tools/call", "ping"]);
}
