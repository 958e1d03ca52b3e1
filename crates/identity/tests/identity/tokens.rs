//! Which tokens are believed.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caribou_core::identity::Roles;
use caribou_identity::{JwtCallers, KeySource};
use caribou_ports::identity::{Authenticator as _, Unauthenticated};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

use crate::issuer::{Key, at, callers_with, claims, present, refusal, rules};

#[tokio::test]
async fn a_token_signed_by_each_kind_of_key_says_who_calls() {
    let folder = tempfile::tempdir().unwrap();
    let keys = [Key::new("r", Algorithm::RS256), Key::new("e", Algorithm::ES256), Key::new("d", Algorithm::EdDSA)];
    let callers = callers_with(folder.path(), &keys.each_ref(), rules()).await;
    for key in &keys {
        let caller = present(&callers, &key.sign(&claims(json!({})))).await.unwrap();
        assert_eq!((&*caller.id, caller.user.as_str()), ("ann", "ann"));
        assert_eq!(caller.roles, Roles { admin: false, agent: true });
    }
    let one_of_many = keys[2].sign(&claims(json!({"aud": ["x", "other"]})));
    assert!(present(&callers, &one_of_many).await.is_ok());
    let nameless = keys[1].sign_as(Header::new(Algorithm::ES256), &claims(json!({})));
    assert!(present(&callers, &nameless).await.is_ok(), "the only key of its kind");
    assert_eq!(callers.authenticate(None).await, Err(Unauthenticated::Missing));
}

#[tokio::test]
async fn a_token_that_says_something_wrong_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new("d", Algorithm::EdDSA);
    let callers = callers_with(folder.path(), &[&key], rules()).await;
    for (wrong, why) in [
        (json!({"iss": "https://hunter2.example"}), "it is of another issuer"),
        (json!({"aud": "hunter2"}), "it is for another service"),
        (json!({"aud": ["hunter2"]}), "it is for another service"),
        (json!({"exp": at(-31)}), "it has expired"),
        (json!({"nbf": at(60)}), "it is not valid yet"),
        (json!({"iss": null}), "one of the claims `exp`, `iss` and `aud` is missing"),
        (json!({"aud": null}), "one of the claims `exp`, `iss` and `aud` is missing"),
        (json!({"exp": null}), "one of the claims `exp`, `iss` and `aud` is missing"),
        (json!({"exp": "hunter2"}), "one of the claims `exp`, `iss` and `aud` is missing"),
        (json!({"sub": null}), "the token has no claim `sub` that names a user"),
    ] {
        assert_eq!(refusal(&callers, &key.sign(&claims(wrong.clone()))).await, why, "{wrong}");
    }
    for within_leeway in [json!({"exp": at(-20)}), json!({"nbf": at(20)}), json!({"nbf": at(-60)})] {
        assert!(present(&callers, &key.sign(&claims(within_leeway.clone()))).await.is_ok(), "{within_leeway}");
    }
}

#[tokio::test]
async fn no_signature_but_that_of_a_published_key_is_believed() {
    // RFC 8725 §2.1, §3.1.
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new("d", Algorithm::EdDSA);
    let callers = callers_with(folder.path(), &[&key], rules()).await;
    let good = key.sign(&claims(json!({})));
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let payload = good.split('.').nth(1).unwrap();
    for none in ["none", "None", "NONE"] {
        let token = format!("{}.{payload}.", part(json!({"alg": none, "kid": "d"})));
        assert_eq!(refusal(&callers, &token).await, "it is no signed token that is understood", "{none}");
    }
    // The public key taken for a shared secret.
    let public = URL_SAFE_NO_PAD.decode(key.public()["x"].as_str().unwrap()).unwrap();
    let shared = EncodingKey::from_secret(&public).unwrap();
    let header = Header { kid: Some("d".to_owned()), ..Header::new(Algorithm::HS256) };
    let token = encode(&header, &claims(json!({})), &shared).unwrap();
    assert_eq!(refusal(&callers, &token).await, "its algorithm is not among `auth.jwt.algorithms`");
    // Another key under the same name, and one that the token brings along.
    let other = Key::new("d", Algorithm::EdDSA);
    assert_eq!(refusal(&callers, &other.sign(&claims(json!({})))).await, "its signature is wrong");
    let mut header = Header { kid: Some("d".to_owned()), ..Header::new(Algorithm::EdDSA) };
    header.jwk = serde_json::from_value(other.public()).ok();
    assert!(header.jwk.is_some());
    assert_eq!(refusal(&callers, &other.sign_as(header, &claims(json!({})))).await, "its signature is wrong");
    let changed = format!(
        "{}.{}.{}",
        good.split('.').next().unwrap(),
        part(claims(json!({"sub": "bob"}))),
        good.split('.').nth(2).unwrap()
    );
    assert_eq!(refusal(&callers, &changed).await, "its signature is wrong");
    for odd in ["", "hunter2", "a.b.c", &good[1..], &"x".repeat(100_000)] {
        assert!(present(&callers, odd).await.is_err());
    }
}

#[tokio::test]
async fn only_the_algorithms_of_the_operator_are_believed() {
    let folder = tempfile::tempdir().unwrap();
    let keys = [Key::new("e", Algorithm::ES256), Key::new("d", Algorithm::EdDSA)];
    let mut only = rules();
    only.algorithms = vec!["ES256".to_owned(), "HS256".to_owned(), "none".to_owned()];
    let callers = callers_with(folder.path(), &keys.each_ref(), only).await;
    assert!(present(&callers, &keys[0].sign(&claims(json!({})))).await.is_ok());
    let refused = refusal(&callers, &keys[1].sign(&claims(json!({})))).await;
    assert_eq!(refused, "its algorithm is not among `auth.jwt.algorithms`");
}

#[tokio::test]
async fn a_remembered_token_is_not_believed_beyond_its_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::new("d", Algorithm::EdDSA);
    let mut exact = rules();
    exact.leeway = Duration::ZERO;
    let callers = callers_with(folder.path(), &[&key], exact).await;
    let token = key.sign(&claims(json!({"exp": at(2)})));
    assert!(present(&callers, &token).await.is_ok());
    // Believed by the clock of this process, of which the token's two seconds are over after the last of these.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while present(&callers, &token).await.is_ok() {
        assert!(tokio::time::Instant::now() < deadline, "it never expired");
        tokio::task::yield_now().await;
    }
    assert_eq!(refusal(&callers, &token).await, "it has expired");
}

#[tokio::test]
async fn a_file_of_keys_that_cannot_be_used_ends_the_start_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for text in [None, Some("{}"), Some("not json")] {
        let file = folder.path().join("keys.json");
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let started = JwtCallers::start(KeySource::File(file), rules(), reqwest::Client::builder()).await;
        let refused = started.err().unwrap().to_string();
        assert!(refused.contains("keys.json") && refused.contains("auth.jwt.jwks_file"), "{refused}");
    }
}
