//! The one lease of this life of this replica, and what is known of the others (durability.md 2.2; invariant L1).
//!
//! ```text
//!              renewal granted                 trust over                    renewal granted
//!   (begun) ───────────────────► trusted ─────────────────────► suspended ─────────────────────► trusted
//!                                   │   declared dead, or the      │
//!                                   └── store lost renewals ───────┴──► over (final)
//! ```
//!
//! While it is trusted, this replica may claim work and settle it. Suspended, it does neither: the store has not
//! answered for as long as anybody may rely on us. Over is for good: what this life held may be somebody else's, so the
//! process drains and ends with an error, and whoever supervises it starts another life. Work is never lost by that:
//! claims expire in the store, by the store's clock, whatever we believe.
//!
//! [`keeper`] renews, watches the others and buries those that are gone: what they held becomes due at once. It renews
//! only while every role shows signs of life ([`pulse`]), because a process whose work hangs is no better than one that
//! is gone. [`trust`] is counted by the machine's clock too, and its guard is told of it, so that the children of a
//! replica that stands still end with it; of a replica on the same machine there may be proof that it is gone, and then
//! nobody waits for its lease. [`view`] is what everybody else reads, [`life`] holds all of it together. A store that
//! fails is asked again, for ever.

mod keeper;
mod life;
mod message;
mod pulse;
mod trust;
mod view;

pub(crate) use keeper::Keeper;
pub(crate) use life::OwnLife;
pub(crate) use message::MembershipMessage;
pub(crate) use pulse::Pulse;
pub(crate) use view::Membership;
pub use view::{Peer, PeerView};

#[cfg(test)]
mod tests;
