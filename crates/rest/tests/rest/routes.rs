//! The routes beside calls, and the document of all.

use std::sync::Arc;

use crate::replica::{Answer, FakeServer, ask, call, start};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use caribou_rest::RestOptions;
use serde_json::{Value, json};

async fn quiet() -> Router {
    start(&FakeServer::default(), RestOptions::default()).await
}

async fn get(router: &Router, path: &str) -> Answer {
    ask(router, Request::get(path).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn tools_are_listed_as_their_server_wrote_them() {
    let answer = get(&quiet().await, "/api/mcp/tools").await;
    let first = concat!(
        r#"{"tools":[{"name":"echo","server":"fake","raw_name":"echo","#,
        r#""tool":{"x-big":9223372036854775809,"name":"echo","inputSchema":{"type":"object"}},"metadata":{"deerflow_mcp":true}}"#
    );
    assert!(answer.text.starts_with(first), "{}", answer.text);
    assert!(
        answer.text.ends_with(r#"],"deferred":[],"catalog_hash":null,"denied":[],"pending":[],"failed":[]}"#),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_server_is_shown_with_what_it_said_of_itself() {
    let router = quiet().await;
    get(&router, "/api/mcp/tools").await;
    let answer = get(&router, "/api/mcp/servers").await;
    let server = &answer.json()["servers"][0];
    assert_eq!((&server["name"], &server["state"]), (&json!("fake"), &json!("ready")));
    assert_eq!((&server["era"], &server["version"]), (&json!("legacy"), &json!("2025-11-25")));
    assert_eq!(server["tools"], 4);
    assert!(answer.text.contains(r#""server_info":{"version":"1","name":"fake"}"#), "{}", answer.text);
}

#[tokio::test]
async fn only_the_sessions_of_that_user_and_thread_are_closed() {
    // Contract 4.4, explicit close of scope and server.
    let router = quiet().await;
    for (user, thread) in [("ann", "t1"), ("ann", "t2"), ("bob", "t1")] {
        let body = json!({"name": "echo", "user_id": user, "thread_id": thread});
        assert_eq!(ask(&router, call(body.to_string())).await.status, StatusCode::OK);
    }
    let close = |query: &str| {
        let path = format!("/api/threads/t1/mcp-sessions?{query}");
        ask(&router, Request::delete(path).body(Body::empty()).unwrap())
    };
    assert_eq!(close("user_id=ann&server=other").await.json(), json!({"closed": 0}));
    assert_eq!(close("user_id=ann&server=fake").await.json(), json!({"closed": 1}));
    let left = get(&router, "/api/mcp/sessions").await.json();
    let mut left: Vec<String> = left["sessions"].as_array().unwrap().iter().map(scope).collect();
    left.sort();
    assert_eq!(left, ["ann:t2", "bob:t1"]);
}

fn scope(session: &Value) -> String {
    format!("{}:{}", session["user_id"].as_str().unwrap(), session["thread_id"].as_str().unwrap())
}

#[tokio::test]
async fn a_refresh_takes_a_server_or_no_body_at_all() {
    let router = quiet().await;
    let refresh = |body: Body| {
        Request::post("/api/mcp/tools/refresh").header("content-type", "application/json").body(body).unwrap()
    };
    assert_eq!(ask(&router, refresh(Body::empty())).await.status, StatusCode::NO_CONTENT);
    assert_eq!(ask(&router, refresh(r#"{"server":"fake"}"#.into())).await.status, StatusCode::NO_CONTENT);
    assert_eq!(ask(&router, refresh(r#"{"server":"none"}"#.into())).await.code(), "not_found");
    assert_eq!(ask(&router, refresh(r#"{"server":7}"#.into())).await.code(), "invalid");
}

#[tokio::test]
async fn health_readiness_and_metrics_come_from_the_host() {
    let options = RestOptions {
        ready: Arc::new(|| Err("stopping".to_owned())),
        metrics: Arc::new(|| "caribou_calls_total 3\n".to_owned()),
        ..RestOptions::default()
    };
    let router = start(&FakeServer::default(), options).await;
    assert_eq!(get(&router, "/healthz").await.json(), json!({"status": "ok"}));
    let ready = get(&router, "/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.code().as_str()), (503, "unavailable"));
    assert_eq!(ready.json()["detail"], "stopping");
    let metrics = get(&router, "/metrics").await;
    assert_eq!(metrics.text, "caribou_calls_total 3\n");
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(get(&quiet().await, "/readyz").await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_document_names_every_route_and_no_other() {
    let document = get(&quiet().await, "/openapi.json").await.json();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        routes.extend(item.as_object().unwrap().keys().map(|method| format!("{method} {path}")));
    }
    let expected = [
        "get /api/console/events",
        "get /api/features",
        "get /api/mcp-tasks",
        "post /api/mcp-tasks/{task_id}/redeliver",
        "get /api/mcp/audit",
        "post /api/mcp/cache/reset",
        "get /api/mcp/config",
        "put /api/mcp/config",
        "patch /api/mcp/config",
        "get /api/mcp/config/history",
        "get /api/mcp/config/history/{revision}",
        "post /api/mcp/config/rollback",
        "put /api/mcp/config/server",
        "post /api/mcp/config/servers",
        "delete /api/mcp/config/servers/{name}",
        "get /api/mcp/oauth",
        "delete /api/mcp/oauth/{server}",
        "post /api/mcp/oauth/{server}/refresh",
        "get /api/mcp/prompt-section",
        "get /api/mcp/servers",
        "get /api/mcp/sessions",
        "get /api/mcp/tools",
        "post /api/mcp/tools/call",
        "post /api/mcp/tools/promote",
        "post /api/mcp/tools/refresh",
        "post /api/mcp/tools/search",
        "get /api/me",
        "get /api/replicas",
        "delete /api/threads/{thread_id}/mcp-sessions",
        "get /api/threads/{thread_id}/mcp-tasks",
        "get /api/threads/{thread_id}/mcp-tasks/{task_id}",
        "post /api/threads/{thread_id}/mcp-tasks/{task_id}/cancel",
        "get /api/threads/{thread_id}/mcp-tasks/{task_id}/events",
        "post /api/threads/{thread_id}/mcp-tasks/{task_id}/input",
        "get /api/users/{user_id}/mcp/connections",
        "get /api/users/{user_id}/mcp/connections/{name}",
        "put /api/users/{user_id}/mcp/connections/{name}",
        "delete /api/users/{user_id}/mcp/connections/{name}",
        "get /healthz",
        "get /metrics",
        "get /openapi.json",
        "get /readyz",
    ];
    assert_eq!(routes, expected);
}

#[tokio::test]
async fn the_document_is_closed_and_every_operation_tells_its_failures() {
    let document = get(&quiet().await, "/openapi.json").await.json();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            assert_problems(operation);
        }
    }
    for reference in references(&document) {
        let pointer = reference.strip_prefix('#').expect("a reference into the document itself");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[tokio::test]
async fn every_route_but_the_open_ones_asks_for_a_bearer_credential() {
    let document = get(&quiet().await, "/openapi.json").await.json();
    assert_eq!(document["security"], json!([{"bearer": []}]));
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    for (path, item) in document["paths"].as_object().unwrap() {
        let is_open = ["/healthz", "/readyz", "/metrics", "/openapi.json"].contains(&path.as_str());
        for operation in item.as_object().unwrap().values() {
            assert_eq!(operation["security"] == json!([]), is_open, "{path}");
            for status in ["401", "429"] {
                assert_eq!(operation["responses"].get(status).is_none(), is_open, "{status} of {path}");
            }
        }
    }
}

fn assert_problems(operation: &Value) {
    let responses = operation["responses"].as_object().unwrap();
    assert!(responses.contains_key("500"), "{operation}");
    for (status, response) in responses.iter().filter(|(status, _)| !status.starts_with('2')) {
        let schema = &response["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(schema, "#/components/schemas/Problem", "{status} of {operation}");
    }
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
