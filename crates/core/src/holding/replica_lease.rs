//! The one lease of each life of a replica: how long it trusts itself, and when a peer may call it dead (durability.md
//! 2.2, 2.3; invariant L1).
//!
//! Trust is counted on the replica's own clock from before its renewal was sent, and is shorter than the lease: whoever
//! is called dead has stopped acting before. A peer must itself have seen the renewals stand still for a whole lease, on
//! its own clock, and the store must say that the lease is over: no clock that jumps can kill a life that renews.

use std::time::Duration;

/// The times of one cluster. The same for all its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseProfile {
    /// How long the lease holds.
    pub lease: Duration,
    /// From one renewal to the next.
    pub renew: Duration,
    /// How much earlier than the lease trust ends.
    pub margin: Duration,
}

/// Of a life the renewals that were seen, and since when they stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The renewals.
    pub renewals: i64,
    /// For how long no other number was seen.
    pub still_for: Duration,
}

/// Why a life must not act any more, for good: whatever it held may be somebody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LifeOver {
    /// A peer called it dead, or it is not on record.
    #[error("this replica was declared dead by another one, or is not on record")]
    DeclaredDead,
    /// The store lost renewals that it had granted, so it may have lost what came of them.
    #[error("the store went back in time: it lost renewals that it had granted to this replica")]
    WentBack,
}

impl LeaseProfile {
    /// Survives restarts and failovers of the store.
    pub const SAFE: Self = Self::of_seconds(30, 5, 5);

    /// Takes over sooner, and bears shorter absences of the store.
    pub const FAST: Self = Self::of_seconds(10, 2, 2);

    const fn of_seconds(lease: u64, renew: u64, margin: u64) -> Self {
        let seconds = Duration::from_secs;
        Self { lease: seconds(lease), renew: seconds(renew), margin: seconds(margin) }
    }

    /// How long a life trusts itself, from before its renewal was sent.
    pub fn trust(&self) -> Duration {
        self.lease.saturating_sub(self.margin)
    }

    /// How long ago every role of a replica must have shown a sign of life for the lease to be renewed: a process whose
    /// work hangs is no better than one that is gone (durability.md 1.5, hung work).
    pub fn pulse(&self) -> Duration {
        self.trust() / 2
    }

    /// Whether a peer may try to call a life dead. The store decides, by its own clock and the number seen.
    pub fn may_declare_dead(&self, seen: Sighting, lease_left: Duration) -> bool {
        lease_left.is_zero() && seen.still_for >= self.lease
    }
}

/// Whether a renewal that counts `renewals` follows the one that counted `before`. More than one further is no harm:
/// the answer of a renewal may be lost.
///
/// # Errors
/// The store lost some.
pub fn renewed(before: Option<i64>, renewals: i64) -> Result<(), LifeOver> {
    if before.is_some_and(|before| renewals <= before) { Err(LifeOver::WentBack) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn trust_ends_before_anybody_may_call_the_life_dead() {
        // Invariant L1; durability.md 2.2, replica lease.
        for (profile, trust) in [(LeaseProfile::SAFE, 25), (LeaseProfile::FAST, 8)] {
            assert_eq!(profile.trust(), seconds(trust));
            assert!(profile.trust() < profile.lease && profile.renew * 3 < profile.trust() + profile.renew);
            let still = |still_for| Sighting { renewals: 7, still_for };
            assert!(!profile.may_declare_dead(still(profile.trust()), Duration::ZERO));
        }
    }

    #[test]
    fn a_life_is_called_dead_only_when_the_store_and_the_peer_agree() {
        // Durability.md 1.6, may I declare a peer dead.
        let seen = |still_for| Sighting { renewals: 1, still_for: seconds(still_for) };
        for (still_for, left, may) in [(30, 0, true), (29, 0, false), (300, 1, false), (31, 0, true)] {
            assert_eq!(LeaseProfile::SAFE.may_declare_dead(seen(still_for), seconds(left)), may, "{still_for} {left}");
        }
    }

    #[test]
    fn a_count_that_does_not_grow_ends_the_life() {
        // Durability.md 2.3: a replica that sees its renewals go backwards must stop.
        assert_eq!(renewed(None, 1), Ok(()));
        assert_eq!(renewed(Some(4), 5), Ok(()));
        assert_eq!(renewed(Some(4), 9), Ok(()));
        assert_eq!(renewed(Some(4), 4), Err(LifeOver::WentBack));
        assert_eq!(renewed(Some(4), 2), Err(LifeOver::WentBack));
    }
}
