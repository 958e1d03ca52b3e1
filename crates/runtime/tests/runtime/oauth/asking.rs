//! When a token endpoint is asked, and who hears of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::bounds::{TOKEN_REJECTED_AGAIN, TOKEN_REQUEST, TOKEN_RETRY};
use caribou_core::failure::Code;
use caribou_ports::token_endpoint::TokenRequestError;
use caribou_runtime::Options;
use futures::future::join_all;
use serde_json::json;
use tokio::time::advance;

use super::endpoint::{Outcome, Stand, entry, fails, header, refused};
use crate::fake::call;
use crate::followed::Setting;

#[tokio::test(start_paused = true)]
async fn one_request_serves_repeated_lookups_until_the_token_expires() {
    // Contract 7.3, expiring.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    let first = tokens.current().await.unwrap();
    advance(Duration::from_secs(3_600 - 60 - 2)).await;
    assert_eq!(tokens.current().await.unwrap(), first);
    assert_eq!((header(&first), stand.endpoint.requests()), ("Bearer at-1", 1));
    advance(Duration::from_secs(2)).await;
    let second = tokens.current().await.unwrap();
    assert_eq!((header(&second), stand.endpoint.requests()), ("Bearer at-2", 2));
    assert!(second.serial > first.serial);
}

#[tokio::test(start_paused = true)]
async fn two_hundred_callers_at_expiry_make_one_request() {
    // Contract 7.3, one refresh per server at a time.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    let asked = join_all((0..200).map(|_| tokens.current())).await;
    assert!(asked.into_iter().all(|token| header(&token.unwrap()) == "Bearer at-1"));
    assert_eq!(stand.endpoint.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn callers_that_give_up_cancel_nothing() {
    // Contract 7.3, a cancelled waiter.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    let mut asked: Vec<_> = (0..200)
        .map(|_| {
            let tokens = tokens.clone();
            tokio::spawn(async move { tokens.current().await.map(|token| header(&token).to_owned()) })
        })
        .collect();
    advance(Duration::from_millis(500)).await;
    let others = asked.split_off(100);
    for given_up in &asked {
        given_up.abort();
    }
    for other in others {
        assert_eq!(other.await.unwrap().unwrap(), "Bearer at-1");
    }
    assert_eq!(stand.endpoint.requests(), 1);

    // Nobody at all is left, and the token comes all the same.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    assert!(tokio::time::timeout(Duration::from_millis(500), tokens.current()).await.is_err());
    advance(Duration::from_secs(1)).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-1");
    assert_eq!(stand.endpoint.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_wakes_all_who_wait_and_is_the_answer_for_a_second() {
    // Contract 7.3, a failing refresher.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    stand.endpoint.then(Outcome::Fails(TokenRequestError::NotSent("nobody listens; nothing was sent".into())));
    let asked = join_all((0..100).map(|_| tokens.current())).await;
    for failed in asked {
        let error = failed.unwrap_err();
        assert_eq!(error.to_string(), "server `a` has no access token: nobody listens; nothing was sent");
        assert!(!error.needs_person);
    }
    advance(TOKEN_RETRY - Duration::from_millis(1)).await;
    assert!(join_all((0..100).map(|_| tokens.current())).await.iter().all(Result::is_err));
    assert_eq!(stand.endpoint.requests(), 1);
    advance(Duration::from_millis(1)).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-2");
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_client_is_a_persons_to_mend_and_keeps_the_chain() {
    // Architecture.md §9, refresh errors.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    stand.endpoint.then(Outcome::Given(Some("rt-2")));
    tokens.current().await.unwrap();
    advance(Duration::from_secs(3_600)).await;
    stand.endpoint.then(refused("invalid_client"));
    let error = fails(&tokens).await;
    assert!(error.needs_person && error.message.contains("`a`") && error.message.contains("invalid_client"), "{error}");
    advance(TOKEN_RETRY).await;
    tokens.current().await.unwrap();
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-2", "rt-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_ends_is_given_up() {
    // Contract 7.5, long request; invariant B1.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    stand.endpoint.then(Outcome::Hangs);
    let began = tokio::time::Instant::now();
    let error = fails(&tokens).await;
    assert!(began.elapsed() <= TOKEN_REQUEST + Duration::from_secs(1) && error.message.contains("given up"), "{error}");
    advance(TOKEN_RETRY).await;
    tokens.current().await.unwrap();
    assert_eq!(stand.endpoint.most_at_once.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_panics_leaves_the_chain_usable() {
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    stand.endpoint.then(Outcome::Panics);
    assert!(fails(&tokens).await.message.contains("a fault of Caribou"));
    advance(TOKEN_RETRY).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-2");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_token_is_replaced_once_for_all_who_saw_it_rejected() {
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    let first = tokens.current().await.unwrap();
    let replaced = join_all((0..50).map(|_| async {
        tokens.rejected(&first);
        tokens.current().await.unwrap()
    }))
    .await;
    assert!(replaced.iter().all(|token| header(token) == "Bearer at-2"));
    tokens.rejected(&first);
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-2");
    assert_eq!(stand.endpoint.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_every_token_is_no_loop() {
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    tokens.rejected(&tokens.current().await.unwrap());
    tokens.rejected(&tokens.current().await.unwrap());
    let error = fails(&tokens).await;
    assert!(error.needs_person && error.message.contains("reauthorisation"), "{error}");
    advance(TOKEN_REJECTED_AGAIN - Duration::from_millis(1)).await;
    fails(&tokens).await;
    assert_eq!(stand.endpoint.requests(), 2);
    // R7: then one refresh more, and it works again if the server does.
    advance(Duration::from_millis(1)).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-3");
}

#[tokio::test(start_paused = true)]
async fn discovery_goes_on_without_a_token_and_calls_do_not() {
    // Contract 7.4.
    let stand = Stand::refreshing().await;
    stand.tokens().await;
    let given = stand.given.lock().unwrap();
    let optional = |label: &str| given.iter().find(|given| given.label == label).unwrap().is_optional;
    assert!(optional("a/:") && !optional("a/ann:t"));
}

#[tokio::test(start_paused = true)]
async fn without_a_token_endpoint_a_server_with_oauth_is_refused_and_the_others_are_served() {
    let setting =
        Setting::with(json!({"a": entry(json!({})), "b": entry(json!({"enabled": false}))}), Options::default()).await;
    let refused = setting.runtime.call_tool(call("a_count", "t")).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.code, Code::Denied);
    assert!(refused.detail.contains("`a`") && refused.detail.contains("token_endpoint"), "{refused}");
    setting.runtime.call_tool(call("b_count", "t")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_what_the_grant_needs_nothing_is_asked_and_a_person_must_act() {
    // Contract 7.1, refresh_token.
    let stand = Stand::new(json!({"a": entry(json!({"refresh_token": null}))})).await;
    let error = fails(&stand.tokens().await).await;
    assert!(error.needs_person && error.message.contains("server `a`"), "{error}");
    assert!(error.message.contains("requires refresh_token"), "{error}");
    assert_eq!(stand.endpoint.requests(), 0);
}
