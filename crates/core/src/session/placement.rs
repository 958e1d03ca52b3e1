//! Which replica opens a session that nobody holds (durability.md 2.2, placement).
//!
//! Whoever is asked first, as long as it has room: a thread's calls tend to come by one way. Beyond that the least
//! loaded one. Replicas that disagree do no harm: the row of the session decides.

use sha2::{Digest as _, Sha256};

use super::key::SessionRow;
use crate::ids::BootId;

/// Up to which part of its sessions a replica takes every session that it is asked for first.
const FIRST_TOUCH: f32 = 0.8;

/// Loads that differ by no more are alike: they are some seconds old.
const ALIKE: f32 = 0.05;

/// A replica that could open it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which.
    pub boot: BootId,
    /// The part of its sessions that is in use, 0 to 1.
    pub load: f32,
}

/// Who opens `session` if nobody holds it, asked of the replica that is `ours`; `others` = those that take part besides.
pub fn place<'c>(ours: &'c Candidate, others: &'c [Candidate], session: &SessionRow) -> &'c BootId {
    if ours.load < FIRST_TOUCH {
        return &ours.boot;
    }
    let all = || std::iter::once(ours).chain(others);
    let least = all().map(|candidate| candidate.load).fold(f32::INFINITY, f32::min);
    let alike = all().filter(|candidate| candidate.load <= least + ALIKE);
    alike.max_by_key(|candidate| weight(&candidate.boot, session)).map_or(&ours.boot, |candidate| &candidate.boot)
}

/// Spreads what is alike, the same way on every replica.
fn weight(boot: &BootId, session: &SessionRow) -> [u8; 32] {
    Sha256::new().chain_update(boot.as_str()).chain_update(session.0).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(boot: &str, load: f32) -> Candidate {
        Candidate { boot: BootId::from(boot), load }
    }

    #[test]
    fn whoever_is_asked_opens_it_as_long_as_it_has_room() {
        let others = [candidate("b", 0.0), candidate("c", 0.1)];
        assert_eq!(place(&candidate("a", 0.79), &others, &SessionRow([0; 32])).as_str(), "a");
        assert_eq!(place(&candidate("a", 1.0), &[], &SessionRow([0; 32])).as_str(), "a");
    }

    #[test]
    fn a_full_one_leaves_it_to_the_least_loaded_and_those_alike_share() {
        let ours = candidate("a", 0.9);
        let others = [candidate("b", 0.3), candidate("c", 0.2), candidate("d", 0.22)];
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..64 {
            seen.insert(place(&ours, &others, &SessionRow([n; 32])).as_str().to_owned());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["c", "d"]);
    }
}
