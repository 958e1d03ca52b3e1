//! Chains that several replicas share (contract 7.5): whose turn it is, and what is never lost.

use std::time::Duration;

use caribou_core::oauth::chain_state::ChainState;
use futures::future::join_all;
use serde_json::json;
use tokio::time::{Instant, advance};

use super::cluster::{Cluster, Fate, TIMES};
use super::endpoint::header;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn five_hundred_callers_over_three_replicas_make_one_request() {
    // Invariant O1; contract 7.5: others wait for its result.
    let cluster = Cluster::new(HOUR, None);
    let members = [cluster.member().await, cluster.member().await, cluster.member().await];
    for generation in 1..=3 {
        let tokens = [members[0].tokens().await, members[1].tokens().await, members[2].tokens().await];
        let asked = join_all((0..500).map(|at| tokens[at % 3].current())).await;
        let expected = format!("Bearer at-{generation}");
        assert!(asked.into_iter().all(|token| header(&token.unwrap()) == expected), "{generation}");
        assert_eq!(cluster.provider.requests(), generation);
        advance(HOUR).await;
    }
    assert_eq!(cluster.provider.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_peer_looks_as_soon_as_it_is_told() {
    // Durability.md 3.3, R6: a timer of its own finds the token up to a quarter of a second later.
    for (is_told, at_most) in [(true, 0), (false, 250)] {
        let cluster = Cluster::new(HOUR, None);
        let cluster = if is_told { cluster.with_hints() } else { cluster };
        let members = [cluster.member().await, cluster.member().await];
        let tokens = [members[0].tokens().await, members[1].tokens().await];
        let takes = Duration::from_millis(1_050);
        cluster.provider.then(Fate::Answered(takes));
        let began = Instant::now();
        let waited =
            join_all(tokens.iter().map(|tokens| async move { tokens.current().await.map(|_| began.elapsed()) })).await;
        let longest = waited.into_iter().map(Result::unwrap).max().unwrap();
        let later = longest.saturating_sub(takes).as_millis();
        assert!(later <= at_most + 20 && (is_told || later > 20), "told: {is_told}, {later} ms later");
        assert_eq!(cluster.provider.requests(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_life_goes_on_with_what_is_stored() {
    // Contract 7.5, before refreshing; stored.
    let cluster = Cluster::new(HOUR, None);
    assert_eq!(header(&cluster.member().await.token().await.unwrap()), "Bearer at-1");
    let second = cluster.member().await;
    assert_eq!(header(&second.token().await.unwrap()), "Bearer at-1");
    assert_eq!(cluster.provider.requests(), 1);
    advance(HOUR).await;
    assert_eq!(header(&cluster.member().await.token().await.unwrap()), "Bearer at-2");
    assert_eq!((cluster.provider.shown(1), cluster.provider.shown(2)), (1, 1), "the successor, not the seed");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_refreshed_before_its_end_while_it_still_serves() {
    // Durability.md 3.3, R6.
    let cluster = Cluster::new(HOUR, None);
    let member = cluster.member().await;
    let tokens = member.tokens().await;
    tokens.current().await.unwrap();
    advance(HOUR.mul_f64(0.89)).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-1", "nobody waits for it");
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-2");
    assert_eq!(cluster.provider.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_the_store_nothing_is_presented_and_a_token_that_lives_serves_on() {
    // Contract 7.5, DB unreadable/unwritable before refresh.
    let cluster = Cluster::new(HOUR, None);
    let member = cluster.member_with(json!({"refresh_skew_seconds": 600}), "key").await;
    let tokens = member.tokens().await;
    tokens.current().await.unwrap();
    cluster.store_away(2 * HOUR);
    advance(HOUR - 300 * SECOND).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-1", "within the skew, and alive");
    advance(300 * SECOND).await;
    let error = tokens.current().await.unwrap_err();
    assert!(error.message.contains("server `a`") && error.message.contains("recorded"), "{error}");
    assert!(!error.needs_person);
    assert_eq!(cluster.provider.requests(), 1);
    advance(HOUR).await;
    tokens.current().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tokens_that_cannot_be_stored_are_used_and_stored_before_the_next_refresh() {
    // Contract 7.5, new tokens cannot be stored; R4.
    let cluster = Cluster::new(HOUR, None);
    let member = cluster.member().await;
    let tokens = member.tokens().await;
    cluster.provider.then(Fate::Answered(5 * SECOND));
    let asking = tokio::spawn(async move { tokens.current().await });
    advance(2 * SECOND).await;
    cluster.store_away(60 * SECOND);
    assert_eq!(header(&asking.await.unwrap().unwrap()), "Bearer at-1");
    assert_eq!(cluster.row().await.state, ChainState::InFlight);
    let tokens = member.tokens().await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-1");
    tokio::time::sleep(70 * SECOND).await;
    assert_eq!((cluster.row().await.state, cluster.row().await.generation), (ChainState::Idle, 1));
    advance(HOUR).await;
    assert_eq!(header(&tokens.current().await.unwrap()), "Bearer at-2");
    assert_eq!(cluster.provider.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_what_is_under_way_and_begins_nothing() {
    // R4, in the drain phase.
    let cluster = Cluster::new(HOUR, None);
    let member = cluster.member().await;
    let tokens = member.tokens().await;
    let asking = tokio::spawn({
        let tokens = tokens.clone();
        async move { tokens.current().await }
    });
    advance(SECOND / 2).await;
    member.runtime.stop().await;
    assert_eq!(cluster.row().await.generation, 1, "stored before the end");
    assert_eq!(header(&asking.await.unwrap().unwrap()), "Bearer at-1");
    advance(HOUR).await;
    assert!(tokens.current().await.is_err());
    assert_eq!(cluster.provider.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_takes_over_from_a_replica_that_is_gone_and_presents_the_token_once_more() {
    // Architecture.md §10, `probe_once`: after the lease ended, and the holder declared dead or 120 s passed.
    for is_declared in [true, false] {
        let cluster = Cluster::new(HOUR, None);
        let (first, second) = (cluster.member().await, cluster.member().await);
        cluster.provider.then(Fate::Refused);
        let tokens = first.tokens().await;
        let asking = tokio::spawn(async move { tokens.current().await });
        advance(SECOND / 2).await;
        first.borders.crash();
        if is_declared {
            cluster.declare_dead(first.boot()).await;
        }
        let began = tokio::time::Instant::now();
        while second.token().await.is_err() {
            assert!(began.elapsed() < TIMES.abandoned_after + 30 * SECOND);
            tokio::time::sleep(SECOND).await;
        }
        let took = began.elapsed();
        let earliest = if is_declared { 29 * SECOND } else { TIMES.abandoned_after };
        assert!(took >= earliest && took < earliest + 20 * SECOND, "{took:?}");
        assert_eq!(cluster.provider.shown(1), 2);
        asking.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn where_that_is_not_wanted_an_unknown_outcome_asks_for_a_person() {
    // Architecture.md §10, `reauth`.
    let cluster = Cluster::new(HOUR, None);
    let member = cluster.member_with(json!({"unknown_outcome": "reauth"}), "key").await;
    let tokens = member.tokens().await;
    cluster.provider.then(Fate::Lost);
    tokens.current().await.unwrap_err();
    assert_eq!(cluster.row().await.state, ChainState::Unknown);
    advance(TIMES.abandoned_after).await;
    let error = tokens.current().await.unwrap_err();
    assert!(error.needs_person && error.message.contains("the answer to a refresh is lost"), "{error}");
    assert_eq!((cluster.row().await.state, cluster.provider.requests()), (ChainState::ReauthNeeded, 1));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_rotates_is_asked_again_at_once() {
    // Architecture.md §10: a row remembers whether the provider ever rotated.
    let cluster = Cluster::new(HOUR, None);
    cluster.provider.stop_rotating();
    let member = cluster.member().await;
    let tokens = member.tokens().await;
    tokens.current().await.unwrap();
    advance(HOUR).await;
    cluster.provider.then(Fate::Lost);
    tokens.current().await.unwrap_err();
    advance(2 * SECOND).await;
    tokens.current().await.unwrap();
    assert_eq!(cluster.provider.shown(1), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_backs_off_and_keeps_the_token() {
    // Architecture.md §10: 5xx keeps the chain.
    let cluster = Cluster::new(HOUR, None);
    let member = cluster.member().await;
    let tokens = member.tokens().await;
    for _ in 0..3 {
        cluster.provider.then(Fate::Refused);
    }
    let began = tokio::time::Instant::now();
    while tokens.current().await.is_err() {
        tokio::time::sleep(SECOND / 2).await;
    }
    assert_eq!(cluster.provider.shown(1), 4);
    assert!(began.elapsed() >= 7 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_asks_another_way_goes_on_with_the_chain_and_not_with_the_token() {
    // Contract 7.5, access token reuse.
    let cluster = Cluster::new(HOUR, None);
    cluster.member().await.token().await.unwrap();
    let other = cluster.member_with(json!({"extra_token_params": {"resource": "r"}}), "key").await;
    assert_eq!(header(&other.token().await.unwrap()), "Bearer at-2");
    assert_eq!((cluster.provider.shown(1), cluster.provider.shown(2)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn another_key_falls_back_to_the_seed_says_so_and_ends_nothing_for_the_others() {
    // Contract 7.5, invalid_grant after falling back to the seed; R5.
    let cluster = Cluster::new(HOUR, None);
    let right = cluster.member().await;
    right.token().await.unwrap();
    let wrong = cluster.member_with(json!({"refresh_skew_seconds": 0}), "another key").await;
    cluster.provider.excuse_anything();
    let error = wrong.token().await.unwrap_err();
    assert!(error.needs_person, "{error}");
    for part in ["server `a`", "every instance needs the same CARIBOU_CREDENTIALS_KEY", "`oauth.refresh_token`"] {
        assert!(error.message.contains(part), "{error}");
    }
    let row = cluster.row().await;
    assert_eq!((row.state, row.generation), (ChainState::Idle, 1), "those with the key go on");
    advance(2 * SECOND).await;
    wrong.token().await.unwrap_err();
    assert_eq!(cluster.provider.shown(1), 2, "it is not shown in vain again");
}

#[tokio::test(start_paused = true)]
async fn another_seed_starts_anew_and_its_former_one_is_done_for() {
    // Contract 7.5, recovery.
    let cluster = Cluster::new(HOUR, None);
    cluster.member().await.token().await.unwrap();
    let generation = cluster.row().await.generation;
    let other = cluster.member_with(json!({"refresh_token": "rt-2"}), "key").await;
    assert_eq!(header(&other.token().await.unwrap()), "Bearer at-2");
    assert!(cluster.row().await.generation > generation);
    assert_eq!((cluster.provider.shown(1), cluster.provider.shown(2)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_token_is_replaced_once_for_all_replicas() {
    // Durability.md 3.3, R7.
    let cluster = Cluster::new(HOUR, None);
    let members = [cluster.member().await, cluster.member().await];
    let tokens = [members[0].tokens().await, members[1].tokens().await];
    for tokens in &tokens {
        let first = tokens.current().await.unwrap();
        tokens.rejected(&first);
    }
    let replaced = join_all(tokens.iter().map(|tokens| tokens.current())).await;
    assert!(replaced.into_iter().all(|token| header(&token.unwrap()) == "Bearer at-2"));
    assert_eq!(cluster.provider.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unclear_intent_is_looked_up_and_nothing_is_shown_twice() {
    // R1.
    let cluster = Cluster::new(HOUR, None);
    let member = cluster.member().await;
    cluster.unclear_commit();
    assert_eq!(header(&member.token().await.unwrap()), "Bearer at-1");
    assert_eq!((cluster.provider.requests(), cluster.row().await.generation), (1, 1));
}
