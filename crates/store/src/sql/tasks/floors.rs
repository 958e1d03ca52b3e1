//! Below which time nothing is due any more, for each lane (durability.md 1.8).
//!
//! As long as somebody holds an old snapshot, rows that were claimed and moved on leave their old versions at the head of
//! the index, and each claim reads them all again. A claim that starts at its floor does not. Times are only ever set to
//! the present or later, so nothing appears below the floor but what a slow transaction commits late: for that there is
//! slack, and a claim from the beginning every few seconds. So a row is found late at worst, never lost (invariant T4).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How far below the last claim the floor lies: longer than a statement of ours may take.
const SLACK_US: i64 = 5_000_000;

/// How often a claim starts from the beginning.
const WHOLE_EVERY: Duration = Duration::from_secs(10);

/// The floors of this replica. Bounded by the number of lanes.
#[derive(Debug, Default)]
pub(in crate::sql) struct Floors(Mutex<HashMap<i16, Floor>>);

#[derive(Debug)]
struct Floor {
    us: i64,
    whole_at: Instant,
}

impl Floors {
    /// From where a claim in this lane starts, in microseconds of the Unix epoch.
    pub(super) fn of(&self, lane: i16, now: Instant) -> i64 {
        let mut floors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let floor = floors.entry(lane).or_insert(Floor { us: 0, whole_at: now });
        if now.duration_since(floor.whole_at) >= WHOLE_EVERY {
            *floor = Floor { us: 0, whole_at: now };
        }
        floor.us
    }

    /// A claim has found a row that had been due since `us`, and none before it.
    pub(super) fn found(&self, lane: i16, us: i64) {
        let mut floors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(floor) = floors.get_mut(&lane) {
            floor.us = us.saturating_sub(SLACK_US).max(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_starts_below_the_last_one_and_from_the_beginning_now_and_then() {
        // Durability.md 1.8.
        let (floors, start) = (Floors::default(), Instant::now());
        assert_eq!(floors.of(1, start), 0);
        floors.found(1, 60_000_000);
        assert_eq!(floors.of(1, start), 55_000_000);
        assert_eq!(floors.of(2, start), 0, "each lane has its own");
        assert_eq!(floors.of(1, start + WHOLE_EVERY), 0);
        floors.found(1, 1);
        assert_eq!(floors.of(1, start + WHOLE_EVERY), 0);
    }
}
