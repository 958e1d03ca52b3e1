//! Whose session a call goes to, and who is refused before there is any (contract 8.4, 8.5; invariant P1).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use caribou_core::config::{HeadersFromContext, OnMissing, Secret, ServerConfig, UserAuth};
use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_ports::mcp::SessionEvent;
use caribou_runtime::{CallTool, Caller, Door, Options, RequestSecrets, Runtime};
use futures::future::join_all;

use crate::fake::{Fake, REFUSED, call, remote, server, start};

/// A remote server that wants a token of the request.
fn wants_token(config: &mut ServerConfig) {
    remote(config);
    config.headers_from_context = Some(HeadersFromContext {
        enabled: true,
        headers: vec![("Authorization".to_owned(), "token".to_owned())],
        on_missing: OnMissing::Deny,
    });
}

fn with_token(token: &str) -> CallTool {
    let secrets = RequestSecrets(vec![("token".to_owned(), Secret::new(token))]);
    CallTool { secrets, ..call("s_count", "t") }
}

async fn epoch(runtime: &Runtime, call: CallTool) -> (String, u64) {
    let called = runtime.call_tool(call).await.unwrap();
    (called.result.get().to_owned(), called.session.unwrap().epoch.0)
}

#[tokio::test(start_paused = true)]
async fn calls_share_a_session_only_when_their_credentials_are_equal() {
    // Invariant P1.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", wants_token)], Options::default()).await;
    let tokens = ["one", "two", "one\n", "two", "one"];
    join_all(tokens.iter().map(|token| runtime.call_tool(with_token(token)))).await;
    // One of the catalogue, one of each token.
    assert_eq!(fake.opened.load(Ordering::SeqCst), 3);
    let sent = fake.sent.lock().unwrap().clone();
    let mut used: Vec<&str> = sent.iter().map(|sent| sent.session_headers[0].1.as_str()).collect();
    used.sort_unstable();
    assert_eq!(used, ["one", "one", "one", "two", "two"]);
    assert!(sent.iter().all(|sent| sent.session_headers.len() == 1 && sent.headers.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn sessions_of_one_scope_with_several_credentials_count_like_all_and_close_together() {
    // Invariant B1.
    let fake = Arc::new(Fake::default());
    let options = Options { max_remote_sessions: 3, ..Options::default() };
    let runtime = start(&fake, vec![server("s", wants_token)], options).await;
    for token in ["1", "2", "3", "4"] {
        runtime.call_tool(with_token(token)).await.unwrap();
        assert!(fake.alive.load(Ordering::SeqCst) <= 3);
    }
    let caller = Caller::local(Door::Library);
    let closed = runtime.close_sessions(&caller, &Scope::new(Some("ann"), Some("t")), None).await.unwrap();
    assert!(closed >= 2, "{closed}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_its_credential_opens_nothing() {
    // Contract 8.4, 8.5.
    let fake = Arc::new(Fake::default());
    let of_users = |config: &mut ServerConfig| {
        remote(config);
        config.user_auth = Some(UserAuth {
            enabled: true,
            header: "Authorization".to_owned(),
            users: vec![("bob".to_owned(), Secret::new("Bearer B"))],
            on_missing: OnMissing::Deny,
        });
    };
    let runtime = start(&fake, vec![server("s", wants_token), server("u", of_users)], Options::default()).await;
    let denied = runtime.call_tool(call("s_count", "t")).await.map(|_| ()).unwrap_err();
    assert_eq!(denied.code, Code::Denied);
    let denied = runtime.call_tool(call("u_count", "t")).await.map(|_| ()).unwrap_err();
    assert!(denied.detail.starts_with("No credential is configured for user `ann`"), "{}", denied.detail);
    assert_eq!(fake.calls.load(Ordering::SeqCst), 0);
    let of_bob = || CallTool { scope: Scope::new(Some("bob"), Some("t")), ..call("u_count", "t") };
    assert_eq!(epoch(&runtime, of_bob()).await.1, 1);
    assert_eq!(fake.opened.load(Ordering::SeqCst), 3, "the catalogue's two and that of bob");
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_blocks_nobody_else() {
    // Invariant P1.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", wants_token)], Options::default()).await;
    for _ in 0..6 {
        let denied = runtime.call_tool(with_token(REFUSED)).await.map(|_| ()).unwrap_err();
        assert_eq!(denied.code, Code::Denied);
        assert!(runtime.call_tool(with_token("good")).await.is_ok());
    }
    let blocked = runtime.call_tool(with_token(REFUSED)).await.map(|_| ()).unwrap_err();
    assert!(blocked.retry_after.is_some(), "who keeps failing waits: {}", blocked.detail);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_lists_to_one_caller_is_not_everybodys() {
    // Invariant P1.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", wants_token)], Options::default()).await;
    runtime.call_tool(with_token("one")).await.unwrap();
    let own = fake.sinks.lock().unwrap().iter().find(|(label, _)| label.contains("ann:t")).cloned().unwrap().1;
    fake.tools.lock().unwrap().push("beta".into());
    let listed_by = fake.opened.load(Ordering::SeqCst);
    own(SessionEvent::ToolsChanged);
    let beta = CallTool { name: "s_beta".into(), ..with_token("one") };
    assert!(runtime.call_tool(beta).await.is_ok(), "the catalogue asked in a session of its own");
    assert_eq!(fake.opened.load(Ordering::SeqCst), listed_by);
    assert_eq!(fake.listed.load(Ordering::SeqCst), 2);
    assert_eq!(fake.listed_with_headers.load(Ordering::SeqCst), 0);
}
