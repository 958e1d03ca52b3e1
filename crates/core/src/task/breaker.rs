//! When a server is left alone that does not answer about its tasks (durability.md 1.10, backpressure).
//!
//! Many tasks of one server that is away would each wait in vain, and take the slots of others. After some failures in
//! a row it is not asked for a while, then by one task, and by all again once that one was answered. What is not asked
//! is put forward without counting an error. Holds no clock: instants are durations since any moment that its caller
//! has chosen.

use std::time::Duration;

/// Failures in a row that open it: as many callers have waited in vain by then as may ask at once.
const OPEN_AFTER: u32 = 4;

/// For how long it is open at first.
const FIRST: Duration = Duration::from_secs(2);

/// The longest that it is open: a server that is back is asked within half a minute.
const LONGEST: Duration = Duration::from_secs(30);

/// What is known of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    /// Set while it is left alone: until then nobody asks.
    silent_until: Option<Duration>,
}

impl Breaker {
    /// Whether the server may be asked at `now`. Of those who ask when its time has come, only the first may.
    ///
    /// # Errors
    /// For how long it is left alone.
    pub fn admit(&mut self, now: Duration) -> Result<(), Duration> {
        match self.silent_until {
            Some(until) if now < until => Err(until.saturating_sub(now)),
            Some(_) => {
                self.silent_until = Some(now.saturating_add(self.pause()));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// It answered, be it with a failure of its own.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// It did not answer at `now`.
    pub fn failed(&mut self, now: Duration) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= OPEN_AFTER {
            self.silent_until = Some(now.saturating_add(self.pause()));
        }
    }

    /// Whether nothing is known against it.
    pub fn is_idle(&self) -> bool {
        self.failures == 0
    }

    fn pause(&self) -> Duration {
        FIRST.saturating_mul(1 << self.failures.saturating_sub(OPEN_AFTER).min(10)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_server_that_does_not_answer_is_left_alone_longer_and_longer() {
        // Durability.md 1.10.
        let (mut breaker, mut now) = (Breaker::default(), Duration::ZERO);
        for _ in 1..OPEN_AFTER {
            breaker.failed(now);
            assert_eq!(breaker.admit(now), Ok(()));
        }
        for pause in [2, 4, 8, 16, 30, 30] {
            breaker.failed(now);
            assert_eq!(breaker.admit(now), Err(seconds(pause)));
            now += seconds(pause);
            assert_eq!(breaker.admit(now), Ok(()), "one finds out");
            assert!(breaker.admit(now).is_err(), "the others wait for it");
        }
        breaker.answered();
        assert_eq!((breaker.admit(now), breaker.is_idle()), (Ok(()), true));
    }
}
