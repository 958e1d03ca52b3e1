//! What one line of the table is made of: how long each call took, and how many failed.
//!
//! Owns the samples, not the clock. A call of more than four seconds is kept as four seconds. Keeps no invariant.

use std::time::Duration;

/// Latencies and failures of some calls.
#[derive(Default)]
pub(crate) struct Samples {
    nanos: Vec<u32>,
    failed: u64,
    first_failure: Option<String>,
}

impl Samples {
    /// A call that was answered as it should be.
    pub(crate) fn answered(&mut self, took: Duration) {
        self.nanos.push(u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
    }

    /// A call that was answered otherwise.
    pub(crate) fn failed(&mut self, why: impl FnOnce() -> String) {
        self.failed += 1;
        self.first_failure.get_or_insert_with(why);
    }

    /// Adds the samples of another caller or window.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.nanos.extend(other.nanos);
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    /// Calls that succeeded.
    pub(crate) fn count(&self) -> usize {
        self.nanos.len()
    }

    /// Calls that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failed
    }

    /// How the first one failed.
    pub(crate) fn first_failure(&self) -> Option<&str> {
        self.first_failure.as_deref()
    }

    /// The latencies, in microseconds, that these shares of the calls stayed below; zero without calls.
    pub(crate) fn percentiles_us<const N: usize>(&mut self, shares: [f64; N]) -> [f64; N] {
        self.nanos.sort_unstable();
        shares.map(|share| {
            let rank = (self.nanos.len() as f64 * share) as usize;
            self.nanos.get(rank.min(self.nanos.len().saturating_sub(1))).map_or(0.0, |&nanos| f64::from(nanos) / 1e3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_over_all_callers() {
        let mut all = Samples::default();
        for half in [1..=50_u64, 51..=100] {
            let mut samples = Samples::default();
            half.for_each(|us| samples.answered(Duration::from_micros(us)));
            all.absorb(samples);
        }
        assert_eq!(all.percentiles_us([0.5, 0.99]), [51.0, 100.0]);
        assert_eq!(Samples::default().percentiles_us([0.5]), [0.0]);
    }

    #[test]
    fn the_first_failure_is_the_one_that_is_told() {
        let mut all = Samples::default();
        for why in ["first", "second"] {
            let mut samples = Samples::default();
            samples.failed(|| why.to_owned());
            all.absorb(samples);
        }
        assert_eq!((all.failures(), all.first_failure()), (2, Some("first")));
    }
}
