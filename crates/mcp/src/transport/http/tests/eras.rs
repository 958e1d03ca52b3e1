//! How the era of a server is found out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use caribou_core::era::Era;
use caribou_ports::mcp::{CallError, OpenError, Session};
use serde_json::json;

use super::fake::{Client, Fake, PATIENCE, call, discovered, empty, error, initialized, legacy, result, stream, text};

#[tokio::test]
async fn a_server_that_answers_the_modern_question_is_modern() {
    let fake = Fake::start(|seen| match seen.rpc() {
        "server/discover" => discovered(seen),
        _ => result(seen, json!({"resultType": "complete", "content": []})),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    assert_eq!((session.facts().era, session.facts().stateful), (Era::Modern, false));
    call(&session, "echo").await.unwrap();
    assert_eq!(fake.asked(), ["server/discover", "tools/call"]);
}

#[tokio::test]
async fn a_refusal_without_a_modern_error_leads_to_initialize() {
    for status in [400, 404, 405, 406, 500, 503] {
        let fake = Fake::start(move |seen| match seen.rpc() {
            "server/discover" => text(status, "text/plain", "no"),
            "tools/call" => result(seen, json!({"content": []})),
            _ => legacy(seen).unwrap(),
        })
        .await;
        let session = Client::new().open(&fake.url()).await.unwrap();
        assert_eq!(session.facts().era, Era::Legacy, "{status}");
        call(&session, "echo").await.unwrap();
        assert_eq!(fake.asked(), ["server/discover", "initialize", "notifications/initialized", "tools/call"]);
        let version = |rpc: &str| fake.seen().into_iter().find(|seen| seen.rpc() == rpc).unwrap();
        assert_eq!(version("initialize").header("mcp-protocol-version"), None);
        assert_eq!(version("tools/call").header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

#[tokio::test]
async fn a_modern_error_never_leads_to_initialize() {
    for (status, code) in [(400, -32020), (400, -32021), (404, -32601), (200, -32021)] {
        let fake = Fake::start(move |seen| match seen.rpc() {
            "server/discover" => error(seen, status, code, "no"),
            _ => result(seen, json!({"resultType": "complete", "content": []})),
        })
        .await;
        let session = Client::new().open(&fake.url()).await.unwrap();
        assert_eq!(session.facts().era, Era::Modern, "{status} {code}");
        assert_eq!(fake.asked(), ["server/discover"]);
    }
}

#[tokio::test]
async fn a_refused_revision_that_is_listed_is_offered_once_more() {
    // mcp.md §2.3.
    let refused_before = AtomicBool::new(false);
    let refusal =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#;
    let fake = Fake::start(move |seen| match seen.rpc() {
        "server/discover" if !refused_before.swap(true, SeqCst) => text(400, "application/json", refusal),
        _ => discovered(seen),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    assert_eq!(session.facts().era, Era::Modern);
    assert_eq!(fake.asked(), ["server/discover"; 2]);
    let stubborn = Fake::start(move |_| text(400, "application/json", refusal)).await;
    let refused = Client::new().open(&stubborn.url()).await.err().unwrap();
    assert!(matches!(&refused, OpenError::Protocol(why) if why.contains("refuses revision 2026-07-28")), "{refused}");
    assert_eq!(stubborn.asked(), ["server/discover"; 2]);
}

#[tokio::test]
async fn a_refused_credential_ends_the_search_and_teaches_no_era() {
    for status in [401, 403] {
        let fake = Fake::start(move |_| empty(status)).await;
        let client = Client::new();
        let refused = client.open(&fake.url()).await.err().unwrap();
        assert!(matches!(&refused, OpenError::Denied(why) if why.contains("`fake`")), "{refused}");
        assert_eq!(fake.asked(), ["server/discover"]);
        assert_eq!(client.eras.recall(&Client::server(&fake.url(), &json!({}))), None);
    }
}

#[tokio::test]
async fn the_era_is_remembered_and_asked_again_when_it_proves_wrong() {
    let is_modern = Arc::new(AtomicBool::new(false));
    let upgraded = Arc::clone(&is_modern);
    let fake = Fake::start(move |seen| {
        let is_modern = upgraded.load(SeqCst);
        match (seen.rpc(), is_modern) {
            ("server/discover", true) => discovered(seen),
            ("initialize", true) => error(seen, 404, -32601, "no such method"),
            _ => legacy(seen).unwrap(),
        }
    })
    .await;
    let client = Client::new();
    client.open(&fake.url()).await.unwrap();
    client.open(&fake.url()).await.unwrap();
    let opening = ["initialize", "notifications/initialized"];
    assert_eq!(fake.asked(), [&["server/discover"], &opening[..], &opening].concat());
    is_modern.store(true, SeqCst);
    assert_eq!(client.open(&fake.url()).await.unwrap().facts().era, Era::Modern);
    assert_eq!(fake.asked()[5..], ["initialize", "server/discover"]);
}

#[tokio::test]
async fn a_server_that_refuses_our_revision_is_offered_the_best_it_names() {
    let bodies = [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"supported: 2025-06-18, 2024-11-05"}}"#,
        "unsupported protocol version; supported: 2025-06-18, 2024-11-05",
    ];
    for body in bodies {
        let fake = Fake::start(move |seen| {
            let asked = seen.header("mcp-protocol-version").or(seen.body["params"]["protocolVersion"].as_str());
            match (asked, seen.rpc()) {
                (Some("2025-06-18"), "initialize") => result(seen, initialized("2025-06-18")),
                (Some("2025-06-18"), _) => legacy(seen).unwrap(),
                _ => text(400, "application/json", body),
            }
        })
        .await;
        let client = Client::new();
        let offers = || fake.asked().iter().filter(|asked| *asked == "initialize").count();
        let session = client.open(&fake.url()).await.unwrap();
        assert_eq!(session.facts().version, "2025-06-18");
        assert_eq!(offers(), 2, "{body}");
        client.open(&fake.url()).await.unwrap();
        assert_eq!(offers(), 3, "what it agreed to is offered at once: {body}");
    }
}

#[tokio::test]
async fn a_server_that_no_longer_speaks_what_it_agreed_to_is_asked_again() {
    let speaks = Arc::new(std::sync::Mutex::new("2025-06-18"));
    let upgraded = Arc::clone(&speaks);
    let fake = Fake::start(move |seen| {
        let speaks = *upgraded.lock().unwrap();
        match (seen.rpc(), seen.body["params"]["protocolVersion"].as_str()) {
            ("initialize", Some(offered)) if offered != speaks && speaks == "2025-11-25" => empty(400),
            ("initialize", _) => result(seen, initialized(speaks)),
            _ => legacy(seen).unwrap(),
        }
    })
    .await;
    let client = Client::new();
    client.open(&fake.url()).await.unwrap();
    *speaks.lock().unwrap() = "2025-11-25";
    assert_eq!(client.open(&fake.url()).await.unwrap().facts().version, "2025-11-25");
}

#[tokio::test]
async fn a_modern_server_that_was_slow_to_answer_is_asked_once_more() {
    let held = std::sync::Mutex::new(Vec::new());
    let fake = Fake::start(move |seen| match seen.rpc() {
        "server/discover" if held.lock().unwrap().is_empty() => {
            let (chunks, response) = stream();
            held.lock().unwrap().push(chunks);
            response
        }
        "server/discover" => discovered(seen),
        _ => error(seen, 400, -32020, "Missing MCP-Protocol-Version header"),
    })
    .await;
    let session = Client::new().open(&fake.url()).await.unwrap();
    assert_eq!(session.facts().era, Era::Modern);
    assert_eq!(fake.asked(), ["server/discover", "initialize", "server/discover"]);
}

#[tokio::test]
async fn a_setting_spares_the_question() {
    let fake = Fake::start(|seen| legacy(seen).unwrap()).await;
    Client::new().open_with(&fake.url(), json!({"protocol": "legacy"})).await.unwrap();
    assert_eq!(fake.asked(), ["initialize", "notifications/initialized"]);
    let refused = Client::new().open_with(&fake.url(), json!({"protocol": "modern"})).await.err().unwrap();
    assert!(matches!(&refused, OpenError::Protocol(why) if why.contains("protocol: modern")), "{refused}");
}

#[tokio::test]
async fn a_page_is_no_server_and_a_closed_port_is_unreachable() {
    let fake = Fake::start(|_| text(200, "text/html", "<html>hello</html>")).await;
    let refused = Client::new().open(&fake.url()).await.err().unwrap();
    assert!(matches!(&refused, OpenError::Protocol(why) if why.contains("text/html")), "{refused}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = Client::new().open(&format!("http://{port}/mcp?key=hunter22")).await.err().unwrap();
    assert!(matches!(&refused, OpenError::Unreachable(why) if !why.contains("hunter22")), "{refused}");
}

#[tokio::test]
async fn a_server_in_trouble_teaches_no_era() {
    let fake = Fake::start(|seen| match seen.rpc() {
        "server/discover" => empty(503),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let client = Client::new();
    client.open(&fake.url()).await.unwrap();
    assert_eq!(client.eras.recall(&Client::server(&fake.url(), &json!({}))), None);
}

#[tokio::test]
async fn a_session_of_the_wrong_era_ends_and_the_next_one_asks_again() {
    let is_legacy = Arc::new(AtomicBool::new(false));
    let downgraded = Arc::clone(&is_legacy);
    let fake = Fake::start(move |seen| match (seen.rpc(), downgraded.load(SeqCst)) {
        ("server/discover", false) => discovered(seen),
        ("tools/call", _) if seen.header("mcp-method").is_some() => empty(400),
        ("tools/call", _) => result(seen, json!({"content": []})),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let client = Client::new();
    let session = client.open(&fake.url()).await.unwrap();
    is_legacy.store(true, SeqCst);
    let error = call(&session, "x").await.unwrap_err();
    assert!(matches!(error, CallError::Disconnected { sent: false, .. }), "{error}");
    let ended = tokio::time::timeout(PATIENCE, session.ended()).await.expect("it never ends");
    assert!(ended.reason.contains("no longer speaks the modern era"), "{ended}");
    let next = client.open(&fake.url()).await.unwrap();
    assert_eq!(next.facts().era, Era::Legacy);
    call(&next, "x").await.unwrap();
}
