//! Whose credentials go upstream: their order, their one spelling, who is refused, and that nobody acts with somebody
//! else's (contract chapter 8, invariant P1).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use caribou_tests::fake::Seen;
use caribou_tests::{Answer, Caribou, HttpFake, Setup, StdioFake, eventually};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// A server with one tool, and Caribou before it with these further members of its entry.
async fn with(members: Value) -> (Caribou, HttpFake) {
    let fake = HttpFake::start(json!({ "calls": { "t": [{ "text": "done" }] } })).await;
    let caribou = Setup::new().server("s", fake.entry_with(members)).start().await;
    assert_eq!(caribou.tool_names().await, ["s_t"]);
    (caribou, fake)
}

/// Calls the tool for `user` with these secrets.
async fn call(caribou: &Caribou, user: &str, secrets: Value) -> Answer {
    let body = json!({ "name": "s_t", "user_id": user, "config": { "context": { "secrets": secrets } } });
    caribou.post("/api/mcp/tools/call", body.to_string()).await
}

/// What came with every request that was not the catalogue's own.
fn of_callers(fake: &HttpFake) -> Vec<Seen> {
    let all = fake.log().events("recv");
    let listing = all.iter().filter(|seen| seen.mcp_method() == "tools/list");
    let catalogue: BTreeSet<&str> = listing.filter_map(session).collect();
    let own = |seen: &&Seen| session(seen).is_some_and(|id| !catalogue.contains(id));
    all.iter().filter(own).cloned().collect()
}

fn session(seen: &Seen) -> Option<&str> {
    seen.headers.get("mcp-session-id").map(String::as_str)
}

fn header<'s>(seen: &'s Seen, name: &str) -> Option<&'s str> {
    seen.headers.get(name).map(String::as_str)
}

/// Which values of a header each session was used with.
fn by_session(fake: &HttpFake, name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut sessions = BTreeMap::<String, BTreeSet<String>>::new();
    for seen in of_callers(fake) {
        let value = header(&seen, name).unwrap_or("none").to_owned();
        sessions.entry(session(&seen).unwrap().to_owned()).or_default().insert(value);
    }
    sessions
}

fn last_call(fake: &HttpFake) -> Seen {
    fake.log().received("tools/call").pop().unwrap()
}

#[tokio::test]
async fn the_later_source_wins_and_one_field_is_left_in_any_spelling() {
    // Contract 8.1, 8.2.
    let (caribou, fake) = with(json!({
        "headers": { "authorization": "static", "X-Own": "own" },
        "user_auth": { "header": "AUTHORIZATION", "users": { "ann": "of ann", "bob": "of bob" } },
        "headers_from_context": { "headers": { "Authorization": "token" }, "on_missing": "passthrough" },
    }))
    .await;
    for (user, secrets, expected) in [
        ("ann", json!({}), "of ann"),
        ("bob", json!({}), "of bob"),
        ("ann", json!({ "token": "of request" }), "of request"),
    ] {
        let answer = call(&caribou, user, secrets).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let seen = last_call(&fake);
        assert_eq!((header(&seen, "authorization"), header(&seen, "x-own")), (Some(expected), Some("own")));
    }
    // The catalogue's own session has the static headers alone.
    let opened = &fake.log().received("tools/list")[0];
    assert_eq!(header(opened, "authorization"), Some("static"));
}

#[tokio::test]
async fn a_value_that_cannot_be_sent_denies_its_call_and_is_shown_nowhere() {
    // Contract 8.3, invariant O3.
    let fake = HttpFake::start(json!({ "calls": { "t": ["default"] } })).await;
    let setup = Setup::new()
        .variable("TRIMMED", "static-SECRET\n")
        .variable("BROKEN", "tok-SECRET\r\nX-Evil: 1")
        .server("trimmed", fake.entry_with(json!({ "headers": { "X-Static": "$TRIMMED" } })))
        .server("broken", fake.entry_with(json!({ "headers": { "X-Static": "$BROKEN" } })))
        .server(
            "s",
            fake.entry_with(json!({
                "user_auth": { "header": "X-User", "users": { "eve": "tok-SECRET\nX-Evil: 1", "ann": "SECRET-of-ann " },
                               "on_missing": "passthrough" },
                "headers_from_context": { "headers": { "X-Tenant": "tenant" }, "on_missing": "passthrough" },
            })),
        );
    let caribou = setup.start().await;
    assert_eq!(caribou.tool_names().await, ["s_t", "trimmed_t"]);
    let trimmed = caribou.call("trimmed_t", json!({})).await;
    assert_eq!((trimmed.status, header(&last_call(&fake), "x-static")), (200, Some("static-SECRET")));

    let denied = call(&caribou, "eve", json!({})).await;
    assert_eq!((denied.status, denied.code().as_str()), (403, "denied"), "{denied:?}");
    assert!(denied.detail().contains("`eve`"), "{denied:?}");
    let mut answers = vec![denied];
    for illegal in ["tok-SECRET\r\nX-Evil: 1", "SECRET\0", "SECRET-\u{fc}", "SECRET\u{b}", "\u{c}SECRET"] {
        let denied = call(&caribou, "ann", json!({ "tenant": illegal })).await;
        assert_eq!((denied.status, denied.code().as_str()), (403, "denied"), "{denied:?}");
        assert!(denied.detail().contains("`tenant`"), "{denied:?}");
        answers.push(denied);
    }
    let before = of_callers(&fake).len();
    let legal = call(&caribou, "ann", json!({ "tenant": "\tin\tner SECRET\n" })).await;
    assert_eq!(legal.status, 200, "{legal:?}");
    assert!(of_callers(&fake).len() > before);
    let sent = last_call(&fake);
    assert_eq!((header(&sent, "x-tenant"), header(&sent, "x-user")), (Some("in\tner SECRET"), Some("SECRET-of-ann")));
    assert!(fake.log().events("recv").iter().all(|seen| header(seen, "x-evil").is_none()));
    for path in ["/api/mcp/servers", "/api/mcp/sessions", "/metrics", "/api/mcp/tools"] {
        answers.push(caribou.get(path).await);
    }
    assert!(answers.iter().all(|answer| !answer.body.contains("SECRET")), "{answers:?}");
    assert!(!caribou.log().contains("SECRET"), "{}", caribou.log());
}

#[tokio::test]
async fn each_user_acts_with_its_own_credential_and_nobody_without_one() {
    // Contract 8.4, invariant P1.
    let (caribou, fake) = with(json!({
        "headers": { "Authorization": "static" },
        "user_auth": { "users": { "alice": "Bearer A", "bob": "Bearer B", "unset": "$NO_SUCH_VARIABLE" } },
    }))
    .await;
    let users = ["alice", "bob", "nobody", "unset", "default", ""];
    let calls: Vec<(&str, Answer)> = stream::iter(users.iter().cycle().take(120))
        .map(|user| async { (*user, call(&caribou, user, json!({})).await) })
        .buffer_unordered(16)
        .collect()
        .await;
    for (user, answer) in &calls {
        if matches!(*user, "alice" | "bob") {
            assert_eq!(answer.status, 200, "{answer:?}");
            continue;
        }
        assert_eq!((answer.status, answer.code().as_str()), (403, "denied"), "{user}: {answer:?}");
        let shown = if user.is_empty() { "default" } else { user };
        assert!(answer.detail().starts_with("No credential is configured for user "), "{answer:?}");
        assert!(answer.detail().contains(&format!("`{shown}`")), "{answer:?}");
    }
    let sessions = by_session(&fake, "authorization");
    let used: BTreeSet<Vec<&str>> = sessions.values().map(|used| used.iter().map(String::as_str).collect()).collect();
    assert_eq!(used, BTreeSet::from([vec!["Bearer A"], vec!["Bearer B"]]), "{sessions:?}");
    assert_eq!(sessions.len(), 2);
    // Every initialize was the catalogue's or a user's: nobody's call brought any traffic.
    let opened: BTreeSet<String> = fake
        .log()
        .received("initialize")
        .iter()
        .filter_map(|seen| Some(header(seen, "authorization")?.to_owned()))
        .collect();
    assert_eq!(opened, BTreeSet::from(["static", "Bearer A", "Bearer B"].map(str::to_owned)));
}

#[tokio::test]
async fn passthrough_and_a_block_that_is_off_leave_the_static_headers() {
    // Contract 8.4, on_missing and disabled.
    for auth in [json!({ "users": {}, "on_missing": "passthrough" }), json!({ "users": {}, "enabled": false })] {
        let (caribou, fake) = with(json!({ "headers": { "Authorization": "static" }, "user_auth": auth })).await;
        assert_eq!(call(&caribou, "nobody", json!({})).await.status, 200);
        assert_eq!(header(&last_call(&fake), "authorization"), Some("static"));
    }
}

#[tokio::test]
async fn the_headers_of_a_user_go_on_every_request_of_its_session() {
    // Contract 8.1: initialize, notifications, call, cancel and the end.
    let fake = HttpFake::start(json!({ "calls": { "hang": ["hang"] } })).await;
    let auth = json!({ "user_auth": { "users": { "ann": "Bearer A" } } });
    let caribou = Setup::new().server("s", fake.entry_with(auth)).start().await;
    assert_eq!(caribou.tool_names().await, ["s_hang"]);
    let body = json!({ "name": "s_hang", "user_id": "ann", "timeout": 0.5 });
    assert_eq!(caribou.post("/api/mcp/tools/call", body.to_string()).await.status, 504);
    eventually(SOON, "the cancel", async || fake.log().received("notifications/cancelled").pop()).await;
    caribou.stop().await;
    let seen = of_callers(&fake);
    let methods: BTreeSet<String> = seen.iter().map(Seen::mcp_method).collect();
    let expected = ["notifications/initialized", "tools/call", "notifications/cancelled"].map(str::to_owned);
    assert!(expected.iter().all(|method| methods.contains(method)), "{methods:?}");
    assert!(seen.iter().any(|seen| seen.method == "DELETE"), "{seen:?}");
    assert!(seen.iter().all(|seen| header(seen, "authorization") == Some("Bearer A")), "{seen:?}");
}

#[tokio::test]
async fn a_request_without_the_secrets_is_refused_and_told_only_their_names() {
    // Contract 8.5: deny, passthrough, other servers.
    let fake = HttpFake::start(json!({ "calls": { "t": ["default"] } })).await;
    let mapping = json!({ "X-Tenant": "tenant", "X-Key": "key" });
    let caribou = Setup::new()
        .server("other", fake.entry())
        .server("s", fake.entry_with(json!({ "headers_from_context": { "headers": mapping } })))
        .server(
            "lax",
            fake.entry_with(json!({
                "headers": { "X-Key": "static" },
                "headers_from_context": { "headers": mapping, "on_missing": "passthrough" },
            })),
        )
        .start()
        .await;
    assert_eq!(caribou.tool_names().await.len(), 3);
    for (secrets, missing) in [
        (json!({}), "key, tenant"),
        (json!({ "key": "", "tenant": 7 }), "key, tenant"),
        (json!({ "tenant": "hunter22" }), "key"),
        (json!("hunter22"), "key, tenant"),
        (json!(["hunter22"]), "key, tenant"),
    ] {
        let denied = call(&caribou, "ann", secrets).await;
        assert_eq!((denied.status, denied.code().as_str()), (403, "denied"), "{denied:?}");
        assert!(denied.detail().contains(&format!("lacks: {missing};")), "{denied:?}");
        assert!(!denied.body.contains("hunter22"), "{denied:?}");
    }
    assert!(fake.log().received("tools/call").is_empty(), "nothing was sent");

    let body = json!({ "name": "lax_t", "context": { "secrets": { "tenant": "t" } } });
    assert_eq!(caribou.post("/api/mcp/tools/call", body.to_string()).await.status, 200);
    let seen = last_call(&fake);
    assert_eq!((header(&seen, "x-tenant"), header(&seen, "x-key")), (Some("t"), Some("static")));

    let body = json!({ "name": "other_t", "context": { "secrets": { "tenant": "t", "key": "k" } } });
    assert_eq!(caribou.post("/api/mcp/tools/call", body.to_string()).await.status, 200);
    let seen = last_call(&fake);
    assert_eq!((header(&seen, "x-tenant"), header(&seen, "x-key")), (None, None), "not its business");
}

#[tokio::test]
async fn a_child_process_skips_both_blocks_with_a_warning() {
    // Contract 8.4, 8.5: stdio is not denied.
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "t": ["default"] } }));
    let mut entry = fake.entry();
    entry["user_auth"] = json!({ "users": {} });
    entry["headers_from_context"] = json!({ "headers": { "X-Key": "key" } });
    let caribou = setup.server("s", entry).start().await;
    assert_eq!(call(&caribou, "nobody", json!({})).await.status, 200);
    for block in ["user_auth", "headers_from_context"] {
        assert!(caribou.log().contains(&format!("{block}: has no effect")), "{}", caribou.log());
    }
}

#[tokio::test]
async fn secrets_are_few_and_short() {
    // Invariant B1.
    let (caribou, fake) = with(json!({})).await;
    let many: serde_json::Map<String, Value> = (0..65).map(|at| (format!("k{at}"), json!("hunter22"))).collect();
    for secrets in [Value::Object(many), json!({ "k": "hunter22".repeat(2_049) })] {
        let refused = call(&caribou, "ann", secrets).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "invalid"), "{refused:?}");
        assert!(!refused.body.contains("hunter22"), "{refused:?}");
    }
    assert!(fake.log().received("tools/call").is_empty());
}

#[tokio::test]
async fn two_tenants_of_one_user_and_thread_never_cross() {
    // Invariant P1.
    const CALLS: usize = 10_000;
    let mapping = json!({ "headers_from_context": { "headers": { "Authorization": "token" } } });
    let fake = HttpFake::start(json!({ "calls": { "t": ["default"] } })).await;
    let caribou = Setup::new().server("s", fake.entry_with(mapping)).start().await;
    assert_eq!(caribou.tool_names().await, ["s_t"]);
    let crossed = stream::iter(0..CALLS)
        .map(|at| {
            let caribou = &caribou;
            async move {
                let tenant = ["one", "two"][at % 2];
                let body = json!({ "name": "s_t", "arguments": { "tenant": tenant, "at": at },
                                   "context": { "secrets": { "token": format!("Bearer {tenant}") } } });
                let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
                answer.status != 200 || !answer.text().contains(&format!(r#""at":{at}"#))
            }
        })
        .buffer_unordered(32)
        .filter(|is_wrong| std::future::ready(*is_wrong))
        .count()
        .await;
    assert_eq!(crossed, 0);
    let calls = fake.log().received("tools/call");
    assert_eq!(calls.len(), CALLS);
    for seen in &calls {
        let tenant = seen.message()["params"]["arguments"]["tenant"].as_str().unwrap().to_owned();
        assert_eq!(header(seen, "authorization"), Some(format!("Bearer {tenant}").as_str()));
    }
    let sessions = by_session(&fake, "authorization");
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    assert!(sessions.values().all(|used| used.len() == 1), "{sessions:?}");
}
