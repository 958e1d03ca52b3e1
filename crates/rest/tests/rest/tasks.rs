//! Task routes of a replica that follows none. What they answer with where tasks are followed is tested with the whole
//! binary.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use caribou_rest::RestOptions;
use serde_json::json;

use crate::replica::{Answer, FakeServer, ask, start};

const TASK: &str = "mcp-task-0a0102030405060708090a0b0c0d0eff";

async fn quiet() -> Router {
    start(&FakeServer::default(), RestOptions::default()).await
}

async fn send(router: &Router, method: &str, path: &str, body: &'static str) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    ask(router, request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn features_say_what_really_started() {
    // Contract 2.4, features.
    let answer = send(&quiet().await, "GET", "/api/features", "").await;
    assert_eq!(answer.json(), json!({"mcp_tasks": {"enabled": false}}));
}

#[tokio::test]
async fn without_a_store_every_route_says_that_tasks_are_not_available() {
    // Contract 2.3, 503 bodies.
    let router = quiet().await;
    let of_thread = "/api/threads/t1/mcp-tasks";
    let repo = "MCP task repo not available";
    let service = "MCP task service not available";
    for (method, path, body, detail) in [
        ("GET", of_thread.to_owned(), "", repo),
        ("GET", format!("{of_thread}/{TASK}"), "", repo),
        ("GET", format!("{of_thread}/{TASK}/events"), "", repo),
        ("POST", format!("{of_thread}/{TASK}/cancel"), "", service),
        ("POST", format!("{of_thread}/{TASK}/input"), r#"{"input_id":"a","answers":{}}"#, service),
        ("GET", "/api/mcp-tasks".to_owned(), "", repo),
        ("POST", format!("/api/mcp-tasks/{TASK}/redeliver"), "", repo),
    ] {
        let answer = send(&router, method, &path, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"), "{path}");
        assert_eq!(answer.json()["detail"], detail, "{method} {path}");
    }
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_before_anything_is_read() {
    // Contract 2.1, thread_id; contract 2.3, limit.
    let router = quiet().await;
    let long = format!("/api/threads/{}/mcp-tasks", "t".repeat(65));
    for path in [
        "/api/threads/t.1/mcp-tasks",
        &long,
        "/api/threads/t1/mcp-tasks?limit=0",
        "/api/threads/t1/mcp-tasks?limit=101",
        "/api/threads/t1/mcp-tasks?limit=ten",
        "/api/threads/t1/mcp-tasks?limt=1",
        "/api/threads/t1/mcp-tasks/x/events?after=-1",
        "/api/threads/t1/mcp-tasks/x/events?limit=1001",
        "/api/mcp-tasks?active=maybe",
        "/api/mcp-tasks?cursor=7",
        "/api/mcp-tasks?limit=0",
        "/api/mcp-tasks?user=ann",
    ] {
        let answer = send(&router, "GET", path, "").await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid"), "{path}");
    }
    let input = format!("/api/threads/t1/mcp-tasks/{TASK}/input");
    for body in ["{}", r#"{"input_id":"a"}"#, r#"{"input_id":"a","answers":{},"response":{}}"#, r#"{"answers":{}}"#] {
        let answer = send(&router, "POST", &input, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid"), "{body}");
    }
}
