//! Every cell of the table of a chain (durability.md 3.3, R1 to R7; invariants O1, O2).

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(120);

fn policy() -> ChainPolicy {
    ChainPolicy {
        skew: 60 * SECOND,
        leeway: Duration::ZERO,
        unknown_outcome: UnknownOutcome::ProbeOnce,
        abandoned_after: LATE,
    }
}

fn idle() -> ChainSeen {
    ChainSeen {
        is_same_seed: true,
        state: ChainState::Idle,
        lease_left: Duration::ZERO,
        is_holder_dead: false,
        since_begun: Duration::ZERO,
        presented: 0,
        never_rotates: false,
        retry_in: Duration::ZERO,
        access: None,
    }
}

fn access(left: u32, until_ahead: u32) -> Option<AccessSeen> {
    Some(AccessSeen { left: left * SECOND, until_ahead: until_ahead * SECOND, is_same_kind: true, is_rejected: false })
}

fn begun(state: ChainState, since: Duration) -> ChainSeen {
    ChainSeen { state, presented: 1, since_begun: since, ..idle() }
}

fn at(seen: ChainSeen) -> Step {
    next(&seen, &policy())
}

#[test]
fn a_token_that_serves_is_used_whatever_becomes_of_the_chain() {
    // R6; contract 7.5: a peer's still-valid access token is used.
    for state in ChainState::ALL {
        let seen = ChainSeen { access: access(61, 1), ..begun(state, SECOND) };
        assert_eq!(at(seen), Step::Use, "{state:?}");
    }
}

#[test]
fn a_token_within_the_skew_of_another_kind_or_rejected_does_not_serve() {
    // Contract 7.3; architecture.md §10, R6; R7.
    let good = access(61, 1).unwrap();
    for bad in [
        AccessSeen { left: 60 * SECOND, ..good },
        AccessSeen { is_same_kind: false, ..good },
        AccessSeen { is_rejected: true, ..good },
    ] {
        assert_eq!(at(ChainSeen { access: Some(bad), ..idle() }), Step::Present, "{bad:?}");
        let ended = ChainSeen { state: ChainState::ReauthNeeded, access: Some(bad), ..idle() };
        assert_eq!(at(ended), Step::AskPerson, "{bad:?}");
    }
}

#[test]
fn past_its_time_a_token_that_serves_is_refreshed_beside_unless_that_cannot_be() {
    // R6.
    let ahead = access(61, 0);
    assert_eq!(at(ChainSeen { access: ahead, ..idle() }), Step::UseAndRefresh);
    assert_eq!(at(ChainSeen { access: ahead, retry_in: SECOND, ..idle() }), Step::Use);
    let at_it = ChainSeen { lease_left: SECOND, access: ahead, ..begun(ChainState::InFlight, SECOND) };
    assert_eq!(at(at_it), Step::Use);
    assert_eq!(at(ChainSeen { access: ahead, ..begun(ChainState::Unknown, SECOND) }), Step::Use);
    assert_eq!(at(ChainSeen { access: ahead, ..begun(ChainState::Unknown, LATE) }), Step::UseAndRefresh);
    assert_eq!(at(ChainSeen { access: ahead, state: ChainState::ReauthNeeded, ..idle() }), Step::Use);
}

#[test]
fn other_settings_start_the_chain_anew_in_every_state() {
    // Contract 7.5, any of these changed; recovery.
    for state in ChainState::ALL {
        let seen = ChainSeen { is_same_seed: false, access: access(61, 1), ..begun(state, SECOND) };
        assert_eq!(at(seen), Step::StartAnew, "{state:?}");
    }
    let held = ChainSeen { is_same_seed: false, lease_left: SECOND, ..begun(ChainState::InFlight, SECOND) };
    assert_eq!(at(held), Step::Await(SECOND), "it may be the same token");
}

#[test]
fn an_idle_chain_is_presented_unless_it_backs_off() {
    assert_eq!(at(idle()), Step::Present);
    assert_eq!(at(ChainSeen { retry_in: SECOND, ..idle() }), Step::BackOff(SECOND));
}

#[test]
fn whoever_presents_is_waited_for_while_its_lease_runs_dead_or_not() {
    // O1; contract 7.5: only the holder calls the token endpoint.
    for is_holder_dead in [false, true] {
        for never_rotates in [false, true] {
            let seen = begun(ChainState::InFlight, LATE);
            let seen = ChainSeen { lease_left: 7 * SECOND, is_holder_dead, never_rotates, ..seen };
            assert_eq!(at(seen), Step::Await(7 * SECOND));
        }
    }
}

#[test]
fn an_outcome_that_nobody_knows_waits_for_the_end_of_its_request() {
    // Architecture.md §10: after the lease ended and (holder declared dead, or 120 s passed).
    let left = Step::BackOff(119 * SECOND);
    for state in [ChainState::InFlight, ChainState::Unknown] {
        assert_eq!(at(begun(state, SECOND)), left, "{state:?}");
    }
    assert_eq!(at(begun(ChainState::InFlight, LATE)), Step::CallUnknown);
    assert_eq!(at(begun(ChainState::Unknown, LATE)), Step::Present);
    let dead = |state| ChainSeen { is_holder_dead: true, ..begun(state, SECOND) };
    assert_eq!(at(dead(ChainState::InFlight)), Step::CallUnknown);
    assert_eq!(at(dead(ChainState::Unknown)), Step::Present);
    // A moment for a holder that has the successor and could not store it.
    let called = ChainSeen { retry_in: SECOND, ..begun(ChainState::Unknown, LATE) };
    assert_eq!(at(called), Step::BackOff(SECOND));
}

#[test]
fn a_token_is_probed_once_and_not_at_all_where_that_is_not_wanted() {
    let twice = ChainSeen { presented: 2, ..begun(ChainState::Unknown, LATE) };
    assert_eq!(at(twice), Step::GiveUp);
    let reauth = ChainPolicy { unknown_outcome: UnknownOutcome::Reauth, ..policy() };
    assert_eq!(next(&begun(ChainState::Unknown, LATE), &reauth), Step::GiveUp);
    assert_eq!(next(&begun(ChainState::Unknown, SECOND), &reauth), Step::BackOff(119 * SECOND));
}

#[test]
fn within_the_grace_of_its_provider_a_token_is_presented_once_more_at_once() {
    // Durability.md 3.3: leeway known and age < leeway - 5 s.
    let leeway = ChainPolicy { leeway: 30 * SECOND, ..policy() };
    for state in [ChainState::InFlight, ChainState::Unknown] {
        assert_eq!(next(&begun(state, 24 * SECOND), &leeway), Step::Present, "{state:?}");
        assert_eq!(next(&begun(state, 25 * SECOND), &leeway), Step::BackOff(95 * SECOND), "{state:?}");
        let twice = ChainSeen { presented: 2, ..begun(state, SECOND) };
        assert_eq!(next(&twice, &leeway), Step::BackOff(119 * SECOND), "{state:?}");
    }
}

#[test]
fn a_provider_that_never_rotates_is_asked_again_as_soon_as_the_lease_has_ended() {
    // Architecture.md §10: if it does not, re-present at lease end.
    for state in [ChainState::InFlight, ChainState::Unknown] {
        let seen = ChainSeen { never_rotates: true, presented: 5, ..begun(state, SECOND) };
        assert_eq!(at(seen), Step::Present, "{state:?}");
        assert_eq!(at(ChainSeen { retry_in: SECOND, ..seen }), Step::BackOff(SECOND), "{state:?}");
    }
}

#[test]
fn a_chain_at_its_end_asks_for_a_person() {
    // Contract 7.5, invalid_grant.
    assert_eq!(at(ChainSeen { state: ChainState::ReauthNeeded, ..idle() }), Step::AskPerson);
}
