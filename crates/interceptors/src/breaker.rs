//! When an interceptor that keeps failing is no longer asked.
//!
//! Owns the count of failures and the pause after too many of them; not what counts as one. While it is open every
//! call fails at once instead of waiting for the deadline. After the pause exactly one call finds out whether the
//! interceptor is back. A call that is dropped while it asks says nothing: its turn goes to the next one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caribou_core::bounds::{INTERCEPTOR_FAILURES, INTERCEPTOR_PAUSE};
use tokio::time::Instant;

/// The breaker of one interceptor.
#[derive(Debug)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug)]
enum State {
    /// Everybody may ask; so many failures in a row were seen.
    Closed { failures: u32 },
    /// Nobody may ask before then.
    Open { until: Instant },
    /// One call is finding out.
    HalfOpen,
}

/// The permission to ask once.
#[derive(Debug)]
pub(crate) struct Turn<'b> {
    breaker: &'b Breaker,
    /// Whether it is the one that finds out.
    is_probe: bool,
    is_told: bool,
}

impl Breaker {
    pub(crate) fn closed() -> Self {
        Self(Mutex::new(State::Closed { failures: 0 }))
    }

    /// A turn, or for how long nobody may ask.
    pub(crate) fn turn(&self) -> Result<Turn<'_>, Duration> {
        let mut state = self.state();
        let is_probe = match &*state {
            State::Closed { .. } => false,
            State::Open { until } => {
                let left = until.saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    return Err(left);
                }
                *state = State::HalfOpen;
                true
            }
            State::HalfOpen => return Err(INTERCEPTOR_PAUSE),
        };
        Ok(Turn { breaker: self, is_probe, is_told: false })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// The interceptor answered.
    pub(crate) fn succeeded(mut self) {
        self.is_told = true;
        let mut state = self.breaker.state();
        // One that began before the breaker opened does not close it: a later call failed.
        if self.is_probe || matches!(*state, State::Closed { .. }) {
            *state = State::Closed { failures: 0 };
        }
    }

    /// It did not.
    pub(crate) fn failed(mut self) {
        self.is_told = true;
        let mut state = self.breaker.state();
        match &mut *state {
            State::Closed { failures } if *failures + 1 < INTERCEPTOR_FAILURES => *failures += 1,
            State::Closed { .. } => *state = State::Open { until: Instant::now() + INTERCEPTOR_PAUSE },
            State::HalfOpen if self.is_probe => *state = State::Open { until: Instant::now() + INTERCEPTOR_PAUSE },
            State::HalfOpen | State::Open { .. } => {}
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_probe && !self.is_told {
            *self.breaker.state() = State::Open { until: Instant::now() };
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn fail(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.turn().expect("a turn").failed();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_five_failures_in_a_row() {
        let breaker = Breaker::closed();
        fail(&breaker, INTERCEPTOR_FAILURES - 1);
        breaker.turn().expect("still closed").succeeded();
        fail(&breaker, INTERCEPTOR_FAILURES);
        assert_eq!(breaker.turn().err(), Some(INTERCEPTOR_PAUSE));
        advance(INTERCEPTOR_PAUSE / 2).await;
        assert_eq!(breaker.turn().err(), Some(INTERCEPTOR_PAUSE / 2));
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_pause_one_call_finds_out() {
        let breaker = Breaker::closed();
        fail(&breaker, INTERCEPTOR_FAILURES);
        advance(INTERCEPTOR_PAUSE).await;
        let probe = breaker.turn().expect("the probe");
        assert!(breaker.turn().is_err());
        probe.failed();
        assert_eq!(breaker.turn().err(), Some(INTERCEPTOR_PAUSE));
        advance(INTERCEPTOR_PAUSE).await;
        breaker.turn().expect("the next probe").succeeded();
        fail(&breaker, INTERCEPTOR_FAILURES - 1);
        assert!(breaker.turn().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_dropped_leaves_its_turn_to_the_next() {
        let breaker = Breaker::closed();
        fail(&breaker, INTERCEPTOR_FAILURES);
        advance(INTERCEPTOR_PAUSE).await;
        drop(breaker.turn().expect("the probe"));
        assert!(breaker.turn().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_success_does_not_close_an_open_breaker() {
        let breaker = Breaker::closed();
        let early = breaker.turn().expect("a turn");
        fail(&breaker, INTERCEPTOR_FAILURES);
        early.succeeded();
        assert!(breaker.turn().is_err());
    }
}
