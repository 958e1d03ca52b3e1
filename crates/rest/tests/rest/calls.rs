//! Tool calls over REST: bytes, scopes, event streams, cancelling.

use std::time::Duration;

use crate::replica::{FakeServer, ask, call, start};
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use caribou_rest::RestOptions;
use futures::StreamExt;
use tokio::time::timeout;
use tower::ServiceExt;

/// No step of these tests takes longer unless it is broken.
const SOON: Duration = Duration::from_secs(10);

fn streamed(body: &str) -> Request<Body> {
    let mut request = call(body.to_owned());
    request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    request
}

#[tokio::test]
async fn arguments_and_result_pass_byte_for_byte() {
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let odd = r#"{"z":9223372036854775809, "a":1.0,"s":"\ud800","a":{"b":null},"u":"\u00e9é"}"#;
    for arguments in ["{}", "null", r#"{"a":null}"#, r#"{"a":"null"}"#, odd, &deep] {
        let answer = ask(&router, call(format!(r#"{{"name":"echo","arguments":{arguments}}}"#))).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let expected = format!(r#"{{"result":{{"got":{arguments},"content":[]}},"session":{{"#);
        assert!(answer.text.starts_with(&expected), "{}", answer.text);
    }
    let answer = ask(&router, call(r#"{"name":"echo"}"#)).await;
    assert!(answer.text.starts_with(r#"{"result":{"got":"absent","content":[]}"#), "{}", answer.text);
}

#[tokio::test]
async fn an_agents_form_stands_beside_the_result_when_it_is_asked_for() {
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    let answer = ask(&router, call(r#"{"name":"echo","arguments":{"a":1.0},"format":"agent"}"#)).await;
    let expected = concat!(
        r#"{"result":{"got":{"a":1.0},"content":[]},"#,
        r#""agent":{"content":[],"artifact":null,"is_error":false},"session":{"#
    );
    assert!(answer.text.starts_with(expected), "{}", answer.text);
    let events = ask(&router, streamed(r#"{"name":"echo","format":"agent","neutralise":false}"#)).await;
    assert!(events.text.contains(r#""agent":{"content":[]"#), "{}", events.text);
    for wrong in [r#""format":"markdown""#, r#""neutralise":"no""#] {
        let answer = ask(&router, call(format!(r#"{{"name":"echo",{wrong}}}"#))).await;
        assert_eq!(answer.code(), "invalid", "{wrong}");
    }
}

#[tokio::test]
async fn an_answer_names_its_session_and_its_request() {
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    let mut request = call(r#"{"name":"echo","user_id":"ann","thread_id":"t1"}"#);
    request.headers_mut().insert("x-request-id", "mine-1".parse().unwrap());
    let answer = ask(&router, request).await;
    assert_eq!(answer.header("x-request-id"), "mine-1");
    assert_eq!(answer.header("content-type"), "application/json");
    let expected = concat!(
        r#","session":{"server":"fake","epoch":1,"replica":"boot-1","restarted":false},"#,
        r#""request_id":"mine-1"}"#
    );
    assert!(answer.text.ends_with(expected), "{}", answer.text);

    let sessions = ask(&router, Request::get("/api/mcp/sessions").body(Body::empty()).unwrap()).await.json();
    assert_eq!(sessions["sessions"][0]["user_id"], "ann");
    assert_eq!(sessions["sessions"][0]["thread_id"], "t1");
}

#[tokio::test]
async fn secrets_of_a_request_go_nowhere() {
    // Contract 2.4, run admission.
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    let body = r#"{"name":"echo","config":{"context":{"secrets":{"K":"hunter2"}}},"run_id":"r","tool_call_id":"c"}"#;
    let answer = ask(&router, call(body)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(!answer.text.contains("hunter2"));
}

#[tokio::test]
async fn a_credential_among_the_metadata_is_refused() {
    // Contract 2.4, run admission.
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    for member in [
        r#""metadata":{"auth_token":"hunter2"}"#,
        r#""metadata":{"a":1,"auth_token":null}"#,
        r#""config":{"metadata":{"auth_token":"hunter2"}}"#,
    ] {
        let answer = ask(&router, call(format!(r#"{{"name":"echo",{member}}}"#))).await;
        assert_eq!((answer.status, answer.code().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid"), "{member}");
        assert!(answer.text.contains("config.context.secrets") && !answer.text.contains("hunter2"), "{}", answer.text);
    }
    for member in [r#""metadata":{"a":1}"#, r#""metadata":null"#, r#""config":{"metadata":{},"auth_token":"x"}"#] {
        let answer = ask(&router, call(format!(r#"{{"name":"echo",{member}}}"#))).await;
        assert_eq!(answer.status, StatusCode::OK, "{member}");
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_shown_as_it_came() {
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    let answer = ask(&router, call(r#"{"name":"refuse"}"#)).await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::BAD_GATEWAY, "upstream_error"));
    let upstream = r#""upstream":{"code":-32602,"message":"no","data":{"f":1.0}}}"#;
    assert!(answer.text.ends_with(upstream), "{}", answer.text);
}

#[tokio::test]
async fn a_stream_starts_at_once_reports_and_ends_with_the_result() {
    let server = FakeServer::default();
    let router = start(&server, RestOptions::default()).await;
    let response = timeout(SOON, router.oneshot(streamed(r#"{"name":"wait"}"#))).await.unwrap().unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert_eq!(response.headers()["cache-control"], "no-cache");

    let mut events = response.into_body().into_data_stream();
    let mut next = async || -> Bytes { timeout(SOON, events.next()).await.unwrap().unwrap().unwrap() };
    assert_eq!(next().await, "event: progress\ndata: {\"total\":2.0,\"progress\":1}\n\n");
    assert_eq!(next().await, "event: message\ndata: {\"level\":\"info\",\"data\":\"half way\"}\n\n");
    server.release.notify_one();
    let last = String::from_utf8(next().await.to_vec()).unwrap();
    let result = "event: result\ndata: {\"result\":{\ndata:   \"content\": []\ndata: },\"session\":{";
    assert!(last.starts_with(result), "{last}");
    assert!(timeout(SOON, events.next()).await.unwrap().is_none(), "nothing follows the result");
}

#[tokio::test]
async fn a_failed_call_ends_its_stream_with_the_problem() {
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    let mut request = streamed(r#"{"name":"there is none"}"#);
    request.headers_mut().insert("x-request-id", "mine-2".parse().unwrap());
    let answer = ask(&router, request).await;
    assert_eq!(answer.status, StatusCode::OK);
    let data = answer.text.strip_prefix("event: error\ndata: ").expect("an error event").trim_end();
    let problem: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!((&problem["code"], &problem["request_id"]), (&"not_found".into(), &"mine-2".into()));
}

#[tokio::test]
async fn reports_beyond_the_bound_are_dropped_and_the_result_still_comes_last() {
    let router = start(&FakeServer::default(), RestOptions::default()).await;
    let answer = timeout(SOON, ask(&router, streamed(r#"{"name":"flood"}"#))).await.unwrap();
    let events: Vec<&str> = answer.text.trim_end().split("\n\n").collect();
    let (last, reports) = events.split_last().unwrap();
    assert!(last.starts_with("event: result\n"), "{last}");
    assert_eq!(reports.len(), caribou_core::bounds::PROGRESS_QUEUE);
    assert_eq!(reports[0], "event: progress\ndata: {\"progress\":0}");
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let options = RestOptions { keep_alive: Duration::from_millis(20), ..RestOptions::default() };
    let router = start(&FakeServer::default(), options).await;
    let response = router.oneshot(streamed(r#"{"name":"wait"}"#)).await.unwrap();
    let mut events = response.into_body().into_data_stream().skip(2);
    for _ in 0..2 {
        let comment = timeout(SOON, events.next()).await.unwrap().unwrap().unwrap();
        assert!(comment.starts_with(b":"), "{comment:?}");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_its_call() {
    let server = FakeServer::default();
    let router = start(&server, RestOptions::default()).await;
    let response = router.clone().oneshot(streamed(r#"{"name":"wait"}"#)).await.unwrap();
    let mut events = response.into_body().into_data_stream();
    timeout(SOON, events.next()).await.expect("it runs");
    drop(events);
    timeout(SOON, server.cancelled.notified()).await.expect("the streamed call is cancelled");

    // Without a stream nothing shows that the call runs, so the caller stays until the session counts it.
    let waiting = tokio::spawn(ask_owned(router.clone(), r#"{"name":"wait","thread_id":"plain"}"#));
    let busy = async {
        let request = || Request::get("/api/mcp/sessions").body(Body::empty()).unwrap();
        while !ask(&router, request()).await.text.contains(r#""in_flight":1"#) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, busy).await.expect("it runs");
    waiting.abort();
    timeout(SOON, server.cancelled.notified()).await.expect("the plain call is cancelled");
}

async fn ask_owned(router: axum::Router, body: &'static str) {
    ask(&router, call(body)).await;
}
