//! Both eras, over both transports: how they are told apart and what each request carries.

use std::time::Duration;

use caribou_tests::{Caribou, Setup, StdioFake};
use rstest::rstest;
use serde_json::{Value, json};

#[rstest]
#[case::legacy("legacy", "legacy")]
#[case::modern("modern", "modern")]
#[case::both("both", "modern")]
#[tokio::test]
async fn the_era_of_a_stdio_server_is_found(#[case] eras: &str, #[case] spoken: &str) {
    let (caribou, fake) =
        Caribou::with_stdio(json!({ "eras": eras, "calls": { "params": [{ "text": "$PARAMS" }] } })).await;
    let answer = caribou.call("fake_params", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let era = caribou.get("/api/mcp/servers").await.json()["servers"][0]["era"].clone();
    assert_eq!(era, spoken);
    let first = fake.log().events("recv")[0].mcp_method();
    assert_eq!(first, "server/discover");
    let params: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28", spoken == "modern");
}

#[rstest]
#[case::legacy("legacy", "legacy")]
#[case::modern("modern", "modern")]
#[case::both("both", "modern")]
#[tokio::test]
async fn the_era_of_an_http_server_is_found(#[case] eras: &str, #[case] spoken: &str) {
    let (caribou, fake) = Caribou::with_http(json!({ "eras": eras, "calls": { "echo": ["default"] } })).await;
    assert_eq!(caribou.call("fake_echo", json!({ "a": 1 })).await.text(), r#"{"a":1}"#);
    let era = caribou.get("/api/mcp/servers").await.json()["servers"][0]["era"].clone();
    assert_eq!(era, spoken);
    if spoken == "modern" {
        assert!(fake.log().received("initialize").is_empty());
        assert!(fake.log().events("recv").iter().all(|seen| !seen.headers.contains_key("mcp-session-id")));
    }
}

#[tokio::test]
async fn a_server_that_ignores_the_probe_counts_as_legacy() {
    let setup = Setup::new().settings("protocol:\n  probe_seconds: 0.3\n");
    let script = json!({ "on": { "server/discover": [] }, "calls": { "echo": ["default"] } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry()).start().await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_server_told_to_be_legacy_is_not_probed() {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "eras": "both", "calls": { "echo": ["default"] } }));
    let caribou = setup.server("fake", fake.entry_with(json!({ "protocol": "legacy" }))).start().await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    assert!(fake.log().received("server/discover").is_empty());
}

#[tokio::test]
async fn a_modern_http_call_is_cancelled_by_closing_its_stream() {
    let script = json!({ "eras": "modern", "http": { "answers": "sse" }, "calls": { "hang": [{ "bytes": ": here\n\n" }, "hang"] } });
    let (caribou, fake) = Caribou::with_http(script).await;
    let body = json!({ "name": "fake_hang", "timeout": 0.5 }).to_string();
    assert_eq!(caribou.post("/api/mcp/tools/call", body).await.code(), "timeout");
    let gone = async || fake.log().events("gone").pop();
    caribou_tests::eventually(Duration::from_secs(20), "the closed stream", gone).await;
    assert!(fake.log().received("notifications/cancelled").is_empty());
}
