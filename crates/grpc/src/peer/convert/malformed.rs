//! What is wrong with a message that cannot be understood.

/// A message without something that it must have, or with a text that is not what it must be. Never repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of a replica is malformed: {0}")]
pub(in crate::peer) struct Malformed(pub(super) &'static str);
