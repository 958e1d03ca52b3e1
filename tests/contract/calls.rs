//! Calls over REST: what goes to the server, what comes back, and what is refused how.

use std::time::{Duration, Instant};

use caribou_tests::{Caribou, HttpFake, Setup, StdioFake, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// Unknown members and types, odd key order, and numbers that no machine type holds.
const ODD_RESULT: &str = r#"{"zeta":1.0,"content":[{"type":"hologram","payload":{"b":9223372036854775808,"a":1e400}},{"text":"x","type":"text","_meta":{"k":-0.0}}],"structuredContent":{"n":18446744073709551617,"f":1.10},"isError":false,"_meta":{"z":null,"a":[]},"alpha":"\u00e9\ud83e\udd8c"}"#;

/// Invariant W1, over stdio and both answers of HTTP.
#[tokio::test]
async fn a_result_arrives_byte_for_byte() {
    let script = |http: Value| format!(r#"{{"http": {http}, "calls": {{"odd": [{{"result": {ODD_RESULT}}}]}}}}"#);
    let setup = Setup::new();
    let stdio = StdioFake::new(setup.home(), "stdio", script(json!({})).as_str());
    let whole = HttpFake::start(script(json!({ "answers": "json" })).as_str()).await;
    let events = HttpFake::start(script(json!({ "answers": "sse" })).as_str()).await;
    let setup = setup.server("a", stdio.entry()).server("b", whole.entry()).server("c", events.entry());
    let caribou = setup.start().await;
    for name in ["a_odd", "b_odd", "c_odd"] {
        let answer = caribou.call(name, json!({})).await;
        assert_eq!((answer.status, answer.raw("result").as_str()), (200, ODD_RESULT), "{name}");
    }
}

/// Invariant W1 in the other direction.
#[tokio::test]
async fn arguments_reach_the_server_as_they_were_written() {
    let (caribou, _fake) = Caribou::with_stdio(json!({ "calls": { "params": [{ "text": "$PARAMS" }] } })).await;
    for arguments in [
        "{}",
        r#"{"a":null}"#,
        r#"{"a":{"b":null}}"#,
        r#"{"a":[null]}"#,
        r#"{"a":"null"}"#,
        r#"{"z":1.0,"a":18446744073709551617}"#,
    ] {
        let answer =
            caribou.post("/api/mcp/tools/call", format!(r#"{{"name":"fake_params","arguments":{arguments}}}"#)).await;
        assert!(answer.text().contains(&format!(r#""arguments":{arguments}"#)), "{arguments}: {answer:?}");
    }
    let answer = caribou.post("/api/mcp/tools/call", r#"{"name":"fake_params"}"#).await;
    assert!(!answer.text().contains("null"), "{answer:?}");
}

#[tokio::test]
async fn text_that_looks_like_json_or_an_error_is_only_text() {
    let texts = ["null", r#"{"code":500,"error":"x"}"#, "[]", r#"{"isError":true}"#, ""];
    let calls: serde_json::Map<String, Value> =
        texts.iter().enumerate().map(|(at, text)| (format!("t{at}"), json!([{ "text": text }]))).collect();
    let (caribou, _fake) = Caribou::with_stdio(json!({ "calls": calls })).await;
    for (at, text) in texts.iter().enumerate() {
        let answer = caribou.call(&format!("fake_t{at}"), json!({})).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, *text));
    }
}

#[tokio::test]
async fn a_tool_that_failed_is_an_answer_and_a_call_that_failed_is_none() {
    let calls = json!({
        "failed": [{ "result": { "content": [], "isError": true } }],
        "refused": [{ "error": { "code": -32602, "message": "no such thing" } }],
    });
    let (caribou, _fake) = Caribou::with_stdio(json!({ "calls": calls })).await;
    let failed = caribou.call("fake_failed", json!({})).await;
    assert_eq!((failed.status, &failed.json()["result"]["isError"]), (200, &json!(true)));
    let refused = caribou.call("fake_refused", json!({})).await;
    assert_eq!((refused.status, refused.code().as_str()), (502, "upstream_error"));
    assert!(refused.detail().contains("no such thing"), "{refused:?}");
    let unknown = caribou.call("fake_unknown", json!({})).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "not_found"));
    let malformed = caribou.post("/api/mcp/tools/call", r#"{"nome": 1}"#).await;
    assert_eq!((malformed.status, malformed.code().as_str()), (422, "invalid"));
    assert!(malformed.json()["request_id"].is_string());
}

#[tokio::test]
async fn a_call_past_its_time_is_cancelled_upstream_once() {
    let script = json!({ "calls": { "hang": ["hang"], "echo": ["default"] } });
    let (caribou, fake) = Caribou::with_stdio(script).await;
    let body = json!({ "name": "fake_hang", "arguments": {}, "timeout": 0.5 });
    let begun = Instant::now();
    let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
    assert_eq!((answer.status, answer.code().as_str()), (504, "timeout"));
    assert!(begun.elapsed() < SOON);
    eventually(SOON, "the cancel", async || fake.log().events("cancelled").pop()).await;
    let (calls, cancels) = (fake.log().received("tools/call"), fake.log().received("notifications/cancelled"));
    assert_eq!((calls.len(), cancels.len()), (1, 1));
    assert_eq!(calls[0].message()["id"], cancels[0].message()["params"]["requestId"]);
    // The session is as good as before.
    let pid = fake.log().pids();
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    assert_eq!(fake.log().pids(), pid);
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_call() {
    let (caribou, fake) = Caribou::with_stdio(json!({ "calls": { "hang": ["hang"] } })).await;
    let body = json!({ "name": "fake_hang" }).to_string();
    let request = caribou.request("POST", "/api/mcp/tools/call").header("content-type", "application/json").body(body);
    let call = tokio::spawn(request.send());
    eventually(SOON, "the call", async || fake.log().received("tools/call").pop()).await;
    call.abort();
    eventually(SOON, "the cancel", async || fake.log().events("cancelled").pop()).await;
}

#[tokio::test]
async fn progress_comes_as_events_before_the_result() {
    let script = json!({ "calls": { "work": [{ "progress": 1 }, { "progress": 2 }, { "text": "done" }] } });
    let (caribou, fake) = Caribou::with_stdio(script).await;
    let body = json!({ "name": "fake_work" }).to_string();
    let request = caribou.request("POST", "/api/mcp/tools/call").header("accept", "text/event-stream");
    let answer = caribou.send(request.header("content-type", "application/json").body(body)).await;
    assert!(answer.content_type.starts_with("text/event-stream"), "{answer:?}");
    let events: Vec<&str> = answer.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["progress", "progress", "result"], "{answer:?}");
    // Nobody listened to this one, so no token was sent.
    caribou.call("fake_work", json!({})).await;
    let tokens: Vec<Value> = fake
        .log()
        .received("tools/call")
        .iter()
        .map(|seen| seen.message()["params"]["_meta"]["progressToken"].clone())
        .collect();
    assert!(!tokens[0].is_null() && tokens[1].is_null(), "{tokens:?}");
}
