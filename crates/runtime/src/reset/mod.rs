//! Resets and changes that other replicas made, heard of and answered for (durability.md §4; invariants G1, G2).
//!
//! ```text
//!   message, first look after subscribing ─┐
//!   timer: 1 s, or 10 s beside a signal ───┼─► heard ──(differs from applied)──► configuration actor ─► applied
//!   another replica's nudge ───────────────┘                                        supersedes, confirms
//! ```
//!
//! The store holds the truth; whatever else tells of a generation only makes it be looked at sooner. [`seen`] holds what
//! was heard and what is applied here; [`look`] reads the store and says whether this replica is in touch with it;
//! [`feeders`] are the tasks that hear; [`teller`] tells the others. What is done about a generation that differs is the
//! configuration actor's, in the order of all other changes.
//!
//! A replica that cannot read the store serves on with what is open for `MAX_STALE`, and then refuses every look-up of a
//! tool, by which it refuses lists and new calls; calls in flight end as they would. Statuses are shown as ever.

mod feeders;
mod look;
mod seen;
mod teller;

pub(crate) use feeders::Feeders;
pub(crate) use seen::Seen;
