//! What models are shown and what they may call, as `config.yaml` says it.

use caribou_tests::{Caribou, Setup, StdioFake};
use serde_json::{Value, json};

const SETTINGS: &str = "\
tool_search:
  enabled: true
guardrails:
  enabled: true
  provider:
    use: deerflow.guardrails.builtin:AllowlistProvider
    config:
      denied_tools: [\"fake_forget\"]
";

async fn start(settings: &str) -> (Caribou, StdioFake) {
    let setup = Setup::new().settings(settings);
    let done = json!([{ "text": "done" }]);
    let fake =
        StdioFake::new(setup.home(), "fake", json!({ "calls": { "recall": done, "forget": done, "store": done } }));
    let routing = json!({ "mode": "prefer", "priority": 40, "keywords": ["remember"] });
    let entry = fake.entry_with(json!({ "tools": { "recall": { "routing": routing } } }));
    (setup.server("fake", entry).start().await, fake)
}

async fn post(caribou: &Caribou, path: &str, body: Value) -> Value {
    let answer = caribou.post(path, body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Contract 9.1 to 9.5: hide, search or speak, promote, call.
#[tokio::test]
async fn a_deferred_tool_is_promoted_by_words_or_search_and_then_called() {
    let (caribou, _fake) = start(SETTINGS).await;
    let listed = caribou.get("/api/mcp/tools?thread_id=t").await.json();
    assert_eq!(listed["deferred"], json!(["fake_recall", "fake_store"]));
    let section = caribou.get("/api/mcp/prompt-section").await.json()["text"].as_str().unwrap().to_owned();
    let names = "<available-deferred-tools>\nfake_recall\nfake_store\n</available-deferred-tools>";
    assert!(section.starts_with(names) && section.contains("involves remember:"), "{section}");

    let refused = caribou.call_in("t", "fake_recall", json!({})).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "denied"));
    assert!(refused.detail().contains("tool_search"), "{refused:?}");
    let spoken = json!({ "text": "Do you REMEMBER me?", "thread_id": "t" });
    assert_eq!(post(&caribou, "/api/mcp/tools/promote", spoken).await["promoted"], json!(["fake_recall"]));
    assert_eq!(caribou.call_in("t", "fake_recall", json!({})).await.status, 200);

    let query = json!({ "query": "+store", "thread_id": "t" });
    assert_eq!(post(&caribou, "/api/mcp/tools/search", query).await["promoted"], json!(["fake_store"]));
    assert_eq!(caribou.call_in("t", "fake_store", json!({})).await.status, 200);
    assert_eq!(caribou.get("/api/mcp/tools?thread_id=t").await.json()["deferred"], json!([]));
}

/// Guardrails of architecture.md §10, written as the source documents write them.
#[tokio::test]
async fn a_denied_tool_is_not_listed_and_its_call_names_tool_and_reason() {
    let (caribou, _fake) = start(SETTINGS).await;
    assert_eq!(caribou.get("/api/mcp/tools").await.json()["denied"], json!(["fake_forget"]));
    assert!(!caribou.tool_names().await.contains(&"fake_forget".to_owned()));
    let denied = caribou.call("fake_forget", json!({})).await;
    assert_eq!((denied.status, denied.code().as_str()), (403, "denied"));
    assert!(denied.detail().contains("fake_forget") && denied.detail().contains("denied_tools"), "{denied:?}");
}

/// `guardrails.fail_closed` of architecture.md §10.
#[tokio::test]
async fn guardrails_without_a_usable_provider_deny_every_call_and_say_so() {
    let (caribou, _fake) = start("guardrails: {enabled: true, provider: {use: \"my.module:Provider\"}}\n").await;
    let denied = caribou.call("fake_recall", json!({})).await;
    assert_eq!((denied.status, denied.code().as_str()), (403, "denied"));
    assert!(denied.detail().contains("guardrails.provider.use"), "{denied:?}");
    assert!(caribou.log().contains("every call is denied"), "{}", caribou.log());

    let open = "guardrails: {enabled: true, fail_closed: false, provider: {use: \"my.module:Provider\"}}\n";
    assert_eq!(start(open).await.0.call("fake_recall", json!({})).await.status, 200);
}

#[tokio::test]
async fn one_server_alone_is_shown_whole_and_nothing_of_it_is_to_be_fetched_first() {
    // Whoever asks for one server over MCP has no `tool_search` there; all of them together are deferred as ever.
    let (caribou, _fake) = start(SETTINGS).await;
    let asked = async |path: &str, method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} });
        let request = caribou.request("POST", path).header("content-type", "application/json");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        let request = request.header("mcp-name", params["name"].as_str().unwrap_or_default().to_owned());
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        caribou.send(request.body(body.to_string())).await.json()["result"].clone()
    };
    let names = async |path: &str| {
        let listed = asked(path, "tools/list", json!({})).await["tools"].clone();
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(!names("/mcp").await.contains(&"fake_store".to_owned()));
    assert_eq!(names("/mcp/fake").await, ["recall", "store"], "guardrails hold all the same");
    let called = asked("/mcp/fake", "tools/call", json!({ "name": "store" })).await;
    assert_eq!(called["content"][0]["text"], "done", "{called}");
    let deferred = asked("/mcp", "tools/call", json!({ "name": "fake_recall" })).await;
    assert_eq!(deferred["isError"], true, "{deferred}");
}
