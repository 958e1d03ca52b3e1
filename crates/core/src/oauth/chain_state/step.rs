//! What whoever needs a token does next, from what the row says.

use std::time::Duration;

use super::ChainState;
use crate::config::UnknownOutcome;
use crate::oauth::is_expiring;

/// A presentation within a provider's grace must reach it before that ends, on clocks that differ.
const LEEWAY_MARGIN: Duration = Duration::from_secs(5);

/// How often one token may be presented while it is not known what became of it: the first time, and the probe.
const MOST_PRESENTED: u32 = 2;

/// What a row says at this moment. Durations that are over are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSeen {
    /// Whether it was started from the settings of whoever looks.
    pub is_same_seed: bool,
    /// Where it stands.
    pub state: ChainState,
    /// How long the lease of whoever presents still runs.
    pub lease_left: Duration,
    /// Whether the life of that replica is known to have ended.
    pub is_holder_dead: bool,
    /// How long ago the last presentation began.
    pub since_begun: Duration,
    /// Presentations of this token of which nobody knows what became.
    pub presented: u32,
    /// Tokens came, and never a successor of the refresh token with one.
    pub never_rotates: bool,
    /// For how long nobody may present it.
    pub retry_in: Duration,
    /// The access token, if whoever looks can read it.
    pub access: Option<AccessSeen>,
}

/// What is known of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSeen {
    /// How long it lives.
    pub left: Duration,
    /// How long until it is refreshed in the background.
    pub until_ahead: Duration,
    /// Whether it was asked for as whoever looks would.
    pub is_same_kind: bool,
    /// Whether the server rejected it.
    pub is_rejected: bool,
}

/// By which rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPolicy {
    /// A token this close to its end counts as expiring.
    pub skew: Duration,
    /// How long the provider takes a token again that it has just rotated; zero = it does not.
    pub leeway: Duration,
    /// What is done when nobody knows whether a token was spent.
    pub unknown_outcome: UnknownOutcome,
    /// After this a request is over, whoever made it (contract 7.5, long request).
    pub abandoned_after: Duration,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Use the stored access token.
    Use,
    /// Use it, and refresh in the background.
    UseAndRefresh,
    /// Start the chain from the configured token.
    StartAnew,
    /// Store the intent and present the token; the store compares what was seen.
    Present,
    /// Somebody presents it: look again when told, and after this at the latest.
    Await(Duration),
    /// Nothing can be done before this has passed.
    BackOff(Duration),
    /// Store that nobody knows what became of the presentation.
    CallUnknown,
    /// Store that a person must act: the token may be spent, and is not presented again.
    GiveUp,
    /// A person must act.
    AskPerson,
}

/// What to do about a chain.
pub fn next(seen: &ChainSeen, policy: &ChainPolicy) -> Step {
    if !seen.is_same_seed {
        // The token under way may be the very one that the new start presents.
        let is_held = seen.state == ChainState::InFlight && !seen.lease_left.is_zero();
        return if is_held { Step::Await(seen.lease_left) } else { Step::StartAnew };
    }
    let usable = seen
        .access
        .filter(|access| access.is_same_kind && !access.is_rejected && !is_expiring(access.left, policy.skew));
    let wanted = wanted(seen, policy);
    match usable {
        None => wanted,
        // A peer is at it, or nothing can be done yet: what is there serves.
        Some(access) if access.until_ahead.is_zero() => match wanted {
            Step::Present | Step::CallUnknown | Step::GiveUp => Step::UseAndRefresh,
            _ => Step::Use,
        },
        Some(_) => Step::Use,
    }
}

/// What to do where another token is wanted; never answers that the stored one is used.
pub(super) fn wanted(seen: &ChainSeen, policy: &ChainPolicy) -> Step {
    match seen.state {
        ChainState::ReauthNeeded => Step::AskPerson,
        ChainState::Idle if seen.retry_in.is_zero() => Step::Present,
        ChainState::Idle => Step::BackOff(seen.retry_in),
        // Even a holder that is dead may have a request on its way (the provider works on it): its lease ends first.
        ChainState::InFlight if !seen.lease_left.is_zero() => Step::Await(seen.lease_left),
        ChainState::InFlight | ChainState::Unknown => unsettled(seen, policy),
    }
}

/// Nobody is at work any more, and nobody knows whether the token is spent.
fn unsettled(seen: &ChainSeen, policy: &ChainPolicy) -> Step {
    if !seen.retry_in.is_zero() {
        return Step::BackOff(seen.retry_in);
    }
    let in_grace = seen.since_begun + LEEWAY_MARGIN < policy.leeway;
    // A provider that never rotates spends nothing; one in its grace takes the token again.
    if seen.never_rotates || (in_grace && seen.presented < MOST_PRESENTED) {
        return Step::Present;
    }
    let is_over = seen.is_holder_dead || seen.since_begun >= policy.abandoned_after;
    match seen.state {
        _ if !is_over => Step::BackOff(policy.abandoned_after.saturating_sub(seen.since_begun)),
        // First on record: a holder that has the successor and could not store it has a moment to do so.
        ChainState::InFlight => Step::CallUnknown,
        _ if policy.unknown_outcome == UnknownOutcome::ProbeOnce && seen.presented < MOST_PRESENTED => Step::Present,
        _ => Step::GiveUp,
    }
}

#[cfg(test)]
mod tests;
