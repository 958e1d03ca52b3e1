//! Where a replica meets the world: every crossing may find it standing still or gone.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

#[derive(Debug, Default)]
struct Plan {
    crossings: usize,
    crash_at: Option<usize>,
    pause_at: Option<(usize, Duration)>,
    crashed_at: Option<Instant>,
    still_until: Option<Instant>,
    /// From when to when it stood still.
    stills: Vec<(Instant, Instant)>,
}

impl Plan {
    fn stand_still(&mut self, length: Duration) {
        let now = Instant::now();
        self.still_until = Some(now + length);
        self.stills.push((now, now + length));
    }
}

/// The borders of one life of a replica, and which fence of it is taken down, to see that the suite notices.
#[derive(Debug)]
pub(crate) struct Borders<Mutant> {
    plan: Mutex<Plan>,
    pub(crate) mutant: Option<Mutant>,
}

impl<Mutant> Borders<Mutant> {
    pub(crate) fn with(mutant: Option<Mutant>) -> Self {
        Self { plan: Mutex::default(), mutant }
    }

    /// Goes through, when the replica moves. Never, when it has crashed.
    pub(crate) async fn cross(&self) {
        {
            let mut plan = self.plan.lock().unwrap();
            plan.crossings += 1;
            if plan.crash_at == Some(plan.crossings) {
                plan.crashed_at = Some(Instant::now());
            }
            if let Some((at, length)) = plan.pause_at
                && at == plan.crossings
            {
                plan.stand_still(length);
            }
        }
        loop {
            let still_until = {
                let plan = self.plan.lock().unwrap();
                match plan.crashed_at {
                    Some(_) => None,
                    None if plan.still_until.is_none_or(|until| until <= Instant::now()) => return,
                    None => plan.still_until,
                }
            };
            match still_until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Lets the replica stand still for so long.
    pub(crate) fn pause(&self, length: Duration) {
        self.plan.lock().unwrap().stand_still(length);
    }

    /// Ends the replica.
    pub(crate) fn crash(&self) {
        self.plan.lock().unwrap().crashed_at.get_or_insert_with(Instant::now);
    }

    pub(crate) fn has_crashed(&self) -> bool {
        self.plan.lock().unwrap().crashed_at.is_some()
    }

    /// For how long it moved since then, a store that was `away` from when to when not counted.
    pub(crate) fn moved_since(&self, since: Instant, away: &[(Instant, Instant)]) -> Duration {
        let plan = self.plan.lock().unwrap();
        let until = plan.crashed_at.unwrap_or_else(Instant::now);
        let standing = plan
            .stills
            .iter()
            .chain(away)
            .map(|(from, to)| (*to).min(until).saturating_duration_since((*from).max(since)));
        until.saturating_duration_since(since).saturating_sub(standing.sum())
    }

    /// Crashes, or stands still, at this crossing, counted from now on.
    pub(crate) fn plan(&self, crash_in: Option<usize>, pause_in: Option<(usize, Duration)>) {
        let mut plan = self.plan.lock().unwrap();
        let from = plan.crossings;
        plan.crash_at = crash_in.map(|crossings| from + crossings);
        plan.pause_at = pause_in.map(|(crossings, length)| (from + crossings, length));
    }
}
