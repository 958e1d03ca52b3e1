//! Follows tasks to their ends: claims what is due, asks the remote, and settles what came of it (contract 6.5, 6.10;
//! durability.md 1.5 to 1.10).
//!
//! ```text
//!            claimed              attempt             settled under the claim
//!   due ─────────────► worked on ─────────► brought ─────────────────────────► due later, or ended
//!    ▲                     │  │               │  fenced: dropped, somebody else has it (C1, C2)
//!    │  no room, stopping, │  │ died, hung    ▼
//!    └── not ours: released┘  └──────────► claim expires: due, and counted as abandoned
//! ```
//!
//! [`group`] is the loop: one for each replica, with slots of its own for each duty, so that polls cannot starve
//! cancels. It claims only as much as it has free slots for, since a claim that waits its turn expires. [`pass`] is one
//! look at the store; [`work`] is one claimed task, with a file for each duty. What is decided, `core/task` decides;
//! [`outcome`] puts it into words of the store. There is no recovery: the first pass after a start is it (invariant T4).
//!
//! Which tasks: those of this replica's shards first, and whatever is overdue (soft shards; correctness rests on claims
//! alone). Wake-ups and the waits that are known make it prompt; a timer finds everything else within a second.
//!
//! Failures: an attempt is bounded by half its claim, and giving up on it leaves the session alone. A store that fails
//! is asked again, less and less often. What panics is abandoned like what crashed. A server that is away is left alone
//! for a while ([`servers`]). A replica that is not trusted ([`crate::membership`]) neither claims nor settles.

mod answer_one;
mod ask_anew;
mod batch;
mod cancel_one;
mod desk;
mod group;
mod message;
mod metrics;
mod outcome;
mod pass;
mod poll_one;
mod road;
mod servers;
mod settle;
mod work;

pub(crate) use desk::{Desk, DeskParts};
pub(crate) use group::Group;
pub(crate) use message::Poller;
pub(crate) use settle::persist;
#[cfg(test)]
pub(crate) use {message::PollerMessage, road::Road};

#[cfg(test)]
mod tests;
