//! OAuth of remote servers (contract 7.1 to 7.4): what is asked of a token endpoint, what its answers mean, which
//! requests carry the token, and what happens without one.

use std::time::Duration;

use caribou_tests::fake::{Seen, Status};
use caribou_tests::{Answer, Caribou, HttpFake, Setup, TokenFake, eventually};
use futures::future::join_all;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

fn script() -> Value {
    json!({ "calls": { "t": [{ "text": "done" }] } })
}

/// A server named `fake` with this `oauth`, and another one without any.
struct Stand {
    caribou: Caribou,
    fake: HttpFake,
}

impl Stand {
    /// The server takes every request.
    async fn open(oauth: Value) -> Self {
        Self::with(HttpFake::start(script()).await, oauth).await
    }

    /// The server takes only tokens that `tokens` gave.
    async fn protected(tokens: &TokenFake, oauth: Value) -> Self {
        let fake = HttpFake::start(script()).await;
        tokens.protect(&fake);
        Self::with(fake, oauth).await
    }

    async fn with(fake: HttpFake, oauth: Value) -> Self {
        let entry = fake.entry_with(json!({ "headers": { "authorization": "static" }, "oauth": oauth }));
        let setup = Setup::new().server("fake", entry).variable("CARIBOU_LOG_LEVEL", "debug");
        Self { caribou: setup.start().await, fake }
    }

    async fn call(&self) -> Answer {
        self.caribou.call("fake_t", json!({})).await
    }

    /// A call that goes through.
    async fn called(&self) {
        let answer = self.call().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.text(), "done");
    }

    /// A call that has no token, and what is said of it; nothing of it reached the server.
    async fn refused(&self, code: &str) -> String {
        let calls = self.fake.log().received("tools/call").len();
        let answer = self.call().await;
        assert_eq!(answer.code(), code, "{answer:?}");
        assert_eq!(self.fake.log().received("tools/call").len(), calls);
        self.assert_secret(&answer.body);
        answer.detail()
    }

    /// Invariant O3.
    fn assert_secret(&self, shown: &str) {
        for text in [shown, &self.caribou.log()] {
            assert!(!text.contains("SECRET"), "{text}");
        }
    }
}

fn authorization(seen: &Seen) -> &str {
    seen.headers.get("authorization").map_or("", String::as_str)
}

#[tokio::test]
async fn a_token_is_asked_for_as_a_form_in_which_extras_never_win() {
    // Contract 7.1, method, body order of authority, client_credentials.
    let tokens = TokenFake::start().await;
    let oauth = tokens.oauth(json!({ "scope": "a b", "audience": "u", "extra_token_params":
        { "grant_type": "password", "client_secret": "other", "resource": "r" } }));
    let stand = Stand::protected(&tokens, oauth).await;
    stand.called().await;
    let [request] = &*tokens.requests() else { panic!("{:?}", tokens.requests()) };
    assert_eq!(
        request.raw,
        "grant_type=client_credentials&client_secret=client-SECRET&resource=r&scope=a+b&audience=u&client_id=c"
    );
    assert_eq!(request.headers["content-type"], "application/x-www-form-urlencoded");
    assert!(request.headers["user-agent"].starts_with("caribou/"), "{request:?}");
    stand.assert_secret("");
}

#[tokio::test]
async fn every_request_to_the_server_carries_the_token_once() {
    // Contract 7.2, header value; 8.1 and 8.2: over the static header, in its spelling, one field on the wire.
    let tokens = TokenFake::start().await;
    let stand = Stand::protected(&tokens, tokens.oauth(json!({}))).await;
    stand.called().await;
    stand.caribou.delete("/api/threads/default/mcp-sessions").await;
    let log = stand.fake.log();
    eventually(SOON, "the session's end", async || log.all().iter().any(|seen| seen.method == "DELETE").then_some(()))
        .await;
    let seen = log.events("recv");
    for method in ["initialize", "notifications/initialized", "tools/list", "tools/call"] {
        assert!(seen.iter().any(|seen| seen.mcp_method() == method), "{method}");
    }
    for seen in &seen {
        assert_eq!(authorization(seen), "Bearer at-SECRET-1", "{} {}", seen.method, seen.mcp_method());
    }
}

#[tokio::test]
async fn without_what_the_grant_needs_nothing_is_asked() {
    // Contract 7.1, client_credentials and refresh_token.
    let tokens = TokenFake::start().await;
    for (lacking, missing) in [
        (tokens.oauth(json!({ "client_secret": null })), "client_id and client_secret"),
        (tokens.refreshing(json!({ "refresh_token": null })), "requires refresh_token"),
    ] {
        let why = Stand::open(lacking).await.refused("denied").await;
        assert!(why.contains("`fake`") && why.contains(missing), "{why}");
    }
    assert!(tokens.requests().is_empty());
}

#[tokio::test]
async fn a_failing_endpoint_fails_the_call_and_only_costs_discovery_its_header() {
    // Contract 7.1, non-2xx; 7.4, initial discovery headers and tool call.
    let tokens = TokenFake::start().await;
    for _ in 0..20 {
        let why = "client c, client-SECRET, Y2xpZW50LVNFQ1JFVA==";
        tokens.then(503, &json!({ "error": "temporarily_unavailable", "error_description": why }));
    }
    let stand = Stand::open(tokens.oauth(json!({}))).await;
    assert_eq!(stand.caribou.tool_names().await, ["fake_t"]);
    let why = stand.refused("unavailable").await;
    assert!(why.contains("HTTP 503: temporarily_unavailable: client c, ***, ***"), "{why}");
    let log = stand.fake.log();
    let listed = log.received("tools/list");
    assert!(!listed.is_empty() && listed.iter().all(|seen| authorization(seen) == "static"), "{listed:?}");
}

#[tokio::test]
async fn the_answer_is_read_by_the_configured_names_and_what_it_holds_beside_is_ignored() {
    // Contract 7.2, token_field, token_type_field, default_token_type.
    let tokens = TokenFake::start().await;
    tokens.then(200, &json!({ "at": "x-SECRET", "kind": "", "scope": ["a", 5], "access_token": "wrong" }));
    let oauth = json!({ "token_field": "at", "token_type_field": "kind", "default_token_type": "Token" });
    let stand = Stand::open(tokens.oauth(oauth)).await;
    stand.called().await;
    let called = &stand.fake.log().received("tools/call")[0];
    assert_eq!(authorization(called), "Token x-SECRET");
}

#[tokio::test]
async fn a_form_is_an_answer_too() {
    let tokens = TokenFake::start().await;
    let form = "access_token=x-SECRET&token_type=bearer&expires_in=600&scope=a";
    tokens.then_as(200, "application/x-www-form-urlencoded", form);
    let stand = Stand::open(tokens.oauth(json!({}))).await;
    stand.called().await;
    assert_eq!(authorization(&stand.fake.log().received("tools/call")[0]), "Bearer x-SECRET");
}

#[tokio::test]
async fn an_answer_without_a_usable_token_names_server_and_reason_and_no_value() {
    // Contract 7.2, token_field and header value; 8.3.
    for (body, reason) in [
        (json!({ "ok": true, "authed_user": { "access_token": "at-SECRET" } }), "missing 'access_token'"),
        (json!({ "access_token": "at-SECRET\r\nX-Evil: 1" }), "line break"),
        (json!({ "access_token": "at-SECRET ü" }), "outside ASCII"),
        (json!({ "access_token": "at-SECRET\n" }), "begins or ends"),
        (json!({ "access_token": "at-SECRET", "token_type": "DPoP" }), "another type than Bearer"),
        (json!({ "error": "invalid_client_id", "error_description": "no such client" }), "no such client"),
    ] {
        let tokens = TokenFake::start().await;
        for _ in 0..20 {
            tokens.then(200, &body);
        }
        let why = Stand::open(tokens.oauth(json!({}))).await.refused("unavailable").await;
        assert!(why.contains("`fake`") && why.contains(reason), "{why}");
    }
}

#[tokio::test]
async fn fifty_threads_at_once_make_one_token_request() {
    // Contract 7.3, one refresh per server at a time.
    let tokens = TokenFake::start().await;
    let stand = Stand::protected(&tokens, tokens.oauth(json!({}))).await;
    let threads: Vec<String> = (0..50).map(|at| format!("t{at}")).collect();
    let called = threads.iter().map(|thread| stand.caribou.call_in(thread, "fake_t", json!({})));
    assert!(join_all(called).await.iter().all(|answer| answer.status == 200));
    assert_eq!(tokens.requests().len(), 1);
}

#[tokio::test]
async fn an_expiring_token_is_refreshed_with_the_rotated_one_and_a_missing_successor_keeps_the_old() {
    // Contract 7.2, refresh_token and minimum; 7.3, expiring, rotation state is never written.
    let tokens = TokenFake::start().await;
    for (number, successor) in [json!("rt-SECRET-2"), json!(null), json!(""), json!("rt-SECRET-3")].iter().enumerate() {
        let token = format!("at-SECRET-{number}");
        tokens.then(200, &json!({ "access_token": token, "expires_in": "0", "refresh_token": successor }));
    }
    let stand = Stand::protected(&tokens, tokens.refreshing(json!({ "refresh_skew_seconds": 0 }))).await;
    eventually(SOON, "five token requests", async || {
        stand.called().await;
        (tokens.requests().len() >= 5).then_some(())
    })
    .await;
    let requests = tokens.requests();
    let presented: Vec<&str> = requests[..5].iter().map(|request| request.field("refresh_token")).collect();
    assert_eq!(presented, ["rt-SECRET-1", "rt-SECRET-2", "rt-SECRET-2", "rt-SECRET-2", "rt-SECRET-3"]);
    let file = std::fs::read_to_string(stand.caribou.home().join("extensions_config.json")).unwrap();
    assert!(file.contains("rt-SECRET-1") && !file.contains("rt-SECRET-2"));
    stand.assert_secret("");
}

#[tokio::test]
async fn a_reset_and_a_new_discovery_keep_the_chain() {
    // Contract 7.3, one state across tool-cache resets and rediscovery.
    let tokens = TokenFake::start().await;
    let stand = Stand::protected(&tokens, tokens.refreshing(json!({}))).await;
    stand.called().await;
    assert_eq!(stand.caribou.post("/api/mcp/cache/reset", "").await.status, 200);
    assert_eq!(stand.caribou.tool_names().await, ["fake_t"]);
    stand.called().await;
    assert_eq!(tokens.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_refresh_token_names_the_server_and_asks_for_another() {
    // Contract 7.5, invalid_grant and recovery.
    let tokens = TokenFake::start().await;
    tokens.then(400, &json!({ "error": "invalid_grant", "error_description": "rt-SECRET-1 was revoked" }));
    let stand = Stand::open(tokens.refreshing(json!({}))).await;
    assert_eq!(stand.caribou.tool_names().await, ["fake_t"]);
    let why = stand.refused("denied").await;
    assert!(why.contains("`fake`") && why.contains("`oauth.refresh_token`"), "{why}");
    assert_eq!(tokens.requests().len(), 1, "it is of no use any more");
    let entry = stand.fake.entry_with(json!({ "oauth": tokens.refreshing(json!({ "refresh_token": "rt-SECRET-9" })) }));
    std::fs::write(
        stand.caribou.home().join("extensions_config.json"),
        json!({ "mcpServers": { "fake": entry } }).to_string(),
    )
    .unwrap();
    eventually(SOON, "the new token", async || (stand.call().await.status == 200).then_some(())).await;
    assert_eq!(tokens.requests()[1].field("refresh_token"), "rt-SECRET-9");
}

#[tokio::test]
async fn a_token_revoked_in_mid_session_is_replaced_once_and_the_call_goes_through() {
    let tokens = TokenFake::start().await;
    let stand = Stand::protected(&tokens, tokens.refreshing(json!({}))).await;
    stand.called().await;
    tokens.revoke();
    stand.called().await;
    assert_eq!(tokens.requests().len(), 2);
}

#[tokio::test]
async fn a_server_that_rejects_every_token_ends_in_one_refresh_and_a_clear_error() {
    let tokens = TokenFake::start().await;
    let fake = HttpFake::start(script()).await;
    let dead = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_dead = std::sync::Arc::clone(&dead);
    fake.admit_if(move |_| {
        let refusal = Status { code: 401, headers: Default::default(), body: String::new() };
        is_dead.load(std::sync::atomic::Ordering::SeqCst).then_some(refusal)
    });
    let stand = Stand::with(fake, tokens.refreshing(json!({}))).await;
    stand.called().await;
    dead.store(true, std::sync::atomic::Ordering::SeqCst);
    let (calls, asked) = (stand.fake.log().received("tools/call").len(), tokens.requests().len());
    let answer = stand.call().await;
    assert_eq!(answer.code(), "denied", "{answer:?}");
    assert!(answer.detail().contains("`fake`"), "{answer:?}");
    assert!(stand.fake.log().received("tools/call").len() <= calls + 2);
    assert_eq!(tokens.requests().len(), asked + 1);
    for _ in 0..3 {
        assert_eq!(stand.call().await.code(), "denied");
    }
    assert_eq!(tokens.requests().len(), asked + 1, "no loop");
    stand.assert_secret(&answer.body);
}

#[tokio::test]
async fn refreshes_are_counted_by_outcome() {
    let tokens = TokenFake::start().await;
    tokens.then(500, &json!({}));
    let stand = Stand::open(tokens.oauth(json!({}))).await;
    eventually(SOON, "a call with a token", async || (stand.call().await.status == 200).then_some(())).await;
    let metrics = stand.caribou.get("/metrics").await.body;
    for outcome in ["refused", "given"] {
        let labels = [format!("outcome=\"{outcome}\""), "server=\"fake\"".to_owned()];
        let counted = metrics.lines().any(|line| {
            line.starts_with("caribou_oauth_refreshes_total{")
                && labels.iter().all(|l| line.contains(l))
                && line.ends_with(" 1")
        });
        assert!(counted, "{outcome}: {metrics}");
    }
}
