//! Wrong usage that the grammar alone does not catch.

/// Ends the process as wrong usage does (2), not as a failure (1).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) &'static str);

/// The exit code of wrong usage, the same as clap's.
pub(super) const EXIT: u8 = 2;
