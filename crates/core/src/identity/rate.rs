//! How often a caller may ask: so many requests a second, and so many at once after a pause.
//!
//! The generic cell rate algorithm: one instant for each caller says when its allowance is whole again. Holds no clock:
//! instants are durations since any moment that the caller of this code has chosen, and never change their origin.

use std::time::Duration;

/// A limit. Both numbers are above zero by construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// From one request to the next.
    interval: Duration,
    /// How far ahead of its interval a caller may be.
    ahead: Duration,
}

/// The state of one caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// When it is whole again.
    whole_at: Duration,
}

impl Rate {
    /// `per_second` requests a second, `burst` at once. `None` when one of them is no such number.
    pub fn new(per_second: f64, burst: u32) -> Option<Self> {
        let interval = Duration::try_from_secs_f64(per_second.recip()).ok().filter(|interval| !interval.is_zero())?;
        Some(Self { interval, ahead: interval.checked_mul(burst.checked_sub(1)?)? })
    }

    /// Takes one request out of `allowance` at `now`.
    ///
    /// # Errors
    /// There is none left; in so long there will be one. Nothing was taken.
    pub fn take(&self, allowance: &mut Allowance, now: Duration) -> Result<(), Duration> {
        let due = allowance.whole_at.max(now);
        let wait = due.saturating_sub(now).saturating_sub(self.ahead);
        if !wait.is_zero() {
            return Err(wait);
        }
        allowance.whole_at = due.saturating_add(self.interval);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_is_let_through_and_then_one_an_interval() {
        let rate = Rate::new(10.0, 3).unwrap();
        let mut allowance = Allowance::default();
        for _ in 0..3 {
            assert_eq!(rate.take(&mut allowance, ms(1_000)), Ok(()));
        }
        assert_eq!(rate.take(&mut allowance, ms(1_000)), Err(ms(100)));
        assert_eq!(rate.take(&mut allowance, ms(1_060)), Err(ms(40)), "a refusal costs nothing");
        assert_eq!(rate.take(&mut allowance, ms(1_100)), Ok(()));
        assert_eq!(rate.take(&mut allowance, ms(1_100)), Err(ms(100)));
    }

    #[test]
    fn after_a_pause_no_more_than_a_burst_is_saved_up() {
        let rate = Rate::new(10.0, 3).unwrap();
        let mut allowance = Allowance::default();
        assert_eq!(rate.take(&mut allowance, ms(0)), Ok(()));
        let passed = (0..10).take_while(|_| rate.take(&mut allowance, ms(60_000)).is_ok()).count();
        assert_eq!(passed, 3);
    }

    #[test]
    fn in_the_long_run_the_rate_holds() {
        let rate = Rate::new(50.0, 5).unwrap();
        let mut allowance = Allowance::default();
        let passed = (0..10_000).filter(|now| rate.take(&mut allowance, ms(*now)).is_ok()).count();
        assert_eq!(passed, 500 + 4);
    }

    #[test]
    fn nonsense_is_no_rate() {
        for (per_second, burst) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (f64::INFINITY, 1), (1.0, 0)] {
            assert_eq!(Rate::new(per_second, burst), None, "{per_second} {burst}");
        }
    }
}
