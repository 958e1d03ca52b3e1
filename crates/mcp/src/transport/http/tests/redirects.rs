//! Redirects, and what configured headers may and may not do.

use caribou_ports::mcp::{OpenError, Session};
use serde_json::json;

use super::fake::{Client, Fake, call, empty, error, legacy, result, with};

/// A legacy server at `/mcp/` that redirects from `/mcp`.
async fn moved(status: u16, to: &'static str) -> Fake {
    Fake::start(move |seen| match (seen.path.as_str(), seen.rpc()) {
        ("/mcp", _) => with(empty(status), "location", to),
        (_, "tools/call") => result(seen, json!({"content": []})),
        _ => legacy(seen).unwrap(),
    })
    .await
}

#[tokio::test]
async fn within_one_origin_a_redirect_keeps_everything_and_is_remembered() {
    for status in [307, 308] {
        let fake = moved(status, "/mcp/").await;
        let headers = json!({"headers": {"Authorization": "Bearer hunter22"}});
        let session = Client::new().open_with(&fake.url(), headers).await.unwrap();
        call(&session, "echo").await.unwrap();
        let calls: Vec<_> = fake.seen().into_iter().filter(|seen| seen.rpc() == "tools/call").collect();
        assert_eq!(calls.len(), 1, "the session goes to where it was opened");
        assert_eq!((calls[0].path.as_str(), calls[0].header("authorization")), ("/mcp/", Some("Bearer hunter22")));
    }
}

#[tokio::test]
async fn a_redirect_that_would_lose_the_request_is_reported_with_its_target() {
    for status in [301, 302, 303] {
        let fake = moved(status, "/mcp/").await;
        let refused = Client::new().open(&fake.url()).await.err().unwrap();
        assert!(matches!(&refused, OpenError::Protocol(why) if why.contains("/mcp/")), "{refused}");
        assert!(fake.seen().iter().all(|seen| seen.path == "/mcp"));
    }
}

#[tokio::test]
async fn another_origin_never_sees_the_credentials() {
    let other = Fake::start(|seen| match seen.rpc() {
        "tools/call" => result(seen, json!({"content": []})),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let target: &'static str = Box::leak(format!("{}/mcp", other.origin).into_boxed_str());
    let fake = moved(307, target).await;
    let headers = json!({"Authorization": "Bearer hunter22", "X-Key": "hunter23"});
    let refused = Client::new().open_with(&fake.url(), json!({"headers": headers})).await.err().unwrap();
    assert!(refused.to_string().contains("allowed_redirect_origins"), "{refused}");
    assert!(other.seen().is_empty());

    let listed = json!({"headers": headers, "allowed_redirect_origins": [other.origin]});
    let session = Client::new().open_with(&fake.url(), listed).await.unwrap();
    call(&session, "echo").await.unwrap();
    assert!(!other.seen().is_empty());
    for seen in other.seen() {
        assert_eq!((seen.header("authorization"), seen.header("x-key")), (None, None));
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
    }
}

#[tokio::test]
async fn a_loop_of_redirects_ends() {
    let fake = moved(307, "/mcp").await;
    let refused = Client::new().open(&fake.url()).await.err().unwrap();
    assert!(refused.to_string().contains("redirects more than 3 times"), "{refused}");
}

#[tokio::test]
async fn configured_headers_do_not_touch_the_protocols() {
    let fake = Fake::start(|seen| {
        let twice = ["accept", "content-type"].iter().any(|name| seen.headers.get_all(*name).iter().count() != 1);
        match (&seen.method, seen.rpc()) {
            (&http::Method::POST, _) if twice => error(seen, 400, -32600, "doubled"),
            (_, "tools/call") => result(seen, json!({"content": []})),
            _ => legacy(seen).unwrap(),
        }
    })
    .await;
    let headers = json!({"Accept": "*/*", "Mcp-Session-Id": "mine", "User-Agent": "mine/1", "X-Key": "k"});
    let session = Client::new().open_with(&fake.url(), json!({"headers": headers})).await.unwrap();
    call(&session, "echo").await.unwrap();
    for seen in fake.seen() {
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!((seen.header("mcp-session-id"), seen.header("user-agent")), (None, Some("mine/1")));
        assert_eq!(seen.header("x-key"), Some("k"));
    }
    session.close().await;
}
