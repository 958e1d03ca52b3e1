//! Callers and operators whose secrets, right and wrong, are not said back to anybody.

use caribou_tests::{Setup, StdioFake};
use serde_json::{Value, json};

use super::collector::Collector;
use super::shown::{Shown, end, in_url, look, named, secret, telling};

/// Contract 1.11, 1.12, 2.1, 2.4: what callers and operators send, rightly or wrongly.
#[tokio::test]
async fn what_is_sent_to_caribou_itself_is_not_said_back() {
    const PLACES: [&str; 5] = ["put-env", "put-header", "broken-body", "auth-token", "wrong-key"];
    let collector = Collector::start().await;
    let setup = telling(Setup::new(), &collector).variable("CARIBOU_AUTH_MODE", "api_keys");
    let made = setup.command(&["keys", "create", "--user", "ann", "--role", "admin"]).output().await.unwrap();
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let revoked = setup.command(&["keys", "create", "--user", "bob", "--json"]).output().await.unwrap();
    let revoked: Value = serde_json::from_slice(&revoked.stdout).unwrap();
    assert!(setup.command(&["keys", "revoke", revoked["id"].as_str().unwrap()]).status().await.unwrap().success());
    let revoked = revoked["key"].as_str().unwrap().to_owned();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "ok": ["default"] } }));
    let caribou = setup.server("fake", fake.entry()).start().await;
    let mut shown = Shown::default();
    for (token, status) in [(&key, 200), (&revoked, 401), (&secret("wrong-key"), 401), (&format!("{key}x"), 401)] {
        let answer = caribou.send(caribou.request("GET", "/api/mcp/sessions").bearer_auth(token)).await;
        assert_eq!(answer.status, status);
        shown.answer("a key", &answer);
    }
    let broken = secret("broken-body");
    let entry = json!({ "type": "http", "url": "http://127.0.0.1:1", "enabled": false,
        "env": { "K": secret("put-env") }, "headers": { "H": secret("put-header") }, "token": secret("put-header") });
    for (method, path, body, status) in [
        ("POST", "/api/mcp/tools/call", format!("{{\"name\": \"fake_ok\", {broken}"), 400),
        ("POST", "/api/mcp/tools/call", json!({ "name": "fake_ok", "thread_id": [broken] }).to_string(), 422),
        (
            "POST",
            "/api/mcp/tools/call",
            json!({ "name": "fake_ok", "metadata": { "auth_token": secret("auth-token") } }).to_string(),
            422,
        ),
        (
            "POST",
            "/api/mcp/tools/call",
            json!({ "name": "fake_ok", "config": { "context": { "secrets": broken } }, "user_id": 7 }).to_string(),
            422,
        ),
        ("PUT", "/api/mcp/config", format!("{{\"mcp_servers\": {broken}}}"), 400),
        (
            "PUT",
            "/api/mcp/config",
            json!({ "mcp_servers": { "a": { "command": "sh", "args": [], "env": { "K": secret("put-env") } } } })
                .to_string(),
            400,
        ),
        ("PUT", "/api/mcp/config", json!({ "mcp_servers": { "a": { "headers": broken } } }).to_string(), 422),
        ("POST", "/api/mcp/config/servers", json!({ "mcp_servers": { "new": entry } }).to_string(), 200),
        ("PATCH", "/api/mcp/config", json!({ "server_name": "new", "enabled": [broken] }).to_string(), 422),
        ("POST", "/api/mcp/cache/reset", String::new(), 200),
    ] {
        let request = caribou.request(method, path).header("content-type", "application/json").bearer_auth(&key);
        let answer = caribou.send(request.body(body)).await;
        assert!(
            answer.status == status || (status >= 400 && (400..=422).contains(&answer.status)),
            "{path}: {answer:?}"
        );
        shown.answer(path, &answer);
    }
    let call = json!({ "name": "fake_ok" }).to_string();
    let call = caribou.request("POST", "/api/mcp/tools/call").header("content-type", "application/json").body(call);
    assert_eq!(caribou.send(call.bearer_auth(&key)).await.status, 200);
    let beside = Setup::new().variable("CARIBOU_SERVER", caribou.url()).variable("CARIBOU_TOKEN", &key);
    for words in
        [&["servers"][..], &["sessions", "--json"], &["audit"], &["audit", "--json"], &["config", "get", "new"]]
    {
        assert_eq!(shown.command(&beside, words).await, Some(0), "{words:?}");
    }
    end(caribou, &collector, &mut shown).await;
    shown.assert_none_of(&named(&PLACES));
    shown.assert_none_of(&[("the key".to_owned(), key), ("the revoked key".to_owned(), revoked)]);
}

/// Contract 1.11, 7.7: what an operator writes, rightly or wrongly, before anything runs and while it does.
#[tokio::test]
async fn settings_and_files_that_cannot_be_used_are_not_quoted() {
    const PLACES: [&str; 7] =
        ["database", "proxy", "ring", "in-file", "in-broken-file", "token-in-variable", "setting"];
    let mut shown = Shown::default();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for (name, value) in [
        ("CARIBOU_DATABASE_URL", format!("postgres://u:{}@127.0.0.1:1/db", in_url(&secret("database")))),
        ("CARIBOU_DATABASE_URL", secret("database")),
        ("CARIBOU_NETWORK_PROXY", format!("nonsense://u:{}@h", secret("proxy"))),
        ("CARIBOU_CREDENTIALS_KEY", secret("ring")),
        ("CARIBOU_LISTEN", secret("setting")),
        ("CARIBOU_SESSIONS_MAX_LIVE", secret("setting")),
    ] {
        let setup = Setup::new().variable(name, &value).variable("RUST_LOG", "info,caribou=trace");
        assert_ne!(shown.command(&setup, &serve).await, Some(0), "{name}");
        shown.command(&setup, &["check"]).await;
        shown.command(&setup, &["check", "--json"]).await;
    }
    let setup = Setup::new().variable("CARIBOU_TOKEN", &secret("token-in-variable"));
    for words in [&["tools", "list", "--server", "http://127.0.0.1:1"][..], &["servers", "--help"], &["keys", "list"]] {
        shown.command(&setup, words).await;
    }
    let held = secret("in-file");
    let odd = json!({
        "headers": { "X Bad": held }, "oauth": { "client_secret": [held] }, "user_auth": { "users": [held] },
        "type": held,
    });
    let setup = Setup::new()
        .server("odd", odd)
        .interceptors(json!([format!("ftp://u:{held}@h"), { "use": 7, "secrets": held }]));
    shown.command(&setup, &["check"]).await;
    shown.command(&setup, &["check", "--json"]).await;

    let collector = Collector::start().await;
    let setup = telling(Setup::new(), &collector);
    let setup = setup.variable("CARIBOU_NETWORK_PROXY", &format!("http://u:{}@127.0.0.1:1", in_url(&secret("proxy"))));
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "ok": ["default"] } }));
    let far = json!({ "type": "http", "url": "http://server.invalid/mcp" });
    let caribou = setup.server("fake", fake.entry()).server("far", far).start().await;
    assert_eq!(caribou.call("fake_ok", json!({})).await.status, 200);
    shown.answer("a server behind a proxy that is away", &caribou.call("far_ok", json!({})).await);
    let broken = secret("in-broken-file");
    for text in [
        format!("{{\"mcpServers\": {{\"fake\": {{\"env\": {{\"K\": \"{broken}\", }}"),
        broken.to_string(),
        json!({ "mcpServers": { "fake": { "command": [broken], "env": broken } } }).to_string(),
    ] {
        caribou.home().write("extensions_config.json", &text);
        caribou.call("fake_ok", json!({})).await;
        look(&caribou, &mut shown).await;
    }
    end(caribou, &collector, &mut shown).await;
    shown.assert_none_of(&named(&PLACES));
}
