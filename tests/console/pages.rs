//! The pages in a headless Chromium: what they show, by keyboard alone, for everybody who can use a browser at all.

use std::path::{Path, PathBuf};
use std::time::Duration;

use caribou_tests::servers::target_folder;
use caribou_tests::{Caribou, HttpFake, Setup, StdioFake, TokenFake, eventually, third_party};
use serde_json::{Value, json};

/// How long a whole visit may take on a loaded machine.
const VISIT: Duration = Duration::from_secs(170);

const SOON: Duration = Duration::from_secs(30);

/// Runs a script beside this file against `caribou`.
async fn visited(script: &str, caribou: &Caribou, variables: &[(&str, &str)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("console").join(script);
    let shots = target_folder().join("console").join(script.trim_end_matches(".mjs"));
    let mut browser = third_party::browser(&path, caribou.url(), &shots);
    let ran = tokio::time::timeout(VISIT, browser.envs(variables.iter().copied()).output()).await;
    let ran = ran.expect("the visit ends").expect("the browser can be run");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (said(&ran.stdout), said(&ran.stderr));
    assert!(ran.status.success() && out.contains("all pages"), "{out}\n{err}\nlog:\n{}", caribou.log());
}

/// A tool that answers with markup, and one that refuses.
fn script() -> Value {
    json!({ "calls": {
        "hostile": [{ "text": "<img src=x onerror=alert(1)><script>alert(2)</script>" }],
        "wrong": [{ "error": { "code": -32000, "message": "not today" } }],
    } })
}

/// A rotating chain of refresh tokens in front of a server.
async fn shop() -> (HttpFake, TokenFake) {
    let fake = HttpFake::start(json!({ "calls": { "buy": [{ "text": "bought" }] } })).await;
    let tokens = TokenFake::start().await;
    tokens.be_strict(Duration::from_secs(3_600), Duration::ZERO);
    tokens.protect(&fake);
    (fake, tokens)
}

/// The folder of the binaries in front of `PATH`: servers of a stored configuration are started by name.
fn path() -> String {
    let programs: PathBuf = caribou_tests::caribou::binary("caribou-under-test").parent().unwrap().to_owned();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let joined = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&paths)));
    joined.unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_page_shows_what_there_is_and_can_be_used_by_everybody() {
    let setup = Setup::new().settings("mcp_tasks: {poll_interval_seconds: 1}\nconfig: {source: database}\n");
    let scripted = HttpFake::start(script()).await;
    let (fake, tokens) = shop().await;
    let toolset = json!({
        "name": "report", "submit_tool": "report_submit", "status_tool": "report_status",
        "cancel_tool": "report_cancel", "input_tool": "report_input",
    });
    let demo = json!({ "command": "caribou-under-test", "args": ["demo-server"], "task_toolsets": [toolset] });
    let caribou = setup
        .variable("PATH", &path())
        .variable("CARIBOU_MCP_STDIO_COMMAND_ALLOWLIST", "caribou-under-test")
        .server("demo", demo)
        .server("scripted", scripted.entry())
        .server("shop", fake.entry_with(json!({ "oauth": tokens.refreshing(json!({ "refresh_skew_seconds": 0 })) })))
        .server("broken", json!({ "type": "http", "url": "http://127.0.0.1:1/mcp" }))
        .start()
        .await;
    for (name, user, thread, arguments) in [
        ("demo_counter", "ann", "kitchen", json!({})),
        ("demo_report_submit", "bob", "office", json!({ "topic": "reindeer" })),
        ("shop_buy", "ann", "kitchen", json!({})),
    ] {
        let body = json!({ "name": name, "arguments": arguments, "user_id": user, "thread_id": thread });
        let called = caribou.post("/api/mcp/tools/call", body.to_string()).await;
        assert_eq!(called.status, 200, "{called:?}");
    }
    eventually(SOON, "the server that cannot be reached has failed", async || {
        let servers = caribou.get("/api/mcp/servers").await.json();
        let failed = servers["servers"].as_array().unwrap().iter().any(|server| server["state"] == "failed");
        failed.then_some(())
    })
    .await;
    visited("pages.mjs", &caribou, &[]).await;
    assert_eq!(tokens.judgement().0, 0, "no token was presented twice");
}

#[tokio::test]
async fn a_user_without_a_role_is_offered_no_change_and_an_admin_signs_in() {
    let setup = Setup::new().variable("CARIBOU_AUTH_MODE", "api_keys");
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "count": [{ "text": "$N" }] } }));
    let setup = setup.server("fake", fake.entry());
    let mut keys = Vec::new();
    for words in [&["root", "--role", "admin"][..], &["ann"], &["bob"]] {
        let line = [&["keys", "create", "--json", "--user"], words].concat();
        let created = setup.command(&line).output().await.unwrap();
        let created: Value = serde_json::from_slice(&created.stdout).unwrap();
        keys.push(created["key"].as_str().unwrap().to_owned());
    }
    let caribou = setup.start().await;
    for key in &keys[1..] {
        let request = caribou.request("POST", "/api/mcp/tools/call").header("authorization", format!("Bearer {key}"));
        let called = caribou.send(request.json(&json!({ "name": "fake_count", "thread_id": "t1" }))).await;
        assert_eq!(called.status, 200, "{called:?}");
    }
    visited("callers.mjs", &caribou, &[("ADMIN_KEY", &keys[0]), ("USER_KEY", &keys[1])]).await;
    for key in &keys {
        assert!(!caribou.log().contains(key.as_str()), "invariant O3");
    }
}
