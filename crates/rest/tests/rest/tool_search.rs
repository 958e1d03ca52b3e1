//! Hints, deferral, search, promotion and guardrails over HTTP (contract 9, architecture.md §10).

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use caribou_core::config::{Routing, RoutingMode};
use caribou_core::guardrails::{Guardrails, Written};
use caribou_runtime::Options;
use serde_json::{Value, json};

use crate::replica::{Answer, FakeServer, ask, call, start_with};

/// A replica that defers and denies `flood`; all tools are preferred for fakes.
async fn deferring() -> Router {
    let routing = Routing { mode: RoutingMode::Prefer, priority: 7, keywords: vec!["fakes".into()] };
    let server = FakeServer { routing, ..FakeServer::default() };
    let (guardrails, _) = Guardrails::of(Written {
        enabled: true,
        fail_closed: true,
        provider: Some("allowlist".into()),
        allowed_tools: None,
        denied_tools: vec!["flood".into()],
    });
    start_with(&server, Options { guardrails, tool_search: true, ..Options::default() }).await
}

async fn get(router: &Router, path: &str) -> Answer {
    ask(router, Request::get(path).body(Body::empty()).unwrap()).await
}

async fn post(router: &Router, path: &str, body: Value) -> Answer {
    let request = Request::post(path).header("content-type", "application/json").body(body.to_string().into());
    ask(router, request.unwrap()).await
}

#[tokio::test]
async fn a_listing_tells_routing_and_what_is_deferred_for_that_thread() {
    // Contract 9.1 and 9.3.
    let router = deferring().await;
    let listed = get(&router, "/api/mcp/tools?user_id=ann&thread_id=t1").await.json();
    let metadata = json!({
        "deerflow_mcp": true,
        "deerflow_mcp_routing": {"mode": "prefer", "priority": 7, "keywords": ["fakes"]}
    });
    assert_eq!(listed["tools"][0]["metadata"], metadata);
    assert_eq!((&listed["deferred"], &listed["denied"]), (&json!(["echo", "refuse", "wait"]), &json!(["flood"])));
    assert_eq!(listed["catalog_hash"].as_str().unwrap().len(), 16);

    let body = json!({"query": "select:echo", "user_id": "ann", "thread_id": "t1"});
    assert_eq!(post(&router, "/api/mcp/tools/search", body).await.status, StatusCode::OK);
    let deferred = async |query: &str| get(&router, &format!("/api/mcp/tools{query}")).await.json()["deferred"].clone();
    assert_eq!(deferred("?user_id=ann&thread_id=t1").await, json!(["refuse", "wait"]));
    assert_eq!(deferred("?user_id=ann&thread_id=t2").await, json!(["echo", "refuse", "wait"]));
    assert_eq!(deferred("").await, json!(["echo", "refuse", "wait"]));
}

#[tokio::test]
async fn a_search_answers_with_whole_schemas_and_what_it_promoted() {
    // Contract 9.4.
    let router = deferring().await;
    let answer = post(&router, "/api/mcp/tools/search", json!({"query": "+echo"})).await;
    let first = concat!(
        r#"{"tools":[{"name":"echo","server":"fake","raw_name":"echo","#,
        r#""tool":{"x-big":9223372036854775809,"name":"echo","inputSchema":{"type":"object"}},"#
    );
    assert!(answer.text.starts_with(first), "{}", answer.text);
    let body = answer.json();
    assert_eq!((&body["promoted"], body.get("message")), (&json!(["echo"]), None));
    assert_eq!(body["catalog_hash"], get(&router, "/api/mcp/tools").await.json()["catalog_hash"]);

    let nothing = post(&router, "/api/mcp/tools/search", json!({"query": "select:flood"})).await.json();
    assert_eq!((&nothing["tools"], &nothing["promoted"]), (&json!([]), &json!([])));
    assert!(nothing["message"].as_str().unwrap().starts_with("No tools found matching"));
}

#[tokio::test]
async fn a_users_words_promote_and_a_promoted_tool_may_be_called() {
    // Contract 9.5.
    let router = deferring().await;
    let refused = ask(&router, call(r#"{"name":"echo"}"#)).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::FORBIDDEN, "denied"));
    assert!(refused.text.contains("tool_search"), "{}", refused.text);
    let promoted = post(&router, "/api/mcp/tools/promote", json!({"text": "No FAKES, please"})).await.json();
    assert_eq!(promoted["promoted"], json!(["echo", "refuse", "wait"]));
    assert_eq!(promoted["catalog_hash"], get(&router, "/api/mcp/tools").await.json()["catalog_hash"]);
    assert_eq!(ask(&router, call(r#"{"name":"echo"}"#)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_denied_tool_is_refused_with_its_name_and_the_reason_also_to_a_stream() {
    // architecture.md §10, guardrails.
    let router = deferring().await;
    let answer = ask(&router, call(r#"{"name":"flood"}"#)).await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::FORBIDDEN, "denied"));
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("`flood`") && detail.contains("denied_tools"), "{detail}");
    let mut streamed = call(r#"{"name":"flood"}"#);
    streamed.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let events = ask(&router, streamed).await.text;
    assert!(events.starts_with("event: error\n") && events.contains("denied_tools"), "{events}");
}

#[tokio::test]
async fn the_prompt_section_is_there_when_there_is_something_to_say() {
    // Contract 9.2.
    let text = get(&deferring().await, "/api/mcp/prompt-section").await.json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("<available-deferred-tools>\necho\nrefuse\nwait\n</available-deferred-tools>"), "{text}");
    assert!(text.ends_with("</mcp_routing_hints>") && !text.contains("flood"), "{text}");
    let plain = start_with(&FakeServer::default(), Options::default()).await;
    assert_eq!(get(&plain, "/api/mcp/prompt-section").await.json(), json!({"text": ""}));
}

#[tokio::test]
async fn where_nothing_is_deferred_there_is_no_search_and_nothing_to_promote() {
    // Contract 9.3, deferred set.
    let router = start_with(&FakeServer::default(), Options::default()).await;
    let searched = post(&router, "/api/mcp/tools/search", json!({"query": "echo"})).await;
    assert_eq!((searched.status, searched.code().as_str()), (StatusCode::NOT_FOUND, "not_found"));
    let promoted = post(&router, "/api/mcp/tools/promote", json!({"text": "echo"})).await.json();
    assert_eq!(promoted, json!({"promoted": [], "catalog_hash": null}));
}

#[tokio::test]
async fn doubtful_requests_are_refused() {
    let router = deferring().await;
    for query in ["?thread=t1", "?thread_id=a&thread_id=b", "?thread_id=a%20b", "?user_id=%00"] {
        assert_eq!(get(&router, &format!("/api/mcp/tools{query}")).await.code(), "invalid", "{query}");
    }
    for (path, body) in [
        ("search", json!({})),
        ("search", json!({"query": 7})),
        ("search", json!({"query": "a".repeat(4_097)})),
        ("search", json!({"query": "a", "thread_id": "a b"})),
        ("promote", json!({"text": null})),
        ("promote", json!({"text": "a", "user_id": "a\u{0}"})),
    ] {
        let answer = post(&router, &format!("/api/mcp/tools/{path}"), body).await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid"), "{path}");
    }
}
