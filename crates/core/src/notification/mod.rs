//! How an event of a task reaches whoever must hear of it: launched under one key, looked after until its run has
//! succeeded, tried again, given up, taken up again (contract 6.9, durability.md 1.9; invariant N1).
//!
//! Owns one row for each task and sink. What a sink is and how it is spoken to is an adapter's; so is the text an agent
//! reads.

mod delivery;
mod key;
mod phase;

pub use delivery::{After, Delivery, Happened, MAX_FAILURES, Step};
pub use key::{Key, Sink};
pub use phase::{Notified, Phase};
