//! Requests of legacy clients that run here, so that their clients can cancel them by name (mcp.md §8).
//!
//! Names are the client's, so they mean something only within its session (invariant P1). A request leaves when it
//! ends; there are no more than the runtime lets run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

type Key = (String, Box<str>);

/// The requests that run.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<Key, CancellationToken>>>);

/// One of them, until it is dropped.
pub(crate) struct Entered {
    of: InFlight,
    key: Key,
    pub(crate) cancelled: CancellationToken,
}

impl InFlight {
    /// Notes that the request of this id (JSON text) runs in `session`.
    pub(crate) fn enter(&self, session: &str, id: &str) -> Entered {
        let key = (session.to_owned(), id.into());
        let cancelled = CancellationToken::new();
        self.lock().insert(key.clone(), cancelled.clone());
        Entered { of: self.clone(), key, cancelled }
    }

    /// Cancels that request, if it runs here; whether it does.
    pub(crate) fn cancel(&self, session: &str, id: &str) -> bool {
        let requests = self.lock();
        let request = requests.get(&(session.to_owned(), id.into()));
        request.is_some_and(|request| {
            request.cancel();
            true
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.of.lock().remove(&self.key);
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
        drop(request);
        assert!(requests.lock().is_empty());
    }
}
