//! Tells whoever watches about the events of tasks, each until it is acknowledged (contract 6.9; invariant N1).
//!
//! ```text
//!   notifier ──launch, look up──► hub ──► seat: queued ──► sent ──► answered ──► the notifier settles
//!                                  │        │                │
//!                                  │        └─ gone: given back, nothing was sent
//!                                  └─ nobody has room: nothing is claimed at all
//! ```
//!
//! [`hub`] is the sink: it says how much room the watchers have, so that nothing is claimed for nobody, and gives each
//! event to one of them. [`seat`] is one watcher's side. [`answer`] is what an acknowledgement means. Everything that
//! must outlive a stream is a row of the store: events that nobody takes wait there, and what was sent and is not
//! acknowledged when a stream ends is told again under the same key, to whoever watches then, at whichever replica.
//!
//! Bounds (invariant B1): watchers in number, what each has unacknowledged by its window, acknowledgements that came too
//! late by a number. A watcher that is slow fills its own window and keeps nobody else waiting.

mod answer;
mod hub;
mod seat;

pub use answer::WatchAnswer;
pub(crate) use hub::Watchers;
pub use seat::{TaskAnswers, TaskWatch, WatchedEvent};

#[cfg(test)]
mod tests;
