//! Servers over HTTP that forget sessions, redirect, frame their events oddly, or break off.

use std::time::{Duration, Instant};

use caribou_tests::{Caribou, HttpFake, Setup, eventually, network};
use futures::future::join_all;
use rstest::rstest;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_forgotten_session_is_opened_once_more_for_all_callers() {
    let (caribou, fake) = Caribou::with_http(json!({ "calls": { "bump": [{ "text": "$SN" }] } })).await;
    assert_eq!(caribou.call_in("t", "fake_bump", json!({})).await.text(), "1");
    fake.expire_sessions();
    let before = fake.log().received("initialize").len();
    let answers = join_all((0..10).map(|_| caribou.call_in("t", "fake_bump", json!({})))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(fake.log().received("initialize").len() - before, 1);
    assert!(answers.iter().any(|answer| answer.json()["session"]["restarted"] == true), "{answers:?}");
}

#[tokio::test]
async fn a_session_is_ended_at_the_server_when_it_is_closed() {
    let (caribou, fake) = Caribou::with_http(json!({ "calls": { "echo": ["default"] } })).await;
    assert_eq!(caribou.call_in("t", "fake_echo", json!({})).await.status, 200);
    assert_eq!(caribou.delete("/api/threads/t/mcp-sessions").await.status, 200);
    let deletes = || fake.log().events("recv").iter().filter(|seen| seen.method == "DELETE").count();
    eventually(SOON, "the DELETE", async || (deletes() >= 1).then_some(())).await;
}

/// The text holds characters of two and four bytes, so that a cut anywhere would show.
#[rstest]
#[case::lf("event: message\ndata: $JSON\n\n", 0)]
#[case::crlf("event: message\r\ndata: $JSON\r\n\r\n", 0)]
#[case::cr("event: message\rdata: $JSON\r\r", 0)]
#[case::mixed("event: message\r\ndata: $JSON\n\r\n", 0)]
#[case::byte_by_byte("event: message\r\ndata: $JSON\r\n\r\n", 1)]
#[case::no_space("data:$JSON\n\n", 0)]
#[case::byte_order_mark("\u{feff}event: message\ndata: $JSON\n\n", 0)]
#[case::other_fields(": comment\nid: 7\nretry: 10\nfoo: bar\njustaname\nevent: message\ndata: $JSON\n\n", 0)]
#[case::several_lines(
    "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\ndata: \"text\":\"café 🦊 end\"}]}}\n\n",
    0
)]
#[tokio::test]
async fn events_are_read_however_they_are_framed(#[case] event: &str, #[case] chunk: usize) {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"café 🦊 end"}]}}"#;
    let script = json!({
        "http": { "answers": "sse" }, "framing": { "chunk": chunk },
        "calls": { "odd": [{ "bytes": event.replace("$JSON", answer) }] },
    });
    let (caribou, _fake) = Caribou::with_http(script).await;
    assert_eq!(caribou.call("fake_odd", json!({})).await.text(), "café 🦊 end");
}

#[rstest]
#[case::clean(json!([{ "bytes": ": working\n\n" }, "end"]))]
#[case::reset(json!([{ "bytes": ": working\n\ndata: {\"jsonrpc\"" }, "reset"]))]
#[tokio::test]
async fn a_stream_that_ends_before_the_answer_fails_the_call_at_once(#[case] broken: Value) {
    let script = json!({ "http": { "answers": "sse" }, "calls": { "broken": broken, "echo": ["default"] } });
    let (caribou, fake) = Caribou::with_http(script).await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    let (handshakes, begun) = (fake.log().received("initialize").len(), Instant::now());
    let answer = caribou.call("fake_broken", json!({})).await;
    assert_eq!(answer.code(), "outcome_unknown", "{answer:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(fake.log().received("tools/call").len(), 2, "a call that may have run is not repeated");
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    assert_eq!(fake.log().received("initialize").len(), handshakes, "the session stays usable");
}

#[tokio::test]
async fn a_stream_that_can_be_resumed_is_resumed() {
    let later = json!([{ "resumable": "e-1" }, { "text": "at last" }]);
    let script = json!({ "http": { "answers": "sse" }, "calls": { "later": later } });
    let (caribou, fake) = Caribou::with_http(script).await;
    assert_eq!(caribou.call("fake_later", json!({})).await.text(), "at last");
    assert_eq!(fake.log().received("tools/call").len(), 1);
}

#[rstest]
#[case(307)]
#[case(308)]
#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_everything(#[case] status: u16) {
    let http = json!({ "path": "/mcp/", "redirects": { "/mcp": [status, "/mcp/"] } });
    let fake = HttpFake::start(json!({ "http": http, "calls": { "echo": ["default"] } })).await;
    let entry =
        json!({ "type": "http", "url": format!("{}/mcp", fake.url()), "headers": { "Authorization": "Bearer s" } });
    let caribou = Setup::new().server("fake", entry).start().await;
    assert_eq!(caribou.call("fake_echo", json!({ "a": 1 })).await.text(), r#"{"a":1}"#);
    let arrived: Vec<_> = fake.log().received("tools/call").into_iter().filter(|seen| seen.path == "/mcp/").collect();
    assert_eq!((arrived[0].method.as_str(), arrived[0].headers["authorization"].as_str()), ("POST", "Bearer s"));
}

/// Invariant O3: a credential never follows a redirect to another origin.
#[tokio::test]
async fn a_redirect_to_another_origin_is_refused() {
    let other = HttpFake::start(json!({})).await;
    let redirects = json!({ "/mcp": [307, format!("{}/mcp", other.url())] });
    let fake = HttpFake::start(json!({ "http": { "path": "/mcp/", "redirects": redirects } })).await;
    let entry =
        json!({ "type": "http", "url": format!("{}/mcp", fake.url()), "headers": { "Authorization": "Bearer s" } });
    let caribou = Setup::new().server("fake", entry).start().await;
    let servers = eventually(SOON, "the refusal", async || {
        let servers = caribou.get("/api/mcp/servers").await.json();
        (servers["servers"][0]["state"] == "failed").then_some(servers)
    })
    .await;
    assert!(servers["servers"][0]["last_error"].as_str().unwrap().contains("redirect"), "{servers}");
    assert!(other.log().all().is_empty(), "{:?}", other.log().all());
}

#[tokio::test]
async fn configured_headers_are_sent_and_replace_none_of_the_protocol() {
    let fake = HttpFake::start(json!({ "calls": { "echo": ["default"] } })).await;
    let headers =
        json!({ "X-Team": "blue", "Accept": "text/plain", "Mcp-Session-Id": "stolen", "Content-Type": "text/plain" });
    let caribou = Setup::new().server("fake", fake.entry_with(json!({ "headers": headers }))).start().await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    let call = &fake.log().received("tools/call")[0];
    assert_eq!(call.headers["x-team"], "blue");
    assert_ne!(call.headers["mcp-session-id"], "stolen");
}

#[tokio::test]
async fn a_server_that_refuses_a_newer_revision_is_asked_for_one_it_has() {
    let script =
        json!({ "versions": ["2025-06-18", "2025-03-26"], "on_mismatch": "refuse", "calls": { "echo": ["default"] } });
    let (caribou, fake) = Caribou::with_http(script).await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    let asked: Vec<Value> = fake
        .log()
        .received("initialize")
        .iter()
        .map(|seen| seen.message()["params"]["protocolVersion"].clone())
        .collect();
    assert_eq!(asked.last(), Some(&json!("2025-06-18")));
    assert!(fake.log().received("initialize").iter().all(|seen| !seen.headers.contains_key("mcp-protocol-version")));
}

#[tokio::test]
async fn http_sse_works_and_a_missing_endpoint_is_told_within_the_bound() {
    let fake = HttpFake::start(json!({ "calls": { "echo": ["default"] } })).await;
    let mute = HttpFake::start(json!({ "http": { "endpoint": null } })).await;
    let mut entry = mute.sse_entry();
    entry["session_init_timeout"] = json!(1.0);
    let caribou = Setup::new().server("fake", fake.sse_entry()).server("mute", entry).start().await;
    assert_eq!(caribou.call("fake_echo", json!({ "a": 1 })).await.text(), r#"{"a":1}"#);
    let told = eventually(SOON, "the failure", async || {
        let servers = caribou.get("/api/mcp/servers").await.json();
        servers["servers"].as_array()?.iter().find_map(|server| server["last_error"].as_str().map(str::to_owned))
    })
    .await;
    assert!(told.contains("endpoint"), "{told}");
    eventually(SOON, "the closed stream", async || mute.log().events("closed").pop()).await;
}

#[tokio::test]
async fn failures_at_one_address_do_not_count_against_another() {
    let nobody = json!({ "type": "http", "url": format!("http://127.0.0.1:{}/mcp", network::free_port()) });
    let caribou = Setup::new().server("fake", nobody).start().await;
    let is_left_alone = async || caribou.call("fake_echo", json!({})).await.detail().contains("several times in a row");
    eventually(SOON, "it is left alone", async || is_left_alone().await.then_some(())).await;
    let fake = HttpFake::start(json!({ "calls": { "echo": ["default"] } })).await;
    let mended = json!({ "mcp_servers": { "fake": fake.entry() } }).to_string();
    let put = caribou.request("PUT", "/api/mcp/config").header("content-type", "application/json").body(mended);
    assert_eq!(caribou.send(put).await.status, 200);
    let answer = caribou.call("fake_echo", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}
