//! The fake over HTTP does what its scripts say, and refuses clients that leave out what the protocol wants.

use std::time::Duration;

use caribou_tests::fake::tool;
use caribou_tests::network::http_client;
use caribou_tests::{Answer, HttpFake, eventually};
use futures::StreamExt;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

async fn post(fake: &HttpFake, body: &Value, headers: &[(&str, &str)]) -> reqwest::Response {
    let url = fake.entry()["url"].as_str().unwrap().to_owned();
    let mut request = http_client().post(url).body(body.to_string());
    for (name, value) in [("accept", "application/json, text/event-stream"), ("content-type", "application/json")] {
        request = request.header(name, value);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn open(fake: &HttpFake) -> String {
    let hello = post(fake, &request("initialize", json!({ "protocolVersion": "2025-06-18" })), &[]).await;
    hello.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_is_wanted_counted_and_forgotten() {
    let script = json!({ "tools": [tool("bump")], "calls": { "bump": [{ "text": "$SN" }] } });
    let fake = HttpFake::start(script).await;
    let call = request("tools/call", json!({ "name": "bump" }));
    assert_eq!(post(&fake, &call, &[]).await.status(), 400);
    let session = open(&fake).await;
    let with = [("mcp-session-id", session.as_str())];
    for count in ["1", "2"] {
        assert_eq!(Answer::read(post(&fake, &call, &with).await).await.text(), count);
    }
    fake.expire_sessions();
    assert_eq!(post(&fake, &call, &with).await.status(), 404);
    assert_eq!((fake.sessions(), fake.log().received("tools/call").len()), (0, 4));
}

#[tokio::test]
async fn a_client_that_accepts_too_little_or_says_things_twice_is_refused() {
    let fake = HttpFake::start(json!({})).await;
    let url = fake.entry()["url"].as_str().unwrap().to_owned();
    let half = http_client().post(url).header("accept", "application/json").body("{}").send().await.unwrap();
    assert_eq!(half.status(), 406);
    assert_eq!(post(&fake, &request("ping", json!({})), &[("accept", "*/*")]).await.status(), 400);
}

#[tokio::test]
async fn a_modern_request_must_mirror_its_body_in_its_headers() {
    let fake = HttpFake::start(json!({ "eras": "modern", "tools": [tool("a")] })).await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                       "io.modelcontextprotocol/clientCapabilities": {} });
    let call = request("tools/call", json!({ "name": "a", "arguments": { "x": 1 }, "_meta": meta }));
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    let wrong = Answer::read(post(&fake, &call, &[version, method, ("mcp-name", "b")]).await).await;
    assert_eq!((wrong.status, &wrong.json()["error"]["code"]), (400, &json!(-32020)));
    let right = Answer::read(post(&fake, &call, &[version, method, ("mcp-name", "a")]).await).await;
    assert_eq!((right.text().as_str(), &right.json()["result"]["resultType"]), (r#"{"x":1}"#, &json!("complete")));
}

#[tokio::test]
async fn a_refused_revision_is_named_with_those_it_has() {
    let fake = HttpFake::start(json!({ "versions": ["2025-06-18"], "on_mismatch": "refuse" })).await;
    let hello = request("initialize", json!({ "protocolVersion": "2025-11-25" }));
    let refused = Answer::read(post(&fake, &hello, &[]).await).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("2025-06-18"), "{refused:?}");
    let session = open(&fake).await;
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(post(&fake, &request("ping", json!({})), &headers).await.status(), 400);
}

#[tokio::test]
async fn an_answer_comes_as_events_in_pieces_and_may_break_off() {
    let script = json!({
        "http": { "answers": "sse", "sessions": false }, "framing": { "chunk": 1 },
        "calls": { "whole": [{ "progress": 1 }, { "text": "ok 🦌" }], "broken": [{ "bytes": ": hm\n\n" }, "reset"],
                   "later": [{ "resumable": "e-1" }, { "text": "at last" }] },
    });
    let fake = HttpFake::start(script).await;
    let call = |name: &str| request("tools/call", json!({ "name": name, "_meta": { "progressToken": "t" } }));
    let whole = Answer::read(post(&fake, &call("whole"), &[]).await).await;
    assert!(whole.body.contains("notifications/progress") && whole.body.contains("ok 🦌"), "{whole:?}");
    let broken = post(&fake, &call("broken"), &[]).await;
    assert!(broken.text().await.is_err());
    let later = Answer::read(post(&fake, &call("later"), &[]).await).await;
    assert!(later.body.starts_with("id: e-1\n") && !later.body.contains("at last"), "{later:?}");
    let url = fake.entry()["url"].as_str().unwrap().to_owned();
    let resumed = http_client().get(url).header("last-event-id", "e-1").send().await.unwrap();
    assert!(resumed.text().await.unwrap().contains("at last"));
}

#[tokio::test]
async fn redirects_and_foreign_answers_are_scripted_too() {
    let redirects = json!({ "/mcp": [307, "/mcp/"] });
    let fake = HttpFake::start(json!({ "http": { "path": "/mcp/", "redirects": redirects } })).await;
    let moved = http_client().post(format!("{}/mcp", fake.url())).send().await.unwrap();
    assert_eq!((moved.status().as_u16(), &moved.headers()["location"]), (307, &"/mcp/".parse().unwrap()));
    let fake = HttpFake::start(json!({ "http": { "always": { "code": 200, "body": "<html>" } } })).await;
    assert_eq!(Answer::read(post(&fake, &json!({}), &[]).await).await.body, "<html>");
}

#[tokio::test]
async fn http_sse_names_its_endpoint_and_answers_on_the_stream() {
    let fake = HttpFake::start(json!({ "tools": [tool("a")] })).await;
    let opened = http_client().get(fake.sse_entry()["url"].as_str().unwrap()).send().await.unwrap();
    let mut chunks = opened.bytes_stream();
    let first = tokio::time::timeout(SOON, chunks.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(first, "event: endpoint\ndata: /messages?sid=1\n\n");
    eventually(SOON, "the subscription", async || fake.log().events("opened").pop()).await;
    let list = request("tools/list", json!({})).to_string();
    let accepted = http_client().post(format!("{}/messages?sid=1", fake.url())).body(list).send().await.unwrap();
    assert_eq!(accepted.status(), 202);
    let answer = tokio::time::timeout(SOON, chunks.next()).await.unwrap().unwrap().unwrap();
    assert!(answer.starts_with(b"event: message\ndata: {"), "{answer:?}");
    drop(chunks);
    eventually(SOON, "the stream's end", async || {
        fake.push(&json!({}));
        fake.log().events("closed").pop()
    })
    .await;
}

#[tokio::test]
async fn calls_take_turns_by_the_task_they_name_and_follow_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("there");
    let told = json!({ "structured": { "task_id": "$TASK", "turn": "$TURN" } });
    let script = json!({ "http": { "sessions": false }, "calls": {
        "look": [{ "turns": [[told], [{ "failure": "of $TASK" }]] }],
        "wait": [{ "if_file": { "path": &file, "steps": [{ "text": "there" }], "otherwise": [{ "text": "not yet" }] } }],
        "slow": [{ "until_file": &file }, { "text": "done" }],
    } });
    let fake = HttpFake::start(script).await;
    let call = async |name: &str, arguments: Value| {
        let call = request("tools/call", json!({ "name": name, "arguments": arguments }));
        Answer::read(post(&fake, &call, &[]).await).await.json()["result"].clone()
    };
    for task in ["a", "b"] {
        let first = call("look", json!({ "task_id": task })).await;
        assert_eq!(first["structuredContent"], json!({ "task_id": task, "turn": "1" }));
    }
    for _ in 0..2 {
        let second = call("look", json!({ "task_id": "a" })).await;
        assert_eq!((&second["isError"], &second["content"][0]["text"]), (&json!(true), &json!("of a")));
    }
    assert_eq!(call("wait", json!({})).await["content"][0]["text"], "not yet");
    let touched = async {
        eventually(SOON, "two calls", async || (fake.log().overlap("slow") == 2).then_some(())).await;
        std::fs::write(&file, "").unwrap();
    };
    futures::join!(call("slow", json!({})), call("slow", json!({})), touched);
    assert_eq!(call("wait", json!({})).await["content"][0]["text"], "there");
    assert_eq!((fake.log().overlap("look"), fake.log().calls("look").len()), (1, 4));
}
