//! What becomes of a chain when a presentation has come out.
//!
//! Only `invalid_grant` ends it. An error that was answered completely keeps it and backs off; only what nobody can
//! know, a lost answer, leaves it unknown (architecture.md §10, credentials).

use std::time::Duration;

use crate::config::OAuthGrant;
use crate::oauth::refusal::ends_chain;

/// The first wait after a refusal.
const BASE: Duration = Duration::from_secs(1);

/// The longest wait: a provider that is back is found within half a minute.
const CAP: Duration = Duration::from_secs(30);

/// How a presentation came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presented<'a> {
    /// A token came, or at least the successor of the refresh token.
    Given,
    /// An answer of success that holds nothing usable.
    Unusable,
    /// Not one byte of the token left this process.
    NotSent,
    /// A complete error answer; its OAuth code, if it gave one.
    Refused(Option<&'a str>),
    /// It was sent, and the answer is lost.
    Lost,
}

/// What to store of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The next generation, fenced by the one presented alone (R2).
    Commit,
    /// The same generation: the token is not spent. Not presented again before this has passed.
    Keep(Duration),
    /// The same generation: the token may be spent.
    Unknown,
    /// The token is of no use any more.
    End,
}

/// What a presentation of the refresh grant leads to, after `failures` others in a row. `is_fallback` tells that the
/// configured token was presented in place of a stored one that could not be decrypted: its refusal says nothing about
/// the stored one, which whoever holds the right key goes on with (R5).
pub fn settle(presented: Presented<'_>, failures: u32, is_fallback: bool) -> Settlement {
    match presented {
        Presented::Given => Settlement::Commit,
        Presented::Lost => Settlement::Unknown,
        Presented::Refused(code) if ends_chain(OAuthGrant::RefreshToken, code) && !is_fallback => Settlement::End,
        Presented::NotSent | Presented::Refused(_) | Presented::Unusable => {
            Settlement::Keep(BASE.saturating_mul(1 << failures.min(10)).min(CAP))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_leads_where_the_table_says() {
        // Durability.md 3.3 with architecture.md §10: 5xx keeps the chain.
        let second = Settlement::Keep(Duration::from_secs(1));
        for (presented, settlement) in [
            (Presented::Given, Settlement::Commit),
            (Presented::Lost, Settlement::Unknown),
            (Presented::NotSent, second),
            (Presented::Unusable, second),
            (Presented::Refused(None), second),
            (Presented::Refused(Some("invalid_client")), second),
            (Presented::Refused(Some("server_error")), second),
            (Presented::Refused(Some("invalid_grant")), Settlement::End),
        ] {
            assert_eq!(settle(presented, 0, false), settlement, "{presented:?}");
        }
    }

    #[test]
    fn a_refused_fallback_leaves_the_stored_chain_to_those_who_can_read_it() {
        // R5; contract 7.5, invalid_grant after falling back to the seed.
        assert!(matches!(settle(Presented::Refused(Some("invalid_grant")), 0, true), Settlement::Keep(_)));
        assert_eq!(settle(Presented::Given, 0, true), Settlement::Commit);
    }

    #[test]
    fn refusals_back_off_to_half_a_minute() {
        let waits = [0, 1, 2, 4, 5, 6, u32::MAX].map(|failures| settle(Presented::Refused(None), failures, false));
        assert_eq!(waits, [1, 2, 4, 16, 30, 30, 30].map(|s| Settlement::Keep(Duration::from_secs(s))));
    }
}
