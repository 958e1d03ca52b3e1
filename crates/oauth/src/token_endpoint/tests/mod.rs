//! Token requests against a real HTTP server on loopback.

mod server;

use caribou_ports::token_endpoint::TokenRequestError;
use server::{Server, Then, ask, ask_while, http};
use tokio::net::TcpListener;

const CLIENT: &str = r#""client_id": "client-SECRET", "client_secret": "p&ss/w rd-SECRET""#;
const REFRESH: &str = r#""grant_type": "refresh_token", "refresh_token": "rt-SECRET-1""#;

#[tokio::test]
async fn a_request_is_one_form_and_its_answer_is_read() {
    // Contract 7.1, method and body; 7.2.
    let server = Server::answering(200, r#"{"access_token": "at", "token_type": "bearer", "expires_in": "60"}"#).await;
    let answer = server.ask(&format!(r#"{CLIENT}, "scope": "a b", "extra_token_params": {{"resource": "r"}}"#)).await;
    let answer = answer.unwrap();
    assert_eq!((answer.header.expose(), answer.expires_in, answer.refresh_token), ("Bearer at", 60, None));
    let [request] = &*server.seen() else { panic!("{:?}", server.seen()) };
    let (head, form) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("post /token?tenant=hidden-tenant http/1.1\r\n"), "{head}");
    for line in [
        "content-type: application/x-www-form-urlencoded",
        "accept: application/json",
        &format!("content-length: {}", form.len()),
        concat!("user-agent: caribou/", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(head.lines().filter(|sent| *sent == line).count(), 1, "{line}: {head}");
    }
    assert!(!head.contains("transfer-encoding") && !head.contains("authorization"), "{head}");
    assert_eq!(
        form,
        "resource=r&grant_type=client_credentials&scope=a+b&client_id=client-SECRET&client_secret=p%26ss%2Fw+rd-SECRET"
    );
}

#[tokio::test]
async fn a_client_may_authenticate_by_http_basic() {
    // RFC 6749 §2.3.1: id and secret are encoded as in a form, then joined, and stand nowhere else.
    let server = Server::answering(200, r#"{"access_token": "at"}"#).await;
    let basic = r#""token_endpoint_auth_method": "client_secret_basic""#;
    server.ask(&format!("{CLIENT}, {basic}")).await.unwrap();
    let (head, form) = server.seen()[0].split_once("\r\n\r\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    // client-SECRET:p%26ss%2Fw+rd-SECRET
    let line = "authorization: basic y2xpzw50lvnfq1jfvdpwjti2c3mlmkz3k3jklvnfq1jfva==";
    assert!(head.to_lowercase().lines().any(|sent| sent == line), "{head}");
    assert_eq!(form, "grant_type=client_credentials");
}

#[tokio::test]
async fn what_stands_in_the_credentials_of_http_basic_is_shown_by_nobody() {
    // Invariant O3.
    let told = "{\"error\": \"invalid_client\", \"error_description\": \"Y2xpZW50LVNFQ1JFVDpwJTI2c3MlMkZ3K3JkLVNFQ1JFVA== \
        client-SECRET p%26ss%2Fw+rd-SECRET\"}";
    let server = Server::answering(401, told).await;
    let basic = r#""token_endpoint_auth_method": "client_secret_basic""#;
    let refused = server.ask(&format!("{CLIENT}, {basic}")).await.unwrap_err().to_string();
    assert!(refused.contains("invalid_client: *** *** ***"), "{refused}");
}

#[tokio::test]
async fn a_refresh_presents_its_token_and_brings_the_successor() {
    // Contract 7.1, refresh_token; 7.2, refresh_token.
    let server = Server::answering(201, r#"{"access_token": "at", "refresh_token": "rt-2", "scope": ["a"]}"#).await;
    let answer = server.ask(REFRESH).await.unwrap();
    assert_eq!(answer.refresh_token.unwrap().expose(), "rt-2");
    assert!(server.seen()[0].ends_with("\r\n\r\ngrant_type=refresh_token&refresh_token=rt-SECRET-1"));
}

#[tokio::test]
async fn an_answer_may_be_a_form() {
    let form = "access_token=a-t&token_type=bearer&expires_in=60&scope=mcp.read";
    let kind = "content-type: application/x-www-form-urlencoded\r\n";
    let server = Server::start(Then::Answer(http(200, kind, form))).await;
    let answer = server.ask(CLIENT).await.unwrap();
    assert_eq!((answer.header.expose(), answer.expires_in), ("Bearer a-t", 60));
}

#[tokio::test]
async fn without_what_the_grant_needs_nothing_is_sent() {
    // Contract 7.1, client_credentials and refresh_token.
    let server = Server::answering(200, "{}").await;
    for members in [r#""client_id": "c""#, r#""grant_type": "refresh_token""#] {
        let error = server.ask(members).await.unwrap_err();
        assert!(matches!(&error, TokenRequestError::NotSent(why) if why.contains("requires")), "{error:?}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn every_status_but_success_refuses_and_says_why_without_a_secret() {
    // Contract 7.1, non-2xx. Invariant O3.
    let quoted = "client client-SECRET with p%26ss%2Fw+rd-SECRET, cCZzcy93IHJkLVNFQ1JFVA== or rt-SECRET-9";
    let body =
        format!(r#"{{"error": "invalid_client", "error_description": "{quoted}", "refresh_token": "rt-SECRET-9"}}"#);
    for status in [400, 401, 429, 500, 503] {
        let error = Server::answering(status, &body).await.ask(CLIENT).await.unwrap_err();
        let TokenRequestError::Refused { error: code, message } = error else { panic!("{error:?}") };
        assert_eq!(code.as_deref(), Some("invalid_client"));
        assert_eq!(
            message,
            format!("the token endpoint answered HTTP {status}: invalid_client: client *** with ***, *** or ***")
        );
    }
    let mute = Server::answering(502, "<html>at-SECRET</html>").await.ask(CLIENT).await.unwrap_err();
    assert_eq!(
        mute,
        TokenRequestError::Refused { error: None, message: "the token endpoint answered HTTP 502".to_owned() }
    );
}

#[tokio::test]
async fn an_error_with_a_status_of_success_is_a_refusal() {
    let body = r#"{"ok": false, "error": "invalid_client_id", "error_description": "no such client"}"#;
    let error = Server::answering(200, body).await.ask(CLIENT).await.unwrap_err();
    let message = "the token endpoint answered with an error: invalid_client_id: no such client".to_owned();
    assert_eq!(error, TokenRequestError::Refused { error: None, message });
}

#[tokio::test]
async fn an_answer_without_a_usable_token_is_unusable_and_repeats_nothing() {
    // Contract 7.2, token_field and header value; 8.3.
    for body in [
        r#"{"ok": true, "authed_user": {"access_token": "at-SECRET"}}"#.to_owned(),
        r#"{"access_token": "at-SECRET\r\nX-Evil: 1"}"#.to_owned(),
        r#"{"access_token": "at-SECRET", "token_type": "DPoP"}"#.to_owned(),
        r#"["at-SECRET"]"#.to_owned(),
        "<html>at-SECRET</html>".to_owned(),
        format!(r#"{{"access_token": "at-SECRET", "more": "{}"}}"#, "x".repeat(64 * 1024)),
    ] {
        let error = Server::answering(200, &body).await.ask(CLIENT).await.unwrap_err();
        let TokenRequestError::Unusable { message: why, .. } = &error else { panic!("{error:?}") };
        assert!(why.len() < 200 && !why.contains("SECRET"), "{why}");
    }
}

#[tokio::test]
async fn the_successor_in_an_unusable_answer_is_kept() {
    // Invariant O2: the token presented may be spent.
    let server = Server::answering(200, r#"{"at": "x", "refresh_token": "rt-2"}"#).await;
    let error = server.ask(REFRESH).await.unwrap_err();
    let TokenRequestError::Unusable { refresh_token: Some(kept), .. } = &error else { panic!("{error:?}") };
    assert_eq!(kept.expose(), "rt-2");
}

#[tokio::test]
async fn a_right_that_ended_before_the_first_byte_sends_nothing() {
    // R1: directly before the first byte.
    let server = Server::answering(200, r#"{"access_token": "at"}"#).await;
    let no = std::sync::Arc::new(|| false);
    let error = ask_while(&format!("{}/token", server.origin), REFRESH, false, Some(no)).await.unwrap_err();
    assert!(matches!(&error, TokenRequestError::NotSent(why) if why.contains("nothing was sent")), "{error:?}");
    assert!(!server.seen().iter().any(|seen| format!("{seen:?}").contains("rt-SECRET")));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::answering(200, r#"{"access_token": "at"}"#).await;
    for status in [302, 307, 308] {
        let location = format!("location: {}/token\r\n", elsewhere.origin);
        let error = Server::start(Then::Answer(http(status, &location, ""))).await.ask(CLIENT).await.unwrap_err();
        let TokenRequestError::Refused { error: None, message } = &error else { panic!("{error:?}") };
        assert!(message.contains("oauth.token_url"), "{message}");
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_request_without_a_connection_was_not_sent() {
    let gone = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://127.0.0.1:{}/?key=hidden-SECRET", gone.local_addr().unwrap().port());
    drop(gone);
    let error = ask(&url, CLIENT, false).await.unwrap_err();
    let TokenRequestError::NotSent(why) = &error else { panic!("{error:?}") };
    assert!(why.contains("nothing was sent") && !why.contains("SECRET"), "{why}");
}

#[tokio::test]
async fn a_connection_that_never_comes_about_ends_after_its_bound_with_nothing_sent() {
    // Contract 7.1, 15 s per operation. It accepts, but never speaks TLS.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let asked = tokio::spawn(async move { ask(&url, CLIENT, false).await });
    let kept = listener.accept().await.unwrap();
    tokio::time::pause();
    let error = asked.await.unwrap().unwrap_err();
    assert!(matches!(error, TokenRequestError::NotSent(_)), "{error:?}");
    drop(kept);
}

const HALF: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"access_";

async fn assert_unknown(then: Then) {
    let server = Server::start(then).await;
    let error = server.ask(REFRESH).await.unwrap_err();
    assert!(matches!(&error, TokenRequestError::Unknown(why) if !why.contains("SECRET")), "{error:?}");
    assert_eq!(server.seen().len(), 1, "never repeated");
}

#[tokio::test]
async fn an_answer_that_breaks_off_leaves_it_unknown() {
    assert_unknown(Then::Answer(String::new())).await;
    assert_unknown(Then::Answer(HALF.to_owned())).await;
}

#[tokio::test]
async fn an_answer_that_does_not_begin_ends_after_its_bound() {
    // Contract 7.1, 15 s per operation.
    assert_unknown(Then::StandStill(String::new())).await;
}

#[tokio::test]
async fn an_answer_that_stands_still_ends_after_its_bound() {
    // Contract 7.1, 15 s per operation.
    assert_unknown(Then::StandStill(HALF.to_owned())).await;
}

#[tokio::test]
async fn a_personal_connection_reaches_no_private_network() {
    // Architecture.md §9, private networks.
    let server = Server::answering(200, r#"{"access_token": "at"}"#).await;
    for host in [server.origin.clone(), server.origin.replace("127.0.0.1", "localhost")] {
        let error = ask(&host, CLIENT, true).await.unwrap_err();
        assert!(matches!(&error, TokenRequestError::NotSent(why) if why.contains("public internet")), "{error:?}");
    }
    assert!(server.seen().is_empty());
}
