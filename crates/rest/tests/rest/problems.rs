//! Every failure has the one body, its status and its request id.

use std::sync::Arc;
use std::time::Duration;

use crate::replica::{Answer, FakeServer, ask, call, start};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use caribou_rest::RestOptions;

async fn quiet() -> Router {
    start(&FakeServer::default(), RestOptions::default()).await
}

fn plain(method: &str, path: &str) -> Request<Body> {
    Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
}

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code), "{}", answer.text);
}

#[tokio::test]
async fn a_bad_body_is_refused_without_being_repeated() {
    let router = quiet().await;
    let bodies = [
        (r#"{"name":"hunter2""#, 400),
        ("", 400),
        (r#"["hunter2"]"#, 422),
        (r#"{"arguments":{"k":"hunter2"}}"#, 422),
        (r#"{"name":{"hunter2":1}}"#, 422),
        (r#"{"name":"echo","user_id":7,"x":"hunter2"}"#, 422),
        (r#"{"name":"echo","timeout":"hunter2"}"#, 422),
        (r#"{"name":"echo","timeout":0}"#, 422),
        (r#"{"name":"echo","timeout":-1}"#, 422),
        (r#"{"name":"echo","timeout":true}"#, 422),
        (r#"{"name":"echo","timeout":1e300}"#, 422),
        (r#"{"name":"echo","thread_id":"a:b"}"#, 422),
        (r#"{"name":"echo","user_id":"a\u0000b"}"#, 422),
    ];
    for (body, status) in bodies {
        let answer = ask(&router, call(body)).await;
        is(&answer, status, "invalid");
        assert!(!answer.text.contains("hunter2"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_wrong_member_is_named() {
    let answer = ask(&quiet().await, call(r#"{"name":"echo","thread_id":7}"#)).await;
    assert_eq!(answer.json()["detail"], "`thread_id`: must be a string (line 1, column 28)");
}

#[tokio::test]
async fn only_declared_json_is_taken() {
    let mut request = call(r#"{"name":"echo"}"#);
    request.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    is(&ask(&quiet().await, request).await, 415, "invalid");
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused_whether_its_length_is_told_or_not() {
    let options = RestOptions { max_body_bytes: 100, ..RestOptions::default() };
    let router = start(&FakeServer::default(), options).await;
    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(100));
    is(&ask(&router, call(large.clone())).await, 413, "invalid");
    let pieces = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(large))]);
    is(&ask(&router, call(Body::from_stream(pieces))).await, 413, "invalid");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_given_up() {
    let options = RestOptions { body_timeout: Duration::from_secs(5), ..RestOptions::default() };
    let router = start(&FakeServer::default(), options).await;
    let endless = futures::stream::pending::<Result<Bytes, std::io::Error>>();
    is(&ask(&router, call(Body::from_stream(endless))).await, 408, "timeout");
}

#[tokio::test]
async fn an_unknown_tool_and_an_unknown_route_are_not_found() {
    let router = quiet().await;
    is(&ask(&router, call(r#"{"name":"there is none"}"#)).await, 404, "not_found");
    is(&ask(&router, plain("GET", "/api/mcp/nothing")).await, 404, "not_found");
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let answer = ask(&quiet().await, plain("PUT", "/api/mcp/tools")).await;
    is(&answer, 405, "invalid");
    assert_eq!(answer.header("allow"), "GET,HEAD");
}

#[tokio::test]
async fn sessions_are_not_closed_on_a_doubtful_request() {
    let router = quiet().await;
    let paths = [
        "/api/threads/a%20b/mcp-sessions",
        "/api/threads/%ff/mcp-sessions",
        "/api/threads/t1/mcp-sessions?sever=fake",
        "/api/threads/t1/mcp-sessions?server=a&server=b",
        "/api/threads/t1/mcp-sessions?user_id=%00",
    ];
    for path in paths {
        is(&ask(&router, plain("DELETE", path)).await, 422, "invalid");
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_the_next_request_is_served() {
    let options = RestOptions { metrics: Arc::new(|| panic!("hunter2")), ..RestOptions::default() };
    let router = start(&FakeServer::default(), options).await;
    let answer = ask(&router, plain("GET", "/metrics")).await;
    is(&answer, 500, "unavailable");
    assert!(!answer.text.contains("hunter2"));
    assert_eq!(ask(&router, plain("GET", "/healthz")).await.status, StatusCode::OK);
}
