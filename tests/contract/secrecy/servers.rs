//! Servers, token endpoints, interceptors and personal connections that repeat what they were given.

use axum::body::Bytes;
use caribou_tests::fake::Log;
use caribou_tests::{HttpFake, Setup, StdioFake, TokenFake};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::collector::Collector;
use super::shown::{
    FAILING, Shown, echo, end, fail, failing, in_url, look, named, over_grpc, secret, telling, traces, was_sent,
};

const OF_CHILD: [&str; 6] = ["env", "named-env", "plain-env", "flag", "joined-flag", "header-flag"];

/// A child that is given its secrets by environment and arguments, and tells them on stderr and in errors.
fn child(setup: &Setup) -> Value {
    let said = echo(&OF_CHILD);
    let script = json!({ "start": [{ "stderr": format!("{said}\n") }, { "stderr": "$ENV\n" }], "calls": {
        "ok": [{ "stderr": format!("{said}\n") }, { "text": "$ENV" }],
        "rpc": [{ "error": { "code": -1, "message": said, "data": [said] } }],
        "die": [{ "stderr": said }, { "die": 3 }],
        "noise": [{ "bytes": format!("{said}\n{{\"{said}\"}}\n") }, { "die": 3 }],
    } });
    let child = StdioFake::new(setup.home(), "child", script);
    let mut entry = child.entry();
    for (name, value) in [("API_KEY", secret("env")), ("NAMED", "$OF_ENV".to_owned()), ("OTHER", secret("plain-env"))] {
        entry["env"][name] = value.into();
    }
    entry["args"] = json!([
        "--api-key",
        secret("flag"),
        format!("--auth-token={}", secret("joined-flag")),
        "--header",
        format!("Authorization: Bearer {}", secret("header-flag"))
    ]);
    entry
}

/// Contract 1.12, 8.1 to 8.5.
#[tokio::test]
async fn servers_repeat_in_their_errors_what_they_were_sent_and_nobody_reads_it() {
    const OF_PLAIN: [&str; 5] = ["login", "query", "path-number-1", "header", "named-header"];
    const OF_USER: [&str; 3] = ["ann", "bob", "request-secret"];
    let collector = Collector::start().await;
    let setup = telling(Setup::new(), &collector)
        .variable("OF_ENV", &secret("named-env"))
        .variable("OF_HEADER", &secret("named-header"));
    let child = child(&setup);
    let mut script = failing(&echo(&OF_PLAIN));
    script["http"] = json!({ "path": format!("/{}/mcp", in_url(&secret("path-number-1"))) });
    let (remote, shared) = (HttpFake::start(script).await, HttpFake::start(failing(&echo(&OF_USER))).await);
    let url =
        remote.entry()["url"].as_str().unwrap().replace("http://", &format!("http://u:{}@", in_url(&secret("login"))));
    let plain = json!({
        "url": format!("{url}?key={}", in_url(&secret("query"))),
        "headers": { "X-Key": secret("header"), "X-Named": "$OF_HEADER" },
    });
    let user = json!({
        "user_auth": { "users": { "ann": format!("Bearer {}", secret("ann")), "bob": secret("bob") } },
        "headers_from_context": { "headers": { "X-Tenant": "tenant" } },
    });
    let setup =
        setup.server("child", child).server("plain", remote.entry_with(plain)).server("user", shared.entry_with(user));
    let caribou = setup.start().await;
    let mut shown = Shown::default();
    fail(&caribou, "plain", "ann", &mut shown).await;
    fail(&caribou, "user", "ann", &mut shown).await;
    fail(&caribou, "user", "bob", &mut shown).await;
    for user in ["nobody", "ann"] {
        let body = json!({ "name": "user_ok", "user_id": user, "arguments": { "a": secret("argument") } });
        let denied = caribou.post("/api/mcp/tools/call", body.to_string()).await;
        assert_eq!(denied.status, 403);
        shown.answer("a call without credentials", &denied);
    }
    assert_eq!(caribou.call("child_ok", json!({})).await.status, 200);
    for tool in ["child_rpc", "child_die", "child_noise"] {
        let failed = caribou.call(tool, json!({ "password": secret("argument") })).await;
        assert!(failed.status >= 400, "{failed:?}");
        shown.answer(tool, &failed);
    }
    for (tool, user) in [("user_rpc", "ann"), ("user_forbidden", "bob"), ("child_rpc", "ann")] {
        over_grpc(&caribou, tool, user, &mut shown).await;
    }
    look(&caribou, &mut shown).await;
    end(caribou, &collector, &mut shown).await;
    let log = &shown.0.iter().find(|(place, _)| place == "the log").unwrap().1;
    assert!(log.contains("***") && log.contains("DEBUG"), "it tells what it does, and something was masked");
    for (log, places) in [(remote.log(), &OF_PLAIN[..]), (shared.log(), &OF_USER)] {
        for place in places {
            assert!(was_sent(&log, place), "{place} was not in use");
        }
    }
    shown.assert_none_of(&named(&OF_CHILD));
    shown.assert_none_of(&named(&OF_PLAIN));
    shown.assert_none_of(&named(&OF_USER));
    shown.assert_none_of(&named(&["argument", "unused-secret"]));
}

/// Contract 7.1 to 7.4.
#[tokio::test]
async fn token_endpoints_repeat_what_they_were_asked_and_nobody_reads_it() {
    const PLACES: [&str; 6] = ["client-secret", "seed", "extra-param", "access-token", "rotated", "endpoint-login"];
    let collector = Collector::start().await;
    let (tokens, remote) = (TokenFake::start().await, HttpFake::start(failing(&echo(&["access-token"]))).await);
    tokens.then(
        200,
        &json!({ "access_token": secret("access-token"), "expires_in": 0, "refresh_token": secret("rotated") }),
    );
    let refusal = json!({ "error": echo(&PLACES), "error_description": echo(&PLACES), "error_uri": echo(&PLACES) });
    for code in [400, 401, 500, 200, 503, 400, 400, 400] {
        tokens.then(code, &refusal);
        tokens.then_as(code, "text/html", &echo(&PLACES));
    }
    let oauth = tokens.refreshing(json!({
        "client_secret": secret("client-secret"), "refresh_token": secret("seed"), "refresh_skew_seconds": 0,
        "extra_token_params": { "resource": secret("extra-param") },
    }));
    let login = format!("http://u:{}@", in_url(&secret("endpoint-login")));
    let oauth_url = oauth["token_url"].as_str().unwrap().replace("http://", &login);
    let mut entry = remote.entry_with(json!({ "oauth": oauth }));
    entry["oauth"]["token_url"] = oauth_url.into();
    let caribou = telling(Setup::new(), &collector).server("far", entry).start().await;
    let mut shown = Shown::default();
    for round in 0..4 {
        for tool in FAILING {
            let answer = caribou.call(&format!("far_{tool}"), json!({})).await;
            assert!(answer.status >= 400, "{answer:?}");
            shown.answer(&format!("far_{tool}, round {round}"), &answer);
        }
    }
    over_grpc(&caribou, "far_rpc", "ann", &mut shown).await;
    look(&caribou, &mut shown).await;
    end(caribou, &collector, &mut shown).await;
    let asked = tokens.requests();
    let sent: Vec<String> = asked.iter().map(|request| format!("{} {:?}", request.raw, request.headers)).collect();
    for place in ["client-secret", "seed", "extra-param", "rotated", "endpoint-login"] {
        let traces = traces(&secret(place));
        assert!(
            sent.iter().any(|sent| traces.iter().any(|trace| sent.contains(trace.as_str()))),
            "{place} was not sent"
        );
    }
    assert!(was_sent(&remote.log(), "access-token"));
    shown.assert_none_of(&named(&PLACES));
}

/// An interceptor that passes the secrets it was given on as a header, and denies, answers and fails with them.
async fn interceptor(text: String) -> (String, Log) {
    let log = Log::Memory(std::sync::Arc::default());
    let kept = log.clone();
    let answer = move |body: Bytes| {
        kept.add("recv", &String::from_utf8_lossy(&body));
        let call: Value = serde_json::from_slice(&body).unwrap_or_default();
        let proceed = |name: &str, value: &str| {
            json!({ "proceed": { "headers": [{ "name": name, "value": value }] } }).to_string()
        };
        let said = match call["call"]["arguments"]["say"].as_str().unwrap_or_default() {
            "deny" => json!({ "deny": text }).to_string(),
            "illegal" => proceed(&text, &format!("{}\r\n", secret("hook-header"))),
            "nonsense" => text.clone(),
            "unknown" => json!({ text.as_str(): text }).to_string(),
            _ => proceed("X-Hook", &secret("hook-header")),
        };
        async move { said }
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    (address, log)
}

/// Contract 8.6.
#[tokio::test]
async fn interceptors_repeat_what_they_were_shown_and_nobody_reads_it() {
    const PLACES: [&str; 5] = ["hook-login", "hook-query", "hook-header", "request-secret", "header"];
    let collector = Collector::start().await;
    let (address, log) = interceptor(echo(&["hook-login", "hook-query", "request-secret", "header"])).await;
    let remote = HttpFake::start(failing(&echo(&["hook-header", "header"]))).await;
    let hook =
        format!("http://u:{}@{address}/hook?key={}", in_url(&secret("hook-login")), in_url(&secret("hook-query")));
    let entries = json!([{ "use": hook, "secrets": ["tenant"] }]);
    let refused = json!({ "code": -1, "message": echo(&["hook-header"]) });
    let child = json!({ "calls": { "ok": ["default"], "rpc": [{ "error": refused }] } });
    let setup = telling(Setup::new(), &collector).interceptors(entries);
    let child = StdioFake::new(setup.home(), "child", child);
    let entry = remote.entry_with(json!({ "headers": { "X-Key": secret("header") } }));
    let caribou = setup.server("far", entry).server("child", child.entry()).start().await;
    let mut shown = Shown::default();
    fail(&caribou, "far", "ann", &mut shown).await;
    for (tool, say) in
        [("far_ok", "deny"), ("far_ok", "illegal"), ("far_ok", "nonsense"), ("far_ok", "unknown"), ("child_rpc", "")]
    {
        let body = json!({
            "name": tool, "arguments": { "say": say },
            "context": { "secrets": { "tenant": secret("request-secret") } },
        });
        let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
        assert!(answer.status >= 400, "{answer:?}");
        shown.answer(&format!("{tool} {say}"), &answer);
    }
    over_grpc(&caribou, "far_rpc", "ann", &mut shown).await;
    look(&caribou, &mut shown).await;
    end(caribou, &collector, &mut shown).await;
    assert!(was_sent(&log, "request-secret") && !was_sent(&log, "unused-secret"));
    assert!(was_sent(&remote.log(), "hook-header") && was_sent(&remote.log(), "header"));
    shown.assert_none_of(&named(&PLACES));
    shown.assert_none_of(&named(&["argument", "unused-secret"]));
}

/// Contract 1.8 and 7.7: what users bring, in a process that dies and comes back.
#[tokio::test]
async fn personal_connections_are_shown_to_nobody_and_lie_nowhere_in_clear() {
    const PLACES: [&str; 4] = ["own-login", "own-query", "own-header", "refused-definition"];
    let collector = Collector::start().await;
    let remote = HttpFake::start(failing(&echo(&["own-login", "own-query", "own-header"]))).await;
    let keys = Setup::new().command(&["keys", "generate"]).output().await.unwrap();
    let key = String::from_utf8(keys.stdout).unwrap().trim().to_owned();
    let caribou = telling(Setup::new(), &collector).variable("CARIBOU_CREDENTIALS_KEY", &key).start().await;
    let url = remote.entry()["url"]
        .as_str()
        .unwrap()
        .replace("http://", &format!("http://u:{}@", in_url(&secret("own-login"))));
    let url = format!("{url}?key={}", in_url(&secret("own-query")));
    let own = format!("Bearer {}", secret("own-header"));
    let definition = json!({ "type": "http", "url": url, "headers": { "X-Own": own } });
    let mut shown = Shown::default();
    let put = caribou.request("PUT", "/api/users/ann/mcp/connections/mine").json(&definition);
    let mut made = caribou.send(put).await.json();
    assert!(made["definition"].as_object_mut().unwrap().remove("url").is_some(), "the owner is shown the address");
    shown.add("the connection", made.to_string());
    for refused in [
        json!({ "url": secret("refused-definition") }),
        json!({ "url": 7, "headers": secret("refused-definition") }),
        json!({ "url": "http://h", "headers": { "X": [secret("refused-definition")] } }),
        json!({ "url": "http://h", "timeout": 7, secret("refused-definition"): 1, "headers": 7 }),
    ] {
        let put = caribou.request("PUT", "/api/users/ann/mcp/connections/odd").json(&refused);
        let answer = caribou.send(put).await;
        assert_eq!(answer.status, 422, "{answer:?}");
        shown.answer("a refused definition", &answer);
    }
    fail(&caribou, "mine", "ann", &mut shown).await;
    let home = caribou.kill().await;
    shown.add("the log", std::fs::read(home.join("caribou.log")).unwrap());
    shown.folder(&home.join("data"));

    let again = telling(Setup::new(), &collector).variable("CARIBOU_CREDENTIALS_KEY", &key);
    let data = home.join("data").display().to_string();
    let again = again.variable("CARIBOU_DATA_DIR", &data).start().await;
    fail(&again, "mine", "ann", &mut shown).await;
    shown.answer("the list", &again.get("/api/users/bob/mcp/connections").await);
    for path in ["/metrics", "/api/mcp/audit", "/api/mcp/sessions", "/api/mcp/tools?user_id=ann"] {
        shown.answer(path, &again.get(path).await);
    }
    end(again, &collector, &mut shown).await;
    shown.folder(&home.join("data"));
    for place in ["own-login", "own-query", "own-header"] {
        assert!(was_sent(&remote.log(), place), "{place} was not in use");
    }
    shown.assert_none_of(&named(&PLACES));
    shown.assert_none_of(&[("the key".to_owned(), key)]);
}
