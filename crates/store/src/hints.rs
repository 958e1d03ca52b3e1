//! Hints within this process: heard by everybody who listens, dropped when nobody does (durability.md 1.7).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use caribou_ports::BoxFuture;
use caribou_ports::store::{Listening, StoreError, Wake};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Repeats within this while are one hint: NOTIFY is dear, and a poller woken twice finds nothing the second time.
const AT_MOST_EVERY: Duration = Duration::from_millis(50);

/// Hints that wait for a slow listener; beyond it everything may be due.
const QUEUE: usize = 64;

/// The hints of one store.
#[derive(Debug)]
pub(crate) struct Hints {
    told: broadcast::Sender<Wake>,
    /// Bounded by the number of kinds.
    last: Mutex<HashMap<Wake, Instant>>,
}

impl Default for Hints {
    fn default() -> Self {
        Self { told: broadcast::Sender::new(QUEUE), last: Mutex::default() }
    }
}

impl Hints {
    /// Whether this hint is to be told, or was told a moment ago. That of a chain always is: a repeat is another chain's,
    /// and its waiters look at their own row alone.
    pub(crate) fn is_news(&self, wake: Wake, now: Instant) -> bool {
        if wake == Wake::Chain {
            return true;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_repeat = last.get(&wake).is_some_and(|last| now.duration_since(*last) < AT_MOST_EVERY);
        if !is_repeat {
            last.insert(wake, now);
        }
        !is_repeat
    }

    /// Tells whoever listens in this process.
    pub(crate) fn tell(&self, wake: Wake) {
        // Nobody listens: the timers find it.
        let _ = self.told.send(wake);
    }

    /// Begins to listen.
    pub(crate) fn listen(&self) -> Box<dyn Listening> {
        Box::new(InProcess(self.told.subscribe()))
    }
}

struct InProcess(broadcast::Receiver<Wake>);

impl Listening for InProcess {
    fn next(&mut self) -> BoxFuture<'_, Result<Wake, StoreError>> {
        Box::pin(async move {
            match self.0.recv().await {
                Ok(wake) => Ok(wake),
                Err(RecvError::Lagged(_)) => Ok(Wake::Everything),
                Err(RecvError::Closed) => Err(StoreError::Unavailable("the store is closed".to_owned())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_within_a_short_while_are_one_hint() {
        // Durability.md 1.7.
        let (hints, start) = (Hints::default(), Instant::now());
        assert!(hints.is_news(Wake::Delivery, start));
        assert!(!hints.is_news(Wake::Delivery, start + AT_MOST_EVERY / 2));
        assert!(hints.is_news(Wake::Everything, start), "each kind on its own");
        assert!(hints.is_news(Wake::Chain, start) && hints.is_news(Wake::Chain, start), "another chain's");
        assert!(hints.is_news(Wake::Delivery, start + AT_MOST_EVERY));
    }

    #[tokio::test]
    async fn a_slow_listener_hears_that_everything_may_be_due() {
        // Invariant B1.
        let hints = Hints::default();
        let mut listening = hints.listen();
        for _ in 0..=QUEUE {
            hints.tell(Wake::Delivery);
        }
        assert_eq!(listening.next().await, Ok(Wake::Everything));
        assert_eq!(listening.next().await, Ok(Wake::Delivery));
    }
}
