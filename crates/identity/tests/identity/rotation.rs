//! Keys change while tokens are presented.

use std::time::Duration;

use caribou_identity::KeySource;
use caribou_ports::identity::Unauthenticated;
use jsonwebtoken::Algorithm;
use serde_json::json;

use crate::issuer::{Key, Published, callers, claims, present, refusal, rules};

/// Lets time pass without waiting for it. The network goes on by the real clock.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

const MINUTE: Duration = Duration::from_secs(61);

#[tokio::test]
async fn an_unknown_key_is_looked_for_at_most_once_a_minute() {
    let [old, new] = ["old", "new"].map(|kid| Key::new(kid, Algorithm::EdDSA));
    let published = Published::start().await;
    published.publish(&[&old]);
    let callers = callers(KeySource::Url(published.url.clone()), rules()).await;
    assert!(present(&callers, &old.sign(&claims(json!({})))).await.is_ok());
    assert_eq!(published.asked(), 1);

    published.publish(&[&old, &new]);
    let token = new.sign(&claims(json!({})));
    for _ in 0..20 {
        assert_eq!(refusal(&callers, &token).await, "its issuer publishes no key that may have signed it");
    }
    assert_eq!(published.asked(), 1, "too soon");
    pass(MINUTE).await;
    assert!(present(&callers, &token).await.is_ok());
    for _ in 0..20 {
        let stranger = Key::new("stranger", Algorithm::EdDSA);
        refusal(&callers, &stranger.sign(&claims(json!({})))).await;
    }
    assert_eq!(published.asked(), 2);
}

#[tokio::test]
async fn a_key_that_was_taken_back_is_believed_no_more() {
    let [old, new] = ["old", "new"].map(|kid| Key::new(kid, Algorithm::EdDSA));
    let published = Published::start().await;
    published.publish(&[&old]);
    let callers = callers(KeySource::Url(published.url.clone()), rules()).await;
    let token = old.sign(&claims(json!({})));
    assert!(present(&callers, &token).await.is_ok());
    published.publish(&[&new]);
    pass(MINUTE * 5).await;
    refusal(&callers, &token).await;
    assert!(present(&callers, &new.sign(&claims(json!({})))).await.is_ok());
}

#[tokio::test]
async fn a_remembered_token_goes_with_the_keys_it_was_believed_by() {
    let [old, new] = ["old", "new"].map(|kid| Key::new(kid, Algorithm::EdDSA));
    let published = Published::start().await;
    published.publish(&[&old]);
    let callers = callers(KeySource::Url(published.url.clone()), rules()).await;
    pass(MINUTE).await;
    let token = old.sign(&claims(json!({})));
    assert!(present(&callers, &token).await.is_ok());
    published.publish(&[&new]);
    assert!(present(&callers, &new.sign(&claims(json!({})))).await.is_ok(), "the keys are read again for it");
    refusal(&callers, &token).await;
}

#[tokio::test]
async fn an_issuer_that_is_away_locks_nobody_out_for_an_hour_and_then_everybody() {
    let key = Key::new("d", Algorithm::EdDSA);
    let published = Published::start().await;
    published.publish(&[&key]);
    let callers = callers(KeySource::Url(published.url.clone()), rules()).await;
    published.answer_with("500 Internal Server Error", "hunter2");
    let token = |n: i64| key.sign(&claims(json!({ "n": n })));
    pass(MINUTE * 6).await;
    assert!(present(&callers, &token(1)).await.is_ok());
    assert_eq!(published.asked(), 2);
    pass(MINUTE * 60).await;
    assert!(matches!(present(&callers, &token(2)).await, Err(Unauthenticated::Unavailable(_))));
    published.publish(&[&key]);
    pass(MINUTE).await;
    assert!(present(&callers, &token(3)).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_was_away_at_the_start_is_asked_again() {
    let key = Key::new("d", Algorithm::EdDSA);
    let published = Published::start().await;
    let callers = callers(KeySource::Url(published.url.clone()), rules()).await;
    let token = key.sign(&claims(json!({})));
    for (status, body) in [("302 Found", String::new()), ("200 OK", "x".repeat(300 * 1024)), ("200 OK", "{}".into())] {
        published.answer_with(status, &body);
        pass(Duration::from_secs(6)).await;
        assert!(matches!(present(&callers, &token).await, Err(Unauthenticated::Unavailable(_))), "{status}");
    }
    published.publish(&[&key]);
    pass(Duration::from_secs(6)).await;
    assert!(present(&callers, &token).await.is_ok());
}
