//! Credentials on the wire: whose headers go on which request, and what a refused one leads to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use caribou_core::config::Secret;
use caribou_ports::BoxFuture;
use caribou_ports::access_token::{AccessToken, AccessTokens, NoToken};
use caribou_ports::mcp::{CallError, Credentials, OpenError, Session, ToolCall};
use http::Method;
use serde_json::json;

use super::fake::{Client, Fake, Seen, call, empty, error, initialized, legacy, result, stream, text, tool, with};

/// A chain whose tokens are called t1, t2, …; each rejection makes the next one current.
#[derive(Default)]
struct Tokens {
    rejected: Mutex<Vec<u64>>,
    /// Whether the chain has ended.
    is_over: bool,
    /// Whether it ends with the first rejection.
    ends: bool,
    asked: AtomicU64,
}

impl AccessTokens for Tokens {
    fn current(&self) -> BoxFuture<'_, Result<AccessToken, NoToken>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            if self.is_over || (self.ends && !self.rejected.lock().unwrap().is_empty()) {
                return Err(NoToken { message: "the chain of server `fake` has ended".to_owned(), needs_person: true });
            }
            let serial = self.rejected.lock().unwrap().len() as u64 + 1;
            Ok(AccessToken { header: Secret::new(format!("Bearer token-{serial}")), serial })
        })
    }

    fn rejected(&self, token: &AccessToken) {
        self.rejected.lock().unwrap().push(token.serial);
    }
}

fn pairs(headers: &[(&str, &str)]) -> Vec<(String, Secret)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect()
}

fn client(tokens: Option<&Arc<Tokens>>, headers: &[(&str, &str)]) -> Client {
    let tokens = tokens.map(|tokens| Arc::clone(tokens) as Arc<dyn AccessTokens>);
    Client { credentials: Credentials { tokens, is_token_optional: false, headers: pairs(headers) }, ..Client::new() }
}

/// A legacy server that accepts these values of `Authorization`; it challenges all others.
async fn guarded(accepted: &'static [&'static str]) -> Fake {
    const CHALLENGE: &str = r#"Bearer error="invalid_token", resource_metadata="https://h/.well-known/x""#;
    Fake::start(move |seen| match seen.rpc() {
        _ if !accepted.contains(&seen.header("authorization").unwrap_or_default()) => {
            with(text(401, "text/plain", "no"), "www-authenticate", CHALLENGE)
        }
        "tools/call" => result(seen, json!({"content": []})),
        _ => legacy(seen).unwrap(),
    })
    .await
}

fn calls(fake: &Fake) -> Vec<Seen> {
    fake.seen().into_iter().filter(|seen| seen.rpc() == "tools/call").collect()
}

#[tokio::test]
async fn headers_of_the_session_go_on_every_request_and_leave_one_field() {
    // Contract 8.1, 8.2.
    let held = Mutex::new(Vec::new());
    let fake = Fake::start(move |seen| match (&seen.method, seen.rpc()) {
        (_, "initialize") => with(result(seen, initialized("2025-11-25")), "mcp-session-id", "s-1"),
        (&Method::GET, _) | (_, "tools/call") => {
            let (chunks, response) = stream();
            held.lock().unwrap().push(chunks);
            response
        }
        _ => legacy(seen).unwrap(),
    })
    .await;
    let client = Client { watch_lists: true, ..client(None, &[("AUTHORIZATION", "of ann"), ("X-Tenant", "t")]) };
    let configured = json!({"headers": {"authorization": "static", "X-Own": "o"}});
    let session = client.open_with(&fake.url(), configured).await.unwrap();
    fake.saw(|seen| seen.method == Method::GET).await;
    session.list_tools().await.unwrap();
    let numbered = ToolCall { headers: pairs(&[("X-Request", "7")]), ..tool("hang", "{}") };
    tokio::select! {
        _ = session.call_tool(numbered) => panic!("it never answers"),
        _ = fake.saw(|seen| seen.rpc() == "tools/call") => {}
    }
    fake.saw(|seen| seen.rpc() == "notifications/cancelled").await;
    session.close().await;
    fake.saw(|seen| seen.method == Method::DELETE).await;
    for seen in fake.seen() {
        let values: Vec<_> = seen.headers.get_all("authorization").iter().collect();
        assert_eq!(values, ["of ann"], "{} {}", seen.method, seen.rpc());
        assert_eq!((seen.header("x-tenant"), seen.header("x-own")), (Some("t"), Some("o")));
        assert_eq!(seen.header("x-request").is_some(), seen.rpc() == "tools/call", "{}", seen.rpc());
    }
}

#[tokio::test]
async fn a_token_beats_static_headers_and_yields_to_those_of_the_caller() {
    // Contract 8.1.
    let fake = guarded(&["Bearer token-1", "of ann"]).await;
    let configured = || json!({"headers": {"authorization": "static"}});
    let tokens = Arc::new(Tokens::default());
    let session = client(Some(&tokens), &[]).open_with(&fake.url(), configured()).await.unwrap();
    call(&session, "x").await.unwrap();
    assert!(fake.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer token-1")));
    let of_call = ToolCall { headers: pairs(&[("Authorization", "of ann")]), ..tool("x", "{}") };
    session.call_tool(of_call).await.unwrap();
    assert_eq!(calls(&fake)[1].header("authorization"), Some("of ann"));

    let (asked, before) = (tokens.asked.load(Ordering::SeqCst), fake.seen().len());
    let session = client(Some(&tokens), &[("Authorization", "of ann")]).open_with(&fake.url(), configured()).await;
    call(&session.unwrap(), "x").await.unwrap();
    assert!(fake.seen()[before..].iter().all(|seen| seen.header("authorization") == Some("of ann")));
    assert_eq!(tokens.asked.load(Ordering::SeqCst), asked, "a token that is not sent is not asked for");
}

#[tokio::test]
async fn a_token_refused_in_mid_session_is_replaced_and_the_call_sent_once_more() {
    // Invariant S2: 401 says that the request was not processed.
    let revoked = Arc::new(Mutex::new("Bearer token-1"));
    let accepted = Arc::clone(&revoked);
    let fake = Fake::start(move |seen| match seen.rpc() {
        _ if seen.header("authorization") != Some(*accepted.lock().unwrap()) => empty(401),
        "tools/call" => result(seen, json!({"content": []})),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let tokens = Arc::new(Tokens::default());
    let session = client(Some(&tokens), &[]).open(&fake.url()).await.unwrap();
    *revoked.lock().unwrap() = "Bearer token-2";
    call(&session, "x").await.unwrap();
    call(&session, "x").await.unwrap();
    let sent: Vec<_> = calls(&fake).iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2", "Bearer token-2"]);
    assert_eq!(*tokens.rejected.lock().unwrap(), [1]);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_asked_twice_and_told_of() {
    let fake = guarded(&["Bearer token-1", "Bearer token-2"]).await;
    let tokens = Arc::new(Tokens::default());
    let session = client(Some(&tokens), &[]).open(&fake.url()).await.unwrap();
    *tokens.rejected.lock().unwrap() = vec![1, 2];
    for round in 1..=2 {
        let denied = call(&session, "x").await.unwrap_err();
        let CallError::Denied(why) = &denied else { panic!("{denied}") };
        assert!(why.contains("reauthorisation needed; resource metadata: https://h/.well-known/x"), "{why}");
        assert!(!why.contains("token-"), "{why}");
        // One refresh for each call: the token that the refresh brought is not rejected, too.
        assert_eq!((calls(&fake).len(), tokens.rejected.lock().unwrap().len()), (2 * round, 2 + round));
    }
}

#[tokio::test]
async fn a_bring_up_ends_with_the_second_refusal_and_tries_no_other_transport() {
    for transport in ["http", "sse"] {
        let fake = guarded(&[]).await;
        let tokens = Arc::new(Tokens::default());
        let opened = client(Some(&tokens), &[]).open_with(&fake.url(), json!({"type": transport})).await;
        let denied = opened.err().unwrap();
        assert!(matches!(&denied, OpenError::Denied(why) if why.contains("reauthorisation needed")), "{denied}");
        assert_eq!((fake.seen().len(), tokens.rejected.lock().unwrap().len()), (2, 1), "{:?}", fake.asked());
    }
}

#[tokio::test]
async fn a_chain_that_has_ended_sends_nothing_except_to_list_tools() {
    // Contract 7.4.
    let fake = guarded(&[""]).await;
    let over = Arc::new(Tokens { is_over: true, ..Tokens::default() });
    let denied = client(Some(&over), &[]).open(&fake.url()).await.err().unwrap();
    assert!(matches!(&denied, OpenError::Denied(why) if why.contains("has ended")), "{denied}");
    assert!(fake.seen().is_empty());
    let mut optional = client(Some(&over), &[]);
    optional.credentials.is_token_optional = true;
    let session = optional.open(&fake.url()).await.unwrap();
    assert_eq!(session.list_tools().await.unwrap().tools.len(), 1);
}

#[tokio::test]
async fn a_refused_token_without_a_successor_is_not_sent_again_and_its_refusal_says_where_to_go() {
    let fake = guarded(&["Bearer token-0"]).await;
    let tokens = Arc::new(Tokens { ends: true, ..Tokens::default() });
    let denied = client(Some(&tokens), &[]).open(&fake.url()).await.err().unwrap();
    let OpenError::Denied(why) = &denied else { panic!("{denied}") };
    assert!(why.contains("has ended; resource metadata: https://h/.well-known/x"), "{why}");
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn what_is_forbidden_is_asked_for_once_and_the_lacking_scope_named() {
    let challenge = r#"Bearer error="insufficient_scope", scope="files.write""#;
    let fake = Fake::start(move |seen| match seen.rpc() {
        "tools/call" => with(empty(403), "www-authenticate", challenge),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let tokens = Arc::new(Tokens::default());
    let session = client(Some(&tokens), &[]).open(&fake.url()).await.unwrap();
    let denied = call(&session, "x").await.unwrap_err();
    assert!(matches!(&denied, CallError::Denied(why) if why.contains("files.write")), "{denied}");
    assert!(calls(&fake).len() == 1 && tokens.rejected.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_header_of_a_user_is_plainly_told_and_nothing_is_sent_again() {
    let fake = guarded(&[]).await;
    let denied = client(None, &[("Authorization", "of ann")]).open(&fake.url()).await.err().unwrap();
    assert!(matches!(&denied, OpenError::Denied(why) if why.contains("HTTP 401")), "{denied}");
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_prints_a_credential_does_not_bring_it_into_an_error() {
    // Invariant O3.
    let fake = Fake::start(|seen| match seen.rpc() {
        "tools/call" if seen.body["params"]["name"] == "rpc" => {
            error(seen, 200, -32000, &format!("bad {:?}", seen.header("authorization")))
        }
        "tools/call" => {
            let said = format!("bad {:?} {:?}", seen.header("authorization"), seen.header("x-tenant"));
            text(400, "text/plain", said)
        }
        _ => legacy(seen).unwrap(),
    })
    .await;
    let tokens = Arc::new(Tokens::default());
    let session = client(Some(&tokens), &[("X-Tenant", "hunter22")]).open(&fake.url()).await.unwrap();
    for name in ["x", "rpc"] {
        let error = call(&session, name).await.unwrap_err().to_string();
        assert!(error.contains("bad") && !error.contains("token-1") && !error.contains("hunter22"), "{error}");
    }
}

#[tokio::test]
async fn another_origin_sees_no_header_of_anybody() {
    let other = Fake::start(|seen| match seen.rpc() {
        "tools/call" => result(seen, json!({"content": []})),
        _ => legacy(seen).unwrap(),
    })
    .await;
    let target: &'static str = Box::leak(format!("{}/mcp", other.origin).into_boxed_str());
    let fake = Fake::start(move |_| with(empty(307), "location", target)).await;
    let tokens = Arc::new(Tokens::default());
    let listed = json!({"allowed_redirect_origins": [other.origin]});
    let session = client(Some(&tokens), &[("X-Tenant", "t")]).open_with(&fake.url(), listed).await.unwrap();
    session.call_tool(ToolCall { headers: pairs(&[("X-Request", "7")]), ..tool("x", "{}") }).await.unwrap();
    assert!(!other.seen().is_empty());
    for seen in other.seen() {
        for name in ["authorization", "x-tenant", "x-request"] {
            assert_eq!(seen.header(name), None, "{}", seen.rpc());
        }
    }
    assert_eq!(fake.seen()[0].header("authorization"), Some("Bearer token-1"));
}
