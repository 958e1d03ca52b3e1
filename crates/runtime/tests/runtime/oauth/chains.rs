//! Which refresh token is presented next, and what starts a chain anew.

use std::time::Duration;

use caribou_ports::token_endpoint::TokenRequestError;
use serde_json::json;
use tokio::time::advance;

use super::endpoint::{Outcome, Stand, entry, fails, header, refused};
use crate::fake::anybody;
use crate::followed::document;

/// Lets the token in hand expire and asks for the next one.
async fn refresh(stand: &Stand) {
    advance(Duration::from_secs(3_600)).await;
    stand.tokens().await.current().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_rotated_token_is_presented_next_and_one_without_successor_again() {
    // Contract 7.2, refresh_token.
    let stand = Stand::refreshing().await;
    for successor in [Some("rt-2"), None, Some("rt-3")] {
        stand.endpoint.then(Outcome::Given(successor));
    }
    for _ in 0..4 {
        refresh(&stand).await;
    }
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-2", "rt-2", "rt-3"]);
}

#[tokio::test(start_paused = true)]
async fn client_credentials_present_nothing_and_are_kept_like_the_others() {
    // Contract 7.3, 7.5 client_credentials.
    let entry = entry(json!({"grant_type": "client_credentials", "client_id": "c", "client_secret": "s"}));
    let stand = Stand::new(json!({"a": entry})).await;
    refresh(&stand).await;
    stand.setting.runtime.reset(&anybody()).await.unwrap();
    stand.tokens().await.current().await.unwrap();
    assert_eq!(stand.endpoint.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_chain_outlives_sessions_resets_and_discoveries_and_is_written_nowhere() {
    // Contract 7.3, one state for discovery and calls, cache resets; rotation state is never written.
    let stand = Stand::refreshing().await;
    let before = stand.setting.memory.stored().text;
    stand.endpoint.then(Outcome::Given(Some("rt-2")));
    refresh(&stand).await;
    let runtime = &stand.setting.runtime;
    runtime.reset(&anybody()).await.unwrap();
    assert_eq!(header(&stand.tokens().await.current().await.unwrap()), "Bearer at-1");
    let discovery = {
        let given = stand.given.lock().unwrap();
        given.iter().rev().find(|given| given.label == "a/:").unwrap().tokens.clone().unwrap()
    };
    assert_eq!(header(&discovery.current().await.unwrap()), "Bearer at-1");
    let text = document(&json!({"a": {"tool_name_prefix": false, "type": "http", "url": "http://h",
        "oauth": entry(json!({}))["oauth"]}}));
    stand.setting.memory.edit(text);
    stand.setting.servers_shown().await;
    assert_eq!(header(&discovery.current().await.unwrap()), "Bearer at-1");
    stand.setting.memory.edit(before.clone());
    refresh(&stand).await;
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-2"]);
    assert_eq!(stand.setting.memory.stored().text, before);
    assert!(!String::from_utf8(before).unwrap().contains("rt-2"));
}

#[tokio::test(start_paused = true)]
async fn a_new_secret_keeps_the_chain_and_what_it_stands_for_starts_another() {
    // Contract 7.5, only client_secret changed; any of these changed.
    let stand = Stand::refreshing().await;
    let edit = |changed| stand.setting.memory.edit(document(&json!({"a": entry(changed)})));
    stand.endpoint.then(Outcome::Given(Some("rt-2")));
    refresh(&stand).await;
    edit(json!({"client_secret": "s", "extra_token_params": {"k": "v"}}));
    refresh(&stand).await;
    edit(json!({"scope": "other"}));
    refresh(&stand).await;
    edit(json!({"scope": "other", "refresh_token": "rt-9"}));
    refresh(&stand).await;
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-2", "rt-1", "rt-9"]);
}

#[tokio::test(start_paused = true)]
async fn a_chain_outlives_a_mistake_and_a_pause_but_not_its_server() {
    // Contract 7.6: disabling keeps it, removing does not.
    let stand = Stand::refreshing().await;
    let edit = |servers| stand.setting.memory.edit(document(&servers));
    let other = json!({"command": "b"});
    stand.endpoint.then(Outcome::Given(Some("rt-2")));
    refresh(&stand).await;
    let mut disabled = entry(json!({}));
    disabled["enabled"] = json!(false);
    for passing in [disabled, entry(json!({"token_url": 5}))] {
        edit(json!({"a": passing, "b": other}));
        assert_eq!(stand.setting.servers_shown().await.into_iter().collect::<Vec<_>>(), ["b"]);
        edit(json!({"a": entry(json!({})), "b": other}));
        refresh(&stand).await;
    }
    edit(json!({"b": other}));
    stand.setting.servers_shown().await;
    edit(json!({"a": entry(json!({})), "b": other}));
    refresh(&stand).await;
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-2", "rt-2", "rt-1"]);
}

#[tokio::test(start_paused = true)]
async fn servers_with_the_same_settings_share_nothing() {
    // Contract 7.3.
    let stand = Stand::new(json!({"a": entry(json!({})), "b": entry(json!({}))})).await;
    let (a, b) = (stand.tokens_of("a").await, stand.tokens_of("b").await);
    assert_ne!(a.current().await.unwrap().header, b.current().await.unwrap().header);
}

#[tokio::test(start_paused = true)]
async fn invalid_grant_ends_the_chain_until_another_token_is_configured() {
    // Contract 7.5, invalid_grant and recovery.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    stand.endpoint.then(refused("invalid_grant"));
    for why in ["HTTP 400: invalid_grant", "it was refused before", "it was refused before"] {
        let error = fails(&tokens).await;
        assert!(error.needs_person, "{error}");
        for part in ["server `a`", why, "set the new one as its `oauth.refresh_token`"] {
            assert!(error.message.contains(part), "{error}");
        }
        advance(Duration::from_secs(60)).await;
    }
    assert_eq!(stand.endpoint.requests(), 1);
    stand.setting.memory.edit(document(&json!({"a": entry(json!({"refresh_token": "rt-9"}))})));
    stand.setting.servers_shown().await;
    stand.tokens().await.current().await.unwrap();
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-9"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_answer_the_token_is_presented_once_more_and_the_loss_is_told() {
    // Architecture.md §10, `probe_once`.
    let stand = Stand::refreshing().await;
    let tokens = stand.tokens().await;
    stand.endpoint.then(Outcome::Fails(TokenRequestError::Unknown("the answer broke off".into())));
    stand.endpoint.then(refused("invalid_grant"));
    fails(&tokens).await;
    advance(Duration::from_secs(1)).await;
    let error = fails(&tokens).await;
    assert!(error.message.contains("an earlier answer was lost"), "{error}");
    assert_eq!(stand.endpoint.presented(), ["rt-1", "rt-1"]);
}
