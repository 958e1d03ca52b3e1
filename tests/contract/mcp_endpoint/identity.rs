//! Who a client is: the same as by every other door, and nobody else's session is of use (invariant P1).

use std::time::Duration;

use caribou_tests::{Caribou, HttpFake, Setup, StdioFake};
use serde_json::{Value, json};

use super::client::{Session, messages, modern, post, request};

const ENOUGH: Duration = Duration::from_secs(60);

pub(super) async fn key_of(setup: &Setup, words: &[&str]) -> String {
    let command = [&["keys", "create", "--json"], words].concat();
    let created = tokio::time::timeout(ENOUGH, setup.command(&command).output()).await.expect("it ends").unwrap();
    let key: Value = serde_json::from_slice(&created.stdout).unwrap();
    key["key"].as_str().unwrap().to_owned()
}

fn counting() -> Setup {
    let setup = Setup::new().variable("CARIBOU_AUTH_MODE", "api_keys");
    let fake =
        StdioFake::new(setup.home(), "fake", json!({ "calls": { "count": [{ "text": "$N" }], "echo": ["default"] } }));
    setup.server("fake", fake.entry())
}

#[tokio::test]
async fn a_session_of_one_caller_is_not_there_for_another() {
    // Invariant P1; mcp.md §17, S20.
    let setup = counting();
    let (ann, bob) = (key_of(&setup, &["--user", "ann"]).await, key_of(&setup, &["--user", "bob"]).await);
    let caribou = setup.start().await;
    let of_ann = Session::open_with(&caribou, "/mcp", Some(&ann)).await;
    assert_eq!(of_ann.call("fake_count", json!({})).await.status, 200);
    let as_bob = |method: &str| {
        let request = caribou.request(method, "/mcp").header("mcp-session-id", &of_ann.id);
        request.header("authorization", format!("Bearer {bob}")).header("accept", "text/event-stream")
    };
    let body = request(1, "tools/call", &json!({ "name": "fake_count" }));
    let call = as_bob("POST").header("content-type", "application/json").body(body);
    assert_eq!(caribou.send(call).await.status, 404);
    assert_eq!(caribou.send(as_bob("GET")).await.status, 404);
    assert_eq!(caribou.send(as_bob("DELETE")).await.status, 404);
    let again = messages(&of_ann.call("fake_count", json!({})).await).pop().unwrap();
    assert_eq!(again["result"]["content"][0]["text"], "2", "nothing happened to it");
}

#[tokio::test]
async fn a_client_without_a_valid_key_is_refused_and_one_with_rules_sees_its_tools_only() {
    // Contract 2.1, auth middleware.
    let setup = counting();
    let key = key_of(&setup, &["--user", "ann", "--allow", "fake_count"]).await;
    let caribou = setup.start().await;
    let body = request(0, "initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
    let response = post(&caribou, "/mcp", body).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    let ask = async |path: &str, method: &str, params: Value| {
        let request = modern(&caribou, path, method, params).header("authorization", format!("Bearer {key}"));
        caribou.send(request).await.json()
    };
    let names = |listed: &Value| {
        let tools = listed["result"]["tools"].as_array().cloned().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&ask("/mcp", "tools/list", json!({})).await), ["fake_count"]);
    assert_eq!(names(&ask("/mcp/fake", "tools/list", json!({})).await), ["count"]);
    for (path, name) in [("/mcp", "fake_echo"), ("/mcp/fake", "echo")] {
        let refused = ask(path, "tools/call", json!({ "name": name })).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert_eq!(refused["result"]["_meta"]["io.caribou/error"]["code"], "denied", "{refused}");
    }
}

#[tokio::test]
async fn a_client_without_a_token_is_told_where_they_come_from() {
    // mcp.md §17, S22.
    let setup = Setup::new().settings(
        "auth:\n  mode: jwt\n  jwt: {jwks_file: keys.json, issuer: 'https://issuer.example', audience: [caribou]}\n\
         mcp_endpoint: {public_url: 'https://caribou.example/'}\n",
    );
    // The public key of RFC 8037, appendix A.2.
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "a", "alg": "EdDSA", "use": "sig",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
    setup.home().write("keys.json", &json!({ "keys": [key] }).to_string());
    let caribou = setup.start().await;
    let refused = post(&caribou, "/mcp/time", "{}".to_owned()).send().await.unwrap();
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap().to_owned();
    let place = "https://caribou.example/.well-known/oauth-protected-resource/mcp/time";
    assert_eq!((refused.status().as_u16(), challenge), (401, format!("Bearer resource_metadata=\"{place}\"")));
    for (path, resource) in [("", "/mcp"), ("/mcp", "/mcp"), ("/mcp/time", "/mcp/time")] {
        let told = caribou.get(&format!("/.well-known/oauth-protected-resource{path}")).await.json();
        assert_eq!(told["resource"], format!("https://caribou.example{resource}"));
        assert_eq!(told["authorization_servers"], json!(["https://issuer.example"]));
    }
}

#[tokio::test]
async fn secrets_of_a_request_reach_the_headers_that_ask_for_them_and_nothing_else_of_it_goes_on() {
    // Contract 8.5, secrets source; architecture.md §10, secrets carrier; mcp.md §17, S23.
    let fake = HttpFake::start(json!({ "calls": { "t": [{ "text": "done" }] } })).await;
    let members = json!({ "headers_from_context": { "headers": { "X-Key": "KEY" } } });
    let caribou = Setup::new().server("s", fake.entry_with(members)).variable("RUST_LOG", "trace").start().await;
    assert_eq!(caribou.tool_names().await, ["s_t"]);
    let call = |meta: Value| modern(&caribou, "/mcp", "tools/call", json!({ "name": "s_t", "_meta": meta }));
    let secrets = json!({ "io.caribou/secrets": { "KEY": "hunter2", "OTHER": "hunter3" }, "progressToken": "mine" });
    let answer = caribou.send(call(secrets).header("cookie", "hunter4")).await;
    assert_eq!(messages(&answer).pop().unwrap()["result"]["content"][0]["text"], "done", "{answer:?}");
    let sent = fake.log().received("tools/call").pop().unwrap();
    assert_eq!(sent.headers.get("x-key").map(String::as_str), Some("hunter2"));
    let all = format!("{sent:?}");
    for kept in ["hunter3", "hunter4", "io.caribou", "mine"] {
        assert!(!all.contains(kept), "{kept}: {all}");
    }
    assert!(!caribou.log().contains("hunter"), "invariant O3");
    let refused = caribou.send(call(json!({ "auth_token": "hunter2" }))).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &(-32_602).into()));
    without_secrets(&caribou).await;
}

/// A call without the secret that its server needs goes nowhere.
async fn without_secrets(caribou: &Caribou) {
    let answer = caribou.send(modern(caribou, "/mcp", "tools/call", json!({ "name": "s_t" }))).await.json();
    assert_eq!(answer["result"]["_meta"]["io.caribou/error"]["code"], "denied", "{answer}");
}
