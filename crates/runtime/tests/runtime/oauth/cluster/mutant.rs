//! What a chain of tokens is like without one of its fences.

/// A fence taken down, to see that the suite notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::oauth) enum Mutant {
    /// What came is stored only while the lease runs.
    CommitFencedByLease,
    /// A presentation begins without a stored intent.
    NoIntent,
    /// Whoever fails clears the chain.
    LoserClears,
    /// Nobody looks at the lease before the first byte.
    NoTrustCheck,
}
