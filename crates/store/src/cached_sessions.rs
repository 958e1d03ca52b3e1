//! Sessions of clients, held in this process for a moment.
//!
//! For a store that no other replica changes: a client asks with every request, and asking the embedded database costs
//! more than many a request. What goes by this process is seen at once; what another process does to the same file,
//! and a change that nobody waited for to its end, after [`HELD`] at the latest. A store that replicas share is asked each
//! time, so that the end of a session is its end everywhere.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::store::{ClientSession, ClientSessions, StoreError};
use lru::LruCache;
use tokio::time::Instant;

/// How long a session is believed without asking. A use in between is not noted, so it is short beside the time after
/// which an idle session ends.
const HELD: Duration = Duration::from_secs(1);

/// Sessions held at once; the one that was not asked for longest makes room.
const MOST: usize = 1_024;

/// Sessions of clients in a store of this process alone.
pub struct CachedClientSessions {
    store: Arc<dyn ClientSessions>,
    held: Mutex<Held>,
}

struct Held {
    sessions: LruCache<String, (ClientSession, Instant)>,
    /// Changes so far: what was asked for before one may be older than it.
    changes: u64,
}

impl Held {
    /// What is believed no longer takes no room.
    fn forget_old(&mut self) {
        while self.sessions.peek_lru().is_some_and(|(_, (_, asked))| asked.elapsed() >= HELD) {
            self.sessions.pop_lru();
        }
    }
}

/// A change under way. However it ends, what was held of the session is held no longer.
struct Changing<'c> {
    cache: &'c CachedClientSessions,
    id: String,
}

impl CachedClientSessions {
    /// In front of `store`; holds nothing yet.
    pub fn new(store: Arc<dyn ClientSessions>) -> Self {
        let sessions = LruCache::new(NonZeroUsize::new(MOST).unwrap_or(NonZeroUsize::MIN));
        Self { store, held: Mutex::new(Held { sessions, changes: 0 }) }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, if it may be believed still; else the number of changes so far.
    fn known(&self, id: &str, idle: Duration) -> Result<ClientSession, u64> {
        let mut held = self.held();
        let changes = held.changes;
        let known = held.sessions.get(id).filter(|(_, asked)| asked.elapsed() < HELD.min(idle / 4));
        known.map(|(session, _)| session.clone()).ok_or(changes)
    }

    /// Does `change` to the session of this name.
    fn change<'c>(
        &'c self,
        id: String,
        change: BoxFuture<'c, Result<bool, StoreError>>,
    ) -> BoxFuture<'c, Result<bool, StoreError>> {
        let changing = Changing { cache: self, id };
        Box::pin(async move {
            let done = change.await;
            drop(changing);
            done
        })
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let mut held = self.cache.held();
        held.changes += 1;
        held.sessions.pop(&self.id);
    }
}

impl ClientSessions for CachedClientSessions {
    fn begin_client_session(&self, session: ClientSession, most: u32) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.store.begin_client_session(session, most)
    }

    fn use_client_session(
        &self,
        id: String,
        idle: Duration,
    ) -> BoxFuture<'_, Result<Option<ClientSession>, StoreError>> {
        let changes = match self.known(&id, idle) {
            Ok(session) => return Box::pin(std::future::ready(Ok(Some(session)))),
            Err(changes) => changes,
        };
        Box::pin(async move {
            let asked = Instant::now();
            let found = self.store.use_client_session(id, idle).await?;
            if let Some(session) = &found {
                let mut held = self.held();
                held.forget_old();
                if held.changes == changes {
                    held.sessions.put(session.id.clone(), (session.clone(), asked));
                }
            }
            Ok(found)
        })
    }

    fn agree_with_client(
        &self,
        id: String,
        version: String,
        capabilities: String,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.change(id.clone(), self.store.agree_with_client(id, version, capabilities))
    }

    fn set_client_log_level(&self, id: String, level: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.change(id.clone(), self.store.set_client_log_level(id, level))
    }

    fn subscribe_client(
        &self,
        id: String,
        uri: String,
        is_wanted: bool,
        most_chars: u32,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.change(id.clone(), self.store.subscribe_client(id, uri, is_wanted, most_chars))
    }

    fn end_client_session(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.change(id.clone(), self.store.end_client_session(id))
    }

    /// None of them is held: one that is was used not long ago beside `idle`.
    fn forget_client_sessions(&self, idle: Duration, limit: u32) -> BoxFuture<'_, Result<u32, StoreError>> {
        self.store.forget_client_sessions(idle, limit)
    }
}
