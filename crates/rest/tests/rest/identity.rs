//! Who may ask for what, with callers that are told apart (contract 2.1).

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use caribou_core::config::Secret;
use caribou_core::identity::{HeldScopes, Principal, Rate, Role, ToolRules};
use caribou_core::ids::UserId;
use caribou_ports::BoxFuture;
use caribou_ports::identity::{Authenticator, Unauthenticated};
use caribou_rest::RestOptions;
use caribou_runtime::Options;
use serde_json::json;

use crate::replica::{Answer, FakeServer, ask, replica_for};

/// Whoever presents a name is that user; some names say more.
struct ByName;

impl Authenticator for ByName {
    fn authenticate(&self, bearer: Option<Secret>) -> BoxFuture<'_, Result<Principal, Unauthenticated>> {
        let caller = match bearer.as_ref().map(Secret::expose) {
            None => Err(Unauthenticated::Missing),
            Some("hunter2") => Err(Unauthenticated::Refused("no such key".to_owned())),
            Some("lost") => Err(Unauthenticated::Unavailable("the store is away".to_owned())),
            Some(name) => Ok(Principal {
                id: name.into(),
                user: UserId::new(name),
                roles: Role::parse(name).into_iter().collect(),
                tools: Arc::new(ToolRules { allowed: None, denied: vec!["flood".to_owned()] }),
                scopes: HeldScopes::All,
            }),
        };
        Box::pin(async { caller })
    }
}

async fn start(options: Options) -> Router {
    let runtime = replica_for(&FakeServer::default(), options, Some(Arc::new(ByName))).await;
    caribou_rest::router(runtime, RestOptions::default())
}

/// Asks as `name`, or as nobody when that is empty.
async fn as_caller(router: &Router, name: &str, method: &str, path: &str, body: &str) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    if !name.is_empty() {
        request = request.header("authorization", format!("Bearer {name}"));
    }
    ask(router, request.body(Body::from(body.to_owned())).unwrap()).await
}

async fn get(router: &Router, name: &str, path: &str) -> Answer {
    as_caller(router, name, "GET", path, "").await
}

#[tokio::test]
async fn whoever_is_not_known_is_refused_on_every_route_but_the_open_ones() {
    // Contract 2.1, auth middleware.
    let router = start(Options::default()).await;
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(get(&router, "", path).await.status, 200, "{path}");
    }
    let document = get(&router, "", "/openapi.json").await.json();
    for (path, item) in document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/api/")) {
        let path = path.replace("{name}", "n").replace("{thread_id}", "t").replace(['{', '}'], "");
        for method in item.as_object().unwrap().keys() {
            let refused = as_caller(&router, "", &method.to_uppercase(), &path, "{}").await;
            assert_eq!((refused.status.as_u16(), refused.code().as_str()), (401, "denied"), "{method} {path}");
            assert_eq!(refused.header("www-authenticate"), "Bearer", "{method} {path}");
        }
    }
    assert_eq!(get(&router, "", "/api/nothing").await.status, 401, "which routes there are is not told");
    let stranger = get(&router, "hunter2", "/api/mcp/tools").await;
    assert_eq!((stranger.status.as_u16(), stranger.code().as_str()), (401, "denied"));
    assert_eq!(stranger.header("www-authenticate"), r#"Bearer error="invalid_token""#);
    assert!(!stranger.text.contains("hunter2"), "invariant O3");
    let unknown = get(&router, "lost", "/api/mcp/tools").await;
    assert_eq!((unknown.status.as_u16(), unknown.code().as_str()), (503, "unavailable"));
}

#[tokio::test]
async fn only_an_admin_manages_the_configuration_and_a_malformed_body_is_told_first() {
    // Contract 2.1, admin routes and admin check order.
    let router = start(Options::default()).await;
    let servers = r#"{"mcp_servers": {}}"#;
    let one = r#"{"server_name": "a", "server": {}}"#;
    let switch = r#"{"server_name": "a", "enabled": true}"#;
    for (method, path, body) in [
        ("GET", "/api/mcp/config", ""),
        ("PUT", "/api/mcp/config", servers),
        ("PATCH", "/api/mcp/config", switch),
        ("PUT", "/api/mcp/config/server", one),
        ("POST", "/api/mcp/config/servers", servers),
        ("DELETE", "/api/mcp/config/servers/a", ""),
        ("POST", "/api/mcp/cache/reset", ""),
        ("POST", "/api/mcp/tools/refresh", "{}"),
    ] {
        for name in ["ann", "agent"] {
            let refused = as_caller(&router, name, method, path, body).await;
            assert_eq!((refused.status.as_u16(), refused.code().as_str()), (403, "denied"), "{method} {path}");
            let detail = "Admin privileges required to manage MCP configuration.";
            assert_eq!(refused.json()["detail"], detail, "{method} {path}");
            assert_eq!(refused.header("etag"), "", "{method} {path}");
        }
        let admin = as_caller(&router, "admin", method, path, body).await;
        assert_ne!(admin.status, 403, "{method} {path}: {}", admin.text);
    }
    for (method, path) in [("PUT", "/api/mcp/config"), ("PATCH", "/api/mcp/config"), ("PUT", "/api/mcp/config/server")]
    {
        assert_eq!(as_caller(&router, "ann", method, path, "{}").await.status, 422, "{method} {path}");
    }
}

#[tokio::test]
async fn a_caller_acts_for_itself_and_only_an_agent_for_others() {
    // Invariant P1; contract 2.1, thread routes.
    let router = start(Options::default()).await;
    let call = |user: &str| json!({"name": "echo", "thread_id": "t", "user_id": user}).to_string();
    for (caller, user, status) in [
        ("ann", "", 200),
        ("ann", "ann", 200),
        ("bob", "", 200),
        ("agent", "cid", 200),
        ("ann", "bob", 403),
        ("admin", "bob", 403),
    ] {
        let called = as_caller(&router, caller, "POST", "/api/mcp/tools/call", &call(user)).await;
        assert_eq!(called.status.as_u16(), status, "{caller} for {user}: {}", called.text);
    }
    let others = [
        ("GET", "/api/mcp/tools?user_id=bob".to_owned(), String::new()),
        ("POST", "/api/mcp/tools/search".to_owned(), json!({"query": "x", "user_id": "bob"}).to_string()),
        ("POST", "/api/mcp/tools/promote".to_owned(), json!({"text": "x", "user_id": "bob"}).to_string()),
        ("DELETE", "/api/threads/t/mcp-sessions?user_id=bob".to_owned(), String::new()),
    ];
    for (method, path, body) in others {
        let refused = as_caller(&router, "ann", method, &path, &body).await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (403, "denied"), "{path}");
    }
    let seen = async |caller: &str| {
        let sessions = get(&router, caller, "/api/mcp/sessions").await.json();
        let users =
            sessions["sessions"].as_array().unwrap().iter().map(|one| one["user_id"].as_str().unwrap().to_owned());
        let mut users: Vec<String> = users.collect();
        users.sort();
        users
    };
    assert_eq!(seen("ann").await, ["ann"]);
    assert_eq!(seen("agent").await, [""; 0]);
    assert_eq!(seen("admin").await, ["ann", "bob", "cid"]);
    let closed = as_caller(&router, "ann", "DELETE", "/api/threads/t/mcp-sessions", "").await;
    assert_eq!(closed.json(), json!({"closed": 1}), "its own, and nobody else's");
    assert_eq!(seen("admin").await, ["bob", "cid"]);
}

#[tokio::test]
async fn tools_that_a_caller_may_not_use_are_not_shown_and_not_called() {
    let router = start(Options::default()).await;
    let listed = get(&router, "ann", "/api/mcp/tools").await;
    assert!(listed.text.contains("\"echo\"") && !listed.text.contains("flood"), "{}", listed.text);
    let refused = as_caller(&router, "ann", "POST", "/api/mcp/tools/call", r#"{"name": "flood"}"#).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (403, "denied"));
    assert!(refused.text.contains("this caller may not use tool `flood`"), "{}", refused.text);
}

#[tokio::test]
async fn whoever_asks_too_often_waits_and_nobody_else_does() {
    let rate = Rate::new(0.5, 2);
    assert!(rate.is_some());
    let router = start(Options { rate_limit: rate, ..Options::default() }).await;
    for _ in 0..2 {
        assert_eq!(get(&router, "ann", "/api/mcp/sessions").await.status, 200);
    }
    let refused = get(&router, "ann", "/api/mcp/sessions").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (429, "busy"));
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=2).contains(&wait), "{wait}");
    assert_eq!(get(&router, "bob", "/api/mcp/sessions").await.status, 200);
    for _ in 0..5 {
        assert_eq!(get(&router, "", "/healthz").await.status, 200);
    }
}

#[tokio::test]
async fn once_callers_are_told_apart_any_host_is_served_but_no_foreign_web_site() {
    let router = start(Options::default()).await;
    let from = |host: &str, origin: Option<&str>| {
        let request = Request::get("/api/mcp/sessions").header("host", host).header("authorization", "Bearer ann");
        let request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
        ask(&router, request.body(Body::empty()).unwrap())
    };
    assert_eq!(from("caribou.example", None).await.status, 200);
    let foreign = from("caribou.example", Some("https://evil.example")).await;
    assert_eq!((foreign.status.as_u16(), foreign.code().as_str()), (403, "denied"));
}
