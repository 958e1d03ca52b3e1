//! What the configuration routes answer when the document cannot be read or written, over a document in memory.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use caribou_core::config::{Document, ETag, IfMatch};
use caribou_core::ids::BootId;
use caribou_core::launch::Allowlist;
use caribou_ports::BoxFuture;
use caribou_ports::config_source::{ConfigSource, ConfigSourceError, ConfigText, Edit};
use caribou_rest::RestOptions;
use caribou_runtime::{Configuration, Options, Outside, Runtime};
use serde_json::json;

use crate::replica::{Answer, FakeServer, ask, start};

/// Makes the error of one write.
type Failure = fn(String) -> ConfigSourceError;

/// A document that is read and fails to be written in one way; `None` = there is none, and it cannot be read.
struct Unwritable(Option<Failure>);

impl Unwritable {
    fn text() -> ConfigText {
        let text = br#"{"mcpServers": {"far": {"type": "http", "url": "http://h", "enabled": false}}}"#.to_vec();
        ConfigText { file: PathBuf::from("/etc/x.json"), etag: ETag::of(&text), text }
    }
}

impl ConfigSource for Unwritable {
    fn has_changed(&self) -> bool {
        false
    }

    fn load(&self) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>> {
        let unreadable = || ConfigSourceError::Unreadable { file: "x.json".to_owned(), reason: "no disk".to_owned() };
        let loaded = self.0.map(|_| Some(Self::text())).ok_or_else(unreadable);
        Box::pin(async { loaded })
    }

    fn replace(&self, _: IfMatch, edit: Edit) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>> {
        let text = Self::text();
        let replaced = match (edit(&text.text), self.0) {
            (Err(refused), _) => Err(ConfigSourceError::Refused(refused)),
            (Ok(_), Some(failure)) => Err(failure("x.json".to_owned())),
            (Ok(_), None) => Ok(text),
        };
        Box::pin(async { replaced })
    }

    fn changed(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

async fn over(source: Unwritable) -> Router {
    let configuration = Configuration {
        source: Arc::new(source),
        variables: Arc::new(|_| None),
        document: Document::default(),
        file: PathBuf::from("/etc/x.json"),
        allowlist: Allowlist::default(),
        unsupported: Default::default(),
        resets: None,
    };
    let mut outside = Outside::from(Arc::new(FakeServer::default()));
    outside.configuration = Some(configuration);
    let runtime = Runtime::start(vec![], Options::default(), outside, BootId::new("boot-1")).await.unwrap();
    caribou_rest::router(runtime, RestOptions::default())
}

async fn send(router: &Router, method: &str, path: &str, body: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    ask(router, request.body(Body::from(body.to_owned())).unwrap()).await
}

const SWITCH: &str = r#"{"server_name": "far", "enabled": true}"#;

#[tokio::test]
async fn each_way_a_write_can_fail_is_told_apart() {
    // Contract 2.2 and 5.9.
    let failures: [(Failure, u16, &str, &str); 3] = [
        (
            |file| ConfigSourceError::NotWritten { file, reason: "why".to_owned() },
            500,
            "unavailable",
            "was not written",
        ),
        (
            |file| ConfigSourceError::Unknown { file, reason: "why".to_owned() },
            500,
            "outcome_unknown",
            "may or may not",
        ),
        (|file| ConfigSourceError::ReadOnly { file, reason: "why".to_owned() }, 409, "conflict", "cannot be written"),
    ];
    for (failure, status, code, detail) in failures {
        let router = over(Unwritable(Some(failure))).await;
        let put = json!({"mcp_servers": {}}).to_string();
        for (method, body, opening) in [
            ("PUT", put.as_str(), "Failed to update MCP configuration: "),
            ("PATCH", SWITCH, "Failed to update MCP server state: "),
        ] {
            let answer = send(&router, method, "/api/mcp/config", body).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code), "{}", answer.text);
            let told = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(told.contains(detail) && told.contains("why"), "{told}");
            assert_eq!(told.starts_with(opening), status == 500, "{told}");
            assert_eq!(answer.header("etag"), Unwritable::text().etag.to_string());
        }
    }
}

#[tokio::test]
async fn a_document_that_cannot_be_read_and_a_replica_without_one_say_so() {
    let unreadable = send(&over(Unwritable(None)).await, "GET", "/api/mcp/config", "").await;
    assert_eq!((unreadable.status.as_u16(), unreadable.code().as_str()), (503, "unavailable"));
    let without = start(&FakeServer::default(), RestOptions::default()).await;
    for (method, path, status) in
        [("GET", "/api/mcp/config", 503), ("PATCH", "/api/mcp/config", 500), ("POST", "/api/mcp/cache/reset", 503)]
    {
        let answer = send(&without, method, path, SWITCH).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, "unavailable"), "{method} {path}");
    }
}

#[tokio::test]
async fn a_reset_that_nobody_else_can_hear_says_so() {
    // Contract 5.7 and 2.2: `scope: process`.
    let router = over(Unwritable(Some(|file| ConfigSourceError::NotWritten { file, reason: String::new() }))).await;
    let expected = json!({
        "success": true,
        "message": "MCP tools cache reset. Tools will reload on next use.",
        "scope": "process",
        "reach": "process",
        "confirmed": ["boot-1"],
        "unconfirmed": [],
    });
    assert_eq!(send(&router, "POST", "/api/mcp/cache/reset", "").await.json(), expected);
}
