//! Requests without a socket: straight into the router.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use caribou_rest::RestOptions;
use caribou_runtime::Options;
use serde_json::Value;
use tower::ServiceExt;

use super::{FakeServer, replica};

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The header `name`, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// The code of a problem; checks that it is a whole one.
    pub(crate) fn code(&self) -> String {
        let body = self.json();
        assert_eq!(body["request_id"], self.header("x-request-id"), "{body}");
        assert!(body["detail"].is_string(), "{body}");
        body["code"].as_str().expect("a code").to_owned()
    }
}

/// The router of a fresh replica.
pub(crate) async fn start(server: &FakeServer, options: RestOptions) -> Router {
    caribou_rest::router(replica(server, Options::default()).await, options)
}

/// The router of a fresh replica that runs with these options.
pub(crate) async fn start_with(server: &FakeServer, options: Options) -> Router {
    caribou_rest::router(replica(server, options).await, RestOptions::default())
}

/// Sends one request, reads the whole answer.
pub(crate) async fn ask(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.expect("infallible");
    let (head, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    Answer { status: head.status, headers: head.headers, text: String::from_utf8(bytes.to_vec()).expect("UTF-8") }
}

/// A tool call with this body.
pub(crate) fn call(body: impl Into<Body>) -> Request<Body> {
    Request::post("/api/mcp/tools/call").header("content-type", "application/json").body(body.into()).expect("valid")
}
