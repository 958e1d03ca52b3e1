//! Tells sinks about tasks, each event at least once and in order (contract 6.9, durability.md 1.9; invariant N1).
//!
//! ```text
//!          claimed            reserved             sent                         settled under the claim
//!   due ─────────────► looked at ───────► launching ─────► answered, lost ────────────────────────────► told: gone
//!    ▲                     │                  ▲                   │                                     due later
//!    │                     │ launching        │ same key,         │ died                                dead letter
//!    │                     └──────────────────┘ same words        ▼
//!    └────────────────────────────────────────────────── claim expires: due
//! ```
//!
//! [`group`] is the loop: one for each sink, with slots of its own, so that a receiver that hangs keeps nobody waiting
//! but itself. [`pass`] is one look at the store. [`launch_one`] and [`look_up_one`] ask the sink. What is next and what
//! becomes of an answer, `core/notification` decides; the store applies it to the row as it is then.
//!
//! A launch is reserved before anything is sent. Whatever breaks after that leaves the reservation, so that the next
//! attempt, by whichever replica, says the same words under the same key, and a receiver that has seen the key answers
//! with the run it has.
//!
//! Failures: an attempt is bounded by half its claim. A store that fails is asked again, less and less often; a sink
//! that panics counts as one whose answer was lost. A replica that is not trusted ([`crate::membership`]) neither
//! claims, nor sends, nor settles. The first pass after a start is the recovery.

mod desk;
mod group;
mod launch_one;
mod look_up_one;
mod message;
mod metrics;
mod pass;
mod work;

pub(crate) use desk::{Desk, DeskParts};
pub(crate) use group::Group;
pub(crate) use message::Notifier;

#[cfg(test)]
mod tests;
