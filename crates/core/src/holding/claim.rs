//! The fence of a claim (durability.md 1.5; invariant C1).
//!
//! A claim is alive until its own expiry in the row it protects. Whatever its holder writes names the token, and is
//! refused when the row was claimed again, given back or has expired. A refused write changes nothing.

use crate::ids::BootId;

/// Proves in a write that the writer is still the one who claimed the row.
///
/// The sequence alone may repeat after a failover to a database that lost its last commits; the owner tells the two
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    /// Counts the claims of the row; never decreases.
    pub seq: i64,
    /// The life of the replica that holds it.
    pub owner: BootId,
}

/// What a row says of its claim at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'r> {
    /// The claims so far.
    pub seq: i64,
    /// Who holds it; `None` = nobody.
    pub owner: Option<&'r BootId>,
    /// Whether its time has come by the store's clock: as long as it is claimed, that is when the claim expires.
    pub is_due: bool,
}

impl Held<'_> {
    /// Whether a write under `token` is accepted. Due and expired are one moment, so that of two claims one after the
    /// other both never hold.
    pub fn accepts(&self, token: &Token) -> bool {
        self.seq == token.seq && self.owner == Some(&token.owner) && !self.is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_unexpired_claim_of_its_own_owner_is_accepted() {
        // Invariant C1; contract 6.5, "apply result only if".
        let (us, them) = (BootId::from("us"), BootId::from("them"));
        let token = Token { seq: 7, owner: us.clone() };
        for (seq, owner, is_due, accepted) in [
            (7, Some(&us), false, true),
            (7, Some(&us), true, false),
            (8, Some(&us), false, false),
            (6, Some(&us), false, false),
            (7, Some(&them), false, false),
            (7, None, false, false),
        ] {
            assert_eq!(Held { seq, owner, is_due }.accepts(&token), accepted, "{seq} {owner:?} {is_due}");
        }
    }
}
