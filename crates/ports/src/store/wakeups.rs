//! Hints that something has become due, so that nobody waits for a timer (durability.md 1.7).
//!
//! A hint may be lost, late or repeated, and is never the reason why something is done: every loop also runs on a timer
//! and reads the store. Where there is one process only, hints stay in it.

use caribou_core::task::Duty;

use super::StoreError;
use crate::BoxFuture;

/// Tells and hears hints.
pub trait Wakeups: Send + Sync + 'static {
    /// Tells everybody, this replica too. Repeats within a short while are one. Never inside a transaction, and never
    /// an error: what cannot be told is found by timers.
    fn wake(&self, wake: Wake) -> BoxFuture<'_, ()>;

    /// Begins to listen.
    fn listen(&self) -> BoxFuture<'_, Result<Box<dyn Listening>, StoreError>>;
}

/// One listener.
pub trait Listening: Send {
    /// The next hint. May be dropped and asked again. An error means that this listener is of no more use.
    fn next(&mut self) -> BoxFuture<'_, Result<Wake, StoreError>>;
}

/// What may have become due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// Work of this duty.
    Work(Duty),
    /// A delivery.
    Delivery,
    /// A chain of refresh tokens: whoever waits for a peer may find its token.
    Chain,
    /// Anything: hints were lost.
    Everything,
}
