//! Whose credentials calls about running tasks carry (contract 6.13): those that outlive the request, never others.

use caribou_tests::fake::Seen;
use caribou_tests::{HttpFake, Setup, TokenFake};
use serde_json::json;

use super::stand::{FAST, Stand, mcp_tasks, running, says, script, task_of};

fn header<'s>(seen: &'s Seen, name: &str) -> Option<&'s str> {
    seen.headers.get(name).map(String::as_str)
}

/// Runs until it is cancelled.
fn tasks() -> serde_json::Value {
    script(json!([running()]), json!([says("cancelled", json!({}))]))
}

#[tokio::test]
async fn the_owners_credential_and_static_headers_go_along_and_secrets_of_the_request_do_not() {
    // Contract 6.13, all rows but oauth; 8.1, order.
    let members = json!({
        "headers": { "X-Static": "static", "Authorization": "nobody's" },
        "user_auth": { "users": { "ann": "Bearer of-ann", "bob": "Bearer of-bob" } },
        "headers_from_context": { "headers": { "X-Tenant": "tenant" } },
    });
    let stand = Stand::http_with(tasks(), FAST, members).await;
    let submit = async |user: &str| {
        let body = json!({ "name": "s_submit", "arguments": {}, "user_id": user, "thread_id": user,
                           "config": { "context": { "secrets": { "tenant": "canary-tenant" } } } });
        task_of(&stand.caribou.post("/api/mcp/tools/call", body.to_string()).await)
    };
    let tasks = [("ann", submit("ann").await), ("bob", submit("bob").await)];
    for (user, task) in &tasks {
        let path = format!("/api/threads/{user}/mcp-tasks/{task}");
        let cancel = stand.caribou.post(&format!("{path}/cancel?user_id={user}"), "").await;
        assert_eq!(cancel.status, 200, "{cancel:?}");
    }
    stand.until_called("cancel", 2).await;
    for tool in ["submit", "cancel"] {
        for (seen, user) in stand.log().calls(tool).iter().zip(["ann", "bob"]) {
            let bearer = format!("Bearer of-{user}");
            let expected = if tool == "submit" { Some("canary-tenant") } else { None };
            assert_eq!(header(seen, "x-static"), Some("static"));
            assert_eq!(header(seen, "x-tenant"), expected, "{tool}");
            if tool == "submit" {
                assert_eq!(header(seen, "authorization"), Some(bearer.as_str()), "{tool} of {user}");
            }
        }
    }
    let cancels = stand.log().calls("cancel");
    for seen in &cancels {
        let of = if seen.message()["params"]["arguments"]["task_id"] == "remote-1" {
            "Bearer of-ann"
        } else {
            "Bearer of-bob"
        };
        assert_eq!(header(seen, "authorization"), Some(of));
    }
    let sessions_with_secret = stand.log().events("recv").into_iter().filter(|seen| header(seen, "x-tenant").is_some());
    let methods: Vec<String> = sessions_with_secret.map(|seen| seen.mcp_method()).collect();
    assert!(methods.iter().filter(|method| *method == "tools/call").count() == 2, "the submits alone: {methods:?}");
}

#[tokio::test]
async fn every_poll_is_made_as_the_owner_of_its_task() {
    // Contract 6.13, status; invariant P1.
    let members = json!({ "user_auth": { "users": { "ann": "Bearer of-ann", "bob": "Bearer of-bob" } } });
    let stand = Stand::http_with(tasks(), FAST, members).await;
    for user in ["ann", "bob"] {
        let body = json!({ "name": "s_submit", "arguments": {}, "user_id": user, "thread_id": "same" });
        task_of(&stand.caribou.post("/api/mcp/tools/call", body.to_string()).await);
    }
    stand.until_called("status", 8).await;
    let of = |seen: &Seen| {
        let task = seen.message()["params"]["arguments"]["task_id"].as_str().unwrap().to_owned();
        (task, header(seen, "authorization").unwrap_or("none").to_owned())
    };
    let pairs: std::collections::BTreeSet<(String, String)> = stand.log().calls("status").iter().map(of).collect();
    let expected = [("remote-1", "Bearer of-ann"), ("remote-2", "Bearer of-bob")];
    assert_eq!(pairs, expected.map(|(task, bearer)| (task.to_owned(), bearer.to_owned())).into());
}

#[tokio::test]
async fn tokens_are_asked_for_and_renewed_for_calls_in_the_background_too() {
    // Contract 6.13, oauth: yes for submit, status and cancel.
    let tokens = TokenFake::start().await;
    let fake = HttpFake::start(tasks()).await;
    tokens.protect(&fake);
    let setup = Setup::new().settings(&mcp_tasks(FAST));
    let stand = Stand::before(fake, setup, json!({ "oauth": tokens.oauth(json!({})) })).await;
    let task = stand.submit().await;
    stand.until(&task, "working").await;
    let before = tokens.requests().len();
    tokens.revoke();
    let polls = stand.calls("status");
    stand.until_called("status", polls + 3).await;
    assert!(tokens.requests().len() > before, "a new one after the server refused the old one");
    stand.cancel(&task).await;
    let ended = stand.until(&task, "cancelled").await;
    assert_eq!(ended["last_poll_error"], json!(null), "{ended}");
    let bearers = stand.log().calls("cancel");
    assert!(header(&bearers[0], "authorization").unwrap().starts_with("Bearer at-SECRET-"));
    assert!(!stand.caribou.log().contains("SECRET"));
}

#[tokio::test]
async fn a_user_without_a_credential_begins_nothing() {
    // Contract 8.4 and 6.4: denied before the server is asked, and nothing is on record.
    let members =
        json!({ "headers": { "Authorization": "nobody's" }, "user_auth": { "users": { "ann": "Bearer A" } } });
    let stand = Stand::http_with(tasks(), FAST, members).await;
    let body = json!({ "name": "s_submit", "arguments": {}, "user_id": "eve", "thread_id": "t1" });
    let denied = stand.caribou.post("/api/mcp/tools/call", body.to_string()).await;
    assert_eq!((denied.status, denied.code().as_str()), (403, "denied"), "{denied:?}");
    assert_eq!(stand.calls("submit"), 0);
    let listed = stand.caribou.get("/api/mcp-tasks").await.json();
    assert_eq!(listed["tasks"], json!([]), "nothing was begun");
}
