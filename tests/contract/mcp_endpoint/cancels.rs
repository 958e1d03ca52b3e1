//! Cancels of requests beside calls: of prompts, resources and completions (mcp.md §8, 14.3; §17, S12).

use std::path::PathBuf;

use caribou_tests::{Caribou, Setup, StdioFake, eventually};
use serde_json::{Value, json};

use super::client::{SOON, Session, Stream, appears, modern, post, request};

/// The requests, and whether servers may ask something in the middle of them.
fn requests() -> [(&'static str, Value, bool); 3] {
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    let completes = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
    [
        ("prompts/get", json!({ "name": "p" }), true),
        ("resources/read", json!({ "uri": "a://1" }), true),
        ("completion/complete", completes, false),
    ]
}

/// A server that never answers such a request; once the file `asks` is there it asks its caller something. And the file
/// that it makes when one comes.
async fn silent(setup: Setup) -> (Caribou, StdioFake, PathBuf, PathBuf) {
    let (begun, asks) = (setup.home().join("begun"), setup.home().join("asks"));
    let question = json!({ "send": { "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "?", "requestedSchema": { "type": "object", "properties": {} } } } });
    let steps = json!([{ "touch": begun }, { "if_file": { "path": asks, "steps": [question] } }, "hang"]);
    let info = json!({ "name": "fake", "version": "0" });
    let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {} });
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
    let mut on = json!({ "initialize": [{ "result": greeting }] });
    for (method, ..) in requests() {
        on[method] = steps.clone();
    }
    let fake = StdioFake::new(setup.home(), "fake", json!({ "on": on, "calls": { "t": ["default"] } }));
    let caribou = setup.server("fake", fake.entry()).start().await;
    assert_eq!(caribou.tool_names().await, ["fake_t"]);
    (caribou, fake, begun, asks)
}

/// Waits until the server was told that its request of this method is cancelled.
async fn cancelled(fake: &StdioFake, method: &str) {
    let what = format!("`{method}` is cancelled at the server");
    eventually(SOON, &what, async || {
        let asked = fake.log().received(method).pop()?.message()["id"].clone();
        let told = fake.log().received("notifications/cancelled");
        told.iter().any(|told| told.message()["params"]["requestId"] == asked).then_some(())
    })
    .await;
}

fn cancel(id: u64) -> String {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string()
}

#[tokio::test]
async fn what_a_client_cancels_is_cancelled_at_its_server_at_once() {
    let (caribou, fake, begun, _asks) = silent(Setup::new()).await;
    let session = Session::open(&caribou, "/mcp/fake").await;
    for (method, params, _) in requests() {
        let asked = session.send(request(40, method, &params));
        let cancels = async {
            appears(&begun).await;
            assert_eq!(session.send(cancel(40)).await.status, 202);
        };
        let both = async { tokio::join!(asked, cancels) };
        let (answer, ()) = tokio::time::timeout(SOON, both).await.expect("it ends");
        assert!(!answer.body.contains("data:"), "nothing more is said of it: {answer:?}");
        cancelled(&fake, method).await;
        std::fs::remove_file(&begun).unwrap();
        // A modern client cancels by going away.
        tokio::select! {
            answer = caribou.send(modern(&caribou, "/mcp/fake", method, params)) => panic!("answered: {answer:?}"),
            () = appears(&begun) => {}
        }
        cancelled(&fake, method).await;
        std::fs::remove_file(&begun).unwrap();
    }
}

#[tokio::test]
async fn what_is_cancelled_while_its_server_waits_for_an_answer_is_cancelled_there() {
    let (caribou, fake, _begun, asks) = silent(Setup::new()).await;
    std::fs::write(asks, "").unwrap();
    let session = Session::open(&caribou, "/mcp/fake").await;
    for (method, params, may_ask) in requests() {
        if !may_ask {
            continue;
        }
        let body = request(40, method, &params);
        let mut stream = Stream::of(session.with(post(&caribou, "/mcp/fake", body))).await;
        assert_eq!(stream.next().await.unwrap()["method"], "elicitation/create");
        assert_eq!(session.send(cancel(40)).await.status, 202);
        assert_eq!(stream.next().await, None, "nothing more is said of it");
        cancelled(&fake, method).await;
    }
}
