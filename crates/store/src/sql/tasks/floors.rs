//! Below which time nothing is due any more, for each lane (durability.md 1.8).
//!
//! As long as somebody holds an old snapshot, rows that were claimed and moved on leave their old versions at the head of
//! the index, and each claim and each look at what is next due reads them all again. One that starts at its floor does
//! not. Times are only ever set to the present or later, so nothing appears below the floor but what a slow transaction
//! commits late: for that there is slack, and a look or claim from the beginning every few seconds. So a row is found late
//! at worst, never lost (invariant T4).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How far below the last claim the floor lies: longer than a statement of ours may take.
const SLACK_US: i64 = 5_000_000;

/// How often a look or a claim starts from the beginning.
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
    /// From where a look or a claim in this lane starts, in microseconds of the Unix epoch.
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

    /// A look that started at the floor has found the first row of this lane at `first_us`, at `now_us` by the clock of
    /// the database; `None` = no row. A look that found nothing due raises the floor too: a lane that rests would be read
    /// from the beginning for ever.
    pub(super) fn seen(&self, lane: i16, first_us: Option<i64>, now_us: i64) {
        let mut floors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(floor) = floors.get_mut(&lane) {
            floor.us = floor.us.max(first_us.unwrap_or(now_us).min(now_us).saturating_sub(SLACK_US));
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

    #[test]
    fn a_look_raises_the_floor_to_the_first_row_but_never_above_the_present_or_downwards() {
        // Durability.md 1.8; invariant T4.
        let (floors, start) = (Floors::default(), Instant::now());
        let after = |first_us, now_us| {
            floors.seen(1, first_us, now_us);
            floors.of(1, start)
        };
        assert_eq!(floors.of(1, start), 0);
        assert_eq!(after(Some(3_000_000), 60_000_000), 0, "due for long");
        assert_eq!(after(Some(50_000_000), 60_000_000), 45_000_000);
        assert_eq!(after(Some(90_000_000), 60_000_000), 55_000_000, "due later: others may become due before");
        assert_eq!(after(Some(40_000_000), 60_000_000), 55_000_000);
        assert_eq!(after(None, 70_000_000), 65_000_000);
        floors.seen(2, None, 70_000_000);
        assert_eq!(floors.of(2, start), 0, "nobody has asked for it");
    }
}
