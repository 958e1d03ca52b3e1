//! The schedule: when harm is done and load is sent. Whatever is waited for otherwise is a condition.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval, interval_at};

/// Beats at the same distance, for as long as the schedule lasts.
pub(crate) struct Beats {
    ticks: Interval,
    ends: Instant,
}

impl Beats {
    /// The first beat comes at once.
    pub(crate) fn every(period: Duration, lasts: Duration) -> Self {
        let mut ticks = interval(period.max(Duration::from_micros(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, ends: Instant::now() + lasts }
    }

    /// Resolves with the next beat; `false` = the schedule is over.
    pub(crate) async fn next(&mut self) -> bool {
        self.ticks.tick().await;
        Instant::now() < self.ends
    }
}

/// Resolves at a moment of the schedule.
pub(crate) async fn moment(at: Instant) {
    interval_at(at, Duration::from_secs(1)).tick().await;
}
