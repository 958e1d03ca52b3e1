//! Requests of legacy clients that run here, so that their clients can cancel them by name (mcp.md §8).
//!
//! Names are the client's, so they mean something only within its session (invariant P1). A request leaves when it
//! ends; there are no more than the runtime lets run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Those of one session, by their ids (JSON text).
type OfSession = HashMap<Box<str>, CancellationToken>;

/// The requests that run.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Shared>);

#[derive(Default)]
struct Shared {
    sessions: Mutex<HashMap<String, OfSession>>,
    /// Told when one leaves.
    left: Notify,
}

/// One of them, until it is dropped.
pub(crate) struct Entered {
    of: InFlight,
    session: String,
    id: Box<str>,
    pub(crate) cancelled: CancellationToken,
}

impl InFlight {
    /// Notes that the request of this id (JSON text) runs in `session`.
    pub(crate) fn enter(&self, session: &str, id: &str) -> Entered {
        let cancelled = CancellationToken::new();
        self.lock().entry(session.to_owned()).or_default().insert(id.into(), cancelled.clone());
        Entered { of: self.clone(), session: session.to_owned(), id: id.into(), cancelled }
    }

    /// How many of `session` run here.
    pub(crate) fn count(&self, session: &str) -> usize {
        self.lock().get(session).map_or(0, HashMap::len)
    }

    /// Ends when none of `session` runs here any more.
    pub(crate) async fn none_left(&self, session: &str) {
        loop {
            let left = self.0.left.notified();
            if !self.lock().contains_key(session) {
                return;
            }
            left.await;
        }
    }

    /// Cancels that request, if it runs here; whether it does.
    pub(crate) fn cancel(&self, session: &str, id: &str) -> bool {
        let sessions = self.lock();
        let request = sessions.get(session).and_then(|requests| requests.get(id));
        request.is_some_and(|request| {
            request.cancel();
            true
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, OfSession>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut sessions = self.of.lock();
        if let Some(requests) = sessions.get_mut(&self.session) {
            requests.remove(&self.id);
            if requests.is_empty() {
                sessions.remove(&self.session);
            }
        }
        drop(sessions);
        self.of.0.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_cancelled_within_its_session_only_and_forgotten_at_its_end() {
        // Invariant P1.
        let requests = InFlight::default();
        let request = requests.enter("a", "1");
        assert!(!requests.cancel("b", "1") && !requests.cancel("a", "\"1\""));
        assert!(!request.cancelled.is_cancelled());
        assert!(requests.cancel("a", "1"));
        assert!(request.cancelled.is_cancelled());
        let other = requests.enter("a", "2");
        assert_eq!((requests.count("a"), requests.count("b")), (2, 0));
        drop(request);
        assert_eq!(requests.count("a"), 1);
        drop(other);
        assert!(requests.lock().is_empty());
    }

    #[tokio::test]
    async fn the_last_one_that_leaves_is_waited_for() {
        let requests = InFlight::default();
        let (request, other) = (requests.enter("a", "1"), requests.enter("b", "1"));
        let mut none_left = std::pin::pin!(requests.none_left("a"));
        assert!(futures::poll!(none_left.as_mut()).is_pending());
        drop(other);
        assert!(futures::poll!(none_left.as_mut()).is_pending());
        drop(request);
        assert!(futures::poll!(none_left.as_mut()).is_ready());
    }
}
