//! Chains that all replicas share: where there is a store, one row says whose turn it is (contract 7.5, durability.md 3).
//!
//! ```text
//!   need a token ─► read the row ─► what core says:
//!                       ▲            use it · wait for a peer · come back later · a person must act
//!                       │            present: commit the intent ─► one request ─► commit by generation
//!                       └──────────────────── somebody was faster ◄──┘                │
//!                                               tokens that cannot be stored are kept ┘ and tried again
//! ```
//!
//! [`obtain`] goes around until there is a token or a reason; [`present`] is one presentation; [`lease`] is the right to
//! it; [`nudges`] tell peers that wait; [`unsaved`] keeps what came and could not be stored; [`underway`] lets a replica that stops wait for both.
//! Nothing here is cancelled by whoever stops waiting (R3).

mod chain;
mod lease;
mod nudges;
mod obtain;
mod present;
mod times;
mod underway;
mod unsaved;

pub(super) use chain::{Shared, SharedChain};
pub(super) use nudges::Nudges;
pub(super) use obtain::{Purpose, obtain};
pub(super) use underway::Underway;

pub use times::{ChainTimes, StoredChains};
