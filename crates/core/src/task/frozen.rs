//! Which configuration of its server a task was accepted under (contract 6.12; architecture.md §10, task server).

use sha2::{Digest as _, Sha256};

/// Tells two frozen configurations of servers apart. Holds nothing of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotFingerprint(pub i64);

impl SnapshotFingerprint {
    /// Of a configuration in one canonical text.
    pub fn of(canonical: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(canonical).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Self(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    /// Those whose tasks a replica that has `ours` leaves to others: the ones that only other `live` replicas have.
    /// Tasks of a configuration that nobody has are everybody's, so that none is lost (invariant T4).
    pub fn left_to_others(ours: &[Self], live: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut others: Vec<Self> = live.into_iter().filter(|fingerprint| !ours.contains(fingerprint)).collect();
        others.sort_unstable();
        others.dedup();
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_a_configuration_are_left_to_those_who_have_it() {
        // architecture.md §10, changed task server; invariant T4.
        let [a, b, c] = ["a", "b", "c"].map(SnapshotFingerprint::of);
        assert_eq!(SnapshotFingerprint::left_to_others(&[a], [a, c, c]), [c]);
        assert_eq!(SnapshotFingerprint::left_to_others(&[a, b], [a, b]), []);
        assert_ne!(a, b);
        assert_eq!(a, SnapshotFingerprint::of("a"));
    }
}
