//! How an event of a task reaches whoever must hear of it: launched under one key, looked after until its run has
//! succeeded, tried again, given up, taken up again (contract 6.9, durability.md 1.9; invariant N1).
//!
//! Owns one row for each task and sink, and the text that an agent reads, which is the same whatever sink it comes by.
//! What a sink is and how it is spoken to is an adapter's.

mod agent_message;
mod audience;
mod delivery;
mod key;
mod phase;

pub use agent_message::agent_message;
pub use audience::Audience;
pub use delivery::{After, Delivery, Happened, MAX_FAILURES, Step};
pub use key::{Key, Sink};
pub use phase::{Notified, Phase};
