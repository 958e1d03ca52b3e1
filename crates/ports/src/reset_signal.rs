//! Tells the other replicas at once that a generation moved (durability.md §4).
//!
//! What is told is a hint: the store holds the truth, and a timer reads it whether or not anything is heard. So losing
//! what carries the hints makes a reset slower and never wrong (invariant G2), and nothing here is worth an error to a
//! caller.

use caribou_core::reset::{ResetGeneration, ResetScope};

use crate::BoxFuture;

/// Carries generations between replicas.
pub trait ResetSignal: Send + Sync + 'static {
    /// Tells everybody that `scope` stands at `generation`, after that was stored. Never takes a generation of the same
    /// count back. Whether it was told; if not, it may be tried again.
    fn tell(&self, scope: ResetScope, generation: ResetGeneration) -> BoxFuture<'_, Result<(), SignalError>>;

    /// Begins to listen. When it resolves, whatever is told from then on is heard; the first thing to hear is how
    /// `scopes` stand, as far as anybody told.
    fn listen(&self, scopes: Vec<ResetScope>) -> BoxFuture<'_, Result<Box<dyn HeardResets>, SignalError>>;
}

/// One listener.
pub trait HeardResets: Send {
    /// The next thing to hear. May be dropped and asked again. An error means that this listener is of no more use, and
    /// that something may have been told that it did not hear.
    fn next(&mut self) -> BoxFuture<'_, Result<HeardReset, SignalError>>;
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeardReset {
    /// These scopes stand at these generations.
    Generations(Vec<(ResetScope, ResetGeneration)>),
    /// Nothing, and whatever were told would be heard: what carries it has just answered.
    Alive,
    /// Something was told that was not understood, or too much at once: the store knows.
    Anything,
}

/// Why nothing can be told or heard now. Holds nothing of an address (invariant O3).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignalError(pub String);
