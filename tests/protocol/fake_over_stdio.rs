//! The fake over stdio does what its scripts say.

use std::process::Stdio;
use std::time::Duration;

use caribou_tests::caribou::binary;
use caribou_tests::fake::tool;
use caribou_tests::{Home, StdioFake, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const SOON: Duration = Duration::from_secs(20);

/// A fake driven by hand.
struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    fn start(fake: &StdioFake) -> Self {
        let variables = fake.variables();
        let variables = variables.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap()));
        let mut command = Command::new(binary("fake-mcp"));
        command.envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { stdin: child.stdin.take(), stdout, child }
    }

    async fn send(&mut self, message: Value) {
        self.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(SOON, self.stdout.read_line(&mut line)).await.expect("a line comes soon").unwrap();
        line
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).await;
        serde_json::from_str(&self.line().await).unwrap()
    }

    async fn rest(&mut self) -> String {
        let mut rest = String::new();
        tokio::time::timeout(SOON, self.stdout.read_to_string(&mut rest)).await.expect("ends soon").unwrap();
        rest
    }
}

#[tokio::test]
async fn a_legacy_fake_shakes_hands_lists_in_pages_and_echoes() {
    let home = Home::new();
    let script = json!({ "tools": [tool("a"), tool("b"), tool("c")], "page": 2, "versions": ["2025-06-18"] });
    let fake = StdioFake::new(&home, "plain", script);
    let mut peer = Peer::start(&fake);
    let hello = peer.ask("initialize", json!({ "protocolVersion": "2025-11-25" })).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(peer.ask("server/discover", json!({})).await["error"]["code"], -32601);
    let page = peer.ask("tools/list", json!({})).await;
    assert_eq!(page["result"]["tools"].as_array().unwrap().len(), 2);
    let page = peer.ask("tools/list", json!({ "cursor": page["result"]["nextCursor"] })).await;
    assert_eq!(page["result"]["tools"][0]["name"], "c");
    assert!(page["result"].get("nextCursor").is_none());
    let echoed = peer.ask("tools/call", json!({ "name": "a", "arguments": { "k": null } })).await;
    assert_eq!(echoed["result"]["content"][0]["text"], r#"{"k":null}"#);
    drop(peer.stdin.take());
    assert!(peer.child.wait().await.unwrap().success());
    assert_eq!(fake.log().received("tools/list").len(), 2);
    assert_eq!(fake.log().events("eof").len(), 1);
}

#[tokio::test]
async fn a_modern_fake_wants_its_metadata_and_knows_no_handshake() {
    let home = Home::new();
    let mut peer = Peer::start(&StdioFake::new(&home, "modern", json!({ "eras": "modern", "tools": [tool("a")] })));
    assert_eq!(peer.ask("initialize", json!({ "protocolVersion": "2025-11-25" })).await["error"]["code"], -32022);
    assert_eq!(peer.ask("tools/list", json!({})).await["error"]["code"], -32602);
    let version = "io.modelcontextprotocol/protocolVersion";
    assert_eq!(peer.ask("tools/list", json!({ "_meta": { version: "2026-07-28" } })).await["error"]["code"], -32602);
    let meta = json!({ version: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    assert_eq!(peer.ask("server/discover", json!({ "_meta": meta })).await["result"]["resultType"], "complete");
    let page = peer.ask("tools/list", json!({ "_meta": meta })).await;
    assert_eq!((&page["result"]["resultType"], &page["result"]["tools"][0]["name"]), (&json!("complete"), &json!("a")));
}

#[tokio::test]
async fn framing_is_as_odd_as_the_script_wants() {
    let home = Home::new();
    let framing = json!({ "bom": true, "crlf": true, "noise": "hello\n", "ids": "strings", "array": true });
    let mut peer = Peer::start(&StdioFake::new(&home, "odd", json!({ "framing": framing })));
    peer.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await;
    assert_eq!(peer.line().await, "\u{feff}hello\n");
    let line = peer.line().await;
    assert!(line.ends_with("]\r\n"), "{line:?}");
    let array: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((array[0]["method"].as_str(), &array[1]["id"]), (Some("notifications/message"), &json!("3")));
}

#[tokio::test]
async fn a_call_counts_dies_and_leaves_words_behind() {
    let home = Home::new();
    let last = r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#;
    let script = json!({
        "start": [{ "stderr": "here I am\n" }],
        "calls": { "count": [{ "text": "$N of $PID" }], "last": [{ "bytes": last }, { "die": 7 }] },
    });
    let mut peer = Peer::start(&StdioFake::new(&home, "mortal", script));
    let pid = peer.child.id().unwrap();
    let answer = peer.ask("tools/call", json!({ "name": "count" })).await;
    assert_eq!(answer["result"]["content"][0]["text"], format!("1 of {pid}"));
    peer.send(json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": { "name": "last" } })).await;
    assert_eq!(peer.rest().await, last.replace("$ID", "8"));
    assert_eq!(peer.child.wait().await.unwrap().code(), Some(7));
    let mut stderr = String::new();
    peer.child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
    assert_eq!(stderr, "here I am\n");
}

#[tokio::test]
async fn a_call_held_by_a_file_ends_when_cancelled() {
    let home = Home::new();
    let gate = home.join("gate");
    let script = json!({ "calls": { "held": [{ "until_file": gate }, { "text": "free" }] } });
    let fake = StdioFake::new(&home, "held", script);
    let mut peer = Peer::start(&fake);
    for id in [1, 2] {
        let params = json!({ "name": "held" });
        peer.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }
    let params = json!({ "requestId": 1 });
    // Both calls must be under way before one is cancelled.
    eventually(SOON, "two calls", async || (fake.log().received("tools/call").len() == 2).then_some(())).await;
    assert_eq!(peer.ask("ping", json!({})).await["id"], 7);
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    eventually(SOON, "the cancel", async || fake.log().events("cancelled").pop()).await;
    home.write("gate", "");
    let answer: Value = serde_json::from_str(&peer.line().await).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(2), &json!("free")));
}
