//! Servers over stdio that frame their messages oddly, match them wrongly, or never end one.

use std::time::Duration;

use caribou_tests::process::peak_rss_kib;
use caribou_tests::{Caribou, Setup, StdioFake, eventually};
use futures::future::join_all;
use rstest::rstest;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

fn noise() -> String {
    let lines = [
        "Fake server running on stdio",
        "[09:00:01] INFO ready {not json",
        r#"{"level":"info"}"#,
        "42",
        "null",
        "[]",
        "\u{1b}[32mok\u{1b}[0m",
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0"}"#,
    ];
    format!("{}\n{{{}\n", lines.join("\n"), "x".repeat(3000))
}

#[rstest]
#[case::noise(json!({ "noise": noise() }))]
#[case::byte_order_mark_and_crlf(json!({ "bom": true, "crlf": true, "noise": "\r\n\n" }))]
#[case::ids_as_strings(json!({ "ids": "strings" }))]
#[case::arrays(json!({ "array": true }))]
#[case::everything_twice(json!({ "twice": true }))]
#[case::byte_by_byte(json!({ "chunk": 1 }))]
#[tokio::test]
async fn odd_framing_is_understood(#[case] framing: Value) {
    let (caribou, _fake) = Caribou::with_stdio(json!({ "framing": framing, "calls": { "echo": ["default"] } })).await;
    for n in 0..3 {
        let answer = caribou.call("fake_echo", json!({ "n": n })).await;
        assert_eq!(answer.text(), format!(r#"{{"n":{n}}}"#), "{}", caribou.log());
    }
}

#[tokio::test]
async fn an_answer_that_comes_at_once_or_twice_is_never_lost_or_mixed_up() {
    let script = json!({ "framing": { "twice": true }, "calls": { "echo": ["default"] } });
    let (caribou, _fake) = Caribou::with_stdio(script).await;
    for n in 0..200 {
        assert_eq!(caribou.call("fake_echo", json!({ "n": n })).await.text(), format!(r#"{{"n":{n}}}"#));
    }
    let answers = join_all((0..50).map(|n| caribou.call("fake_echo", json!({ "n": n }))));
    for (n, answer) in answers.await.iter().enumerate() {
        assert_eq!(answer.text(), format!(r#"{{"n":{n}}}"#));
    }
}

#[tokio::test]
async fn a_last_answer_without_a_line_end_is_read() {
    let last = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"last words"}]}}"#;
    let script = json!({ "calls": { "last": [{ "bytes": last }, { "die": 0 }] } });
    let (caribou, _fake) = Caribou::with_stdio(script).await;
    assert_eq!(caribou.call("fake_last", json!({})).await.text(), "last words");
}

#[rstest]
#[case::foreign(r#"{"jsonrpc":"2.0","id":1000000,"result":{"content":[]}}"#)]
#[case::always_zero(r#"{"jsonrpc":"2.0","id":0,"result":{"content":[]}}"#)]
#[tokio::test]
async fn an_answer_under_a_foreign_id_is_given_to_nobody(#[case] stray: &str) {
    let stray: Value = serde_json::from_str(stray).unwrap();
    let script = json!({ "calls": { "stray": [{ "send": stray }, "hang"], "echo": ["default"] } });
    let (caribou, _fake) = Caribou::with_stdio(script).await;
    let body = json!({ "name": "fake_stray", "timeout": 0.5 }).to_string();
    let answer = caribou.post("/api/mcp/tools/call", body).await;
    assert_eq!(answer.code(), "timeout", "{answer:?}");
    assert_eq!(caribou.call("fake_echo", json!({ "n": 1 })).await.text(), r#"{"n":1}"#);
}

#[tokio::test]
async fn messages_before_the_handshake_ends_do_no_harm() {
    let note = |method: &str| json!({ "send": { "jsonrpc": "2.0", "method": method } });
    let ping = json!({ "send": { "jsonrpc": "2.0", "id": "$ID", "method": "ping" } });
    let early = json!([
        note("notifications/tools/list_changed"),
        note("notifications/resources/list_changed"),
        ping,
        "default"
    ]);
    let (caribou, fake) =
        Caribou::with_stdio(json!({ "on": { "initialize": early }, "calls": { "echo": ["default"] } })).await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    // Our ping was answered, under the server's own id.
    eventually(SOON, "the answer to the ping", async || {
        fake.log().events("recv").into_iter().find(|seen| seen.mcp_method().is_empty() && seen.raw.contains("result"))
    })
    .await;
}

/// Invariant B1.
#[tokio::test]
async fn a_line_that_never_ends_costs_its_server_and_no_memory() {
    let setup = Setup::new();
    let gate = setup.home().join("gate");
    let begin = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":""#;
    let script = json!({ "calls": {
        "wait": [{ "until_file": gate }, { "text": "before the flood" }],
        "drip": [{ "bytes": begin }, { "repeat": { "steps": [{ "bytes": "A".repeat(65536) }] } }],
    } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry()).start().await;
    let (waited, dripped) = tokio::join!(caribou.call("fake_wait", json!({})), async {
        eventually(SOON, "the waiting call", async || fake.log().received("tools/call").pop()).await;
        caribou.home().write("gate", "");
        eventually(SOON, "its answer", async || fake.log().events("finished").pop()).await;
        caribou.call("fake_drip", json!({})).await
    });
    assert_eq!(waited.text(), "before the flood");
    assert_ne!(dripped.status, 200);
    let peak = peak_rss_kib(caribou.pid());
    assert!(peak < 200 * 1024, "{peak} KiB");
    let pid = fake.log().received("tools/call")[0].pid;
    eventually(SOON, "the server's end", async || (!caribou_tests::process::is_alive(pid)).then_some(())).await;
}

/// Invariant W1, at sizes where a copy would be seen.
#[tokio::test]
async fn eight_large_results_at_once_arrive_whole() {
    const BYTES: usize = 8 * 1024 * 1024;
    let (caribou, _fake) = Caribou::with_stdio(json!({ "calls": { "blob": [{ "blob": BYTES }] } })).await;
    let answers = join_all((0..8).map(|n| {
        let caribou = &caribou;
        async move { caribou.call_in(&format!("t{n}"), "fake_blob", json!({})).await }
    }));
    assert!(answers.await.iter().all(|answer| answer.text().len() == BYTES));
    let peak = peak_rss_kib(caribou.pid());
    assert!(peak < 500 * 1024, "{peak} KiB");
}

#[tokio::test]
async fn a_result_over_the_bound_is_refused_and_the_session_lives() {
    let setup = Setup::new();
    let script = json!({ "calls": { "blob": [{ "blob": 100_000 }], "pid": [{ "text": "$PID" }] } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry_with(json!({ "max_tool_result_bytes": 50_000 }))).start().await;
    let before = caribou.call("fake_pid", json!({})).await.text();
    let refused = caribou.call("fake_blob", json!({})).await;
    assert_eq!((refused.status, refused.code().as_str()), (502, "upstream_error"));
    assert!(refused.detail().contains("max_tool_result_bytes"), "{refused:?}");
    assert_eq!(caribou.call("fake_pid", json!({})).await.text(), before);
}
