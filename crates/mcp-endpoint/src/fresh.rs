//! Resources that a legacy session was just subscribed to, watched until whoever holds its stream does, so that the server
//! is not asked, and told otherwise, and asked again (mcp.md 14.3, reference counts).
//!
//! Bounded in number and in time (invariant B1); what is not held is watched a moment later all the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::watching::Watching;

/// How long one is held: a client that opens its stream after it subscribed has opened it by then.
const HELD: Duration = Duration::from_secs(30);

/// How many are held.
const MOST: usize = 1_024;

/// A session, and a URI as it is shown.
type Key = (String, String);

/// What was just subscribed to. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Fresh(Arc<Mutex<HashMap<Key, AbortHandle>>>);

impl Fresh {
    /// Goes on watching for the session of this name.
    pub(crate) fn hold(&self, session: &str, uri: &str, watching: Watching) {
        let (held, key) = (self.clone(), (session.to_owned(), uri.to_owned()));
        let mut all = self.lock();
        if all.len() >= MOST {
            return;
        }
        let of = key.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(HELD).await;
            drop(watching);
            let mut all = held.lock();
            // Another one may have taken its place.
            if all.get(&of).is_some_and(|task| Some(task.id()) == tokio::task::try_id()) {
                all.remove(&of);
            }
        });
        if let Some(before) = all.insert(key, task.abort_handle()) {
            before.abort();
        }
    }

    /// The session does not want it any more.
    pub(crate) fn let_go(&self, session: &str, uri: &str) {
        if let Some(task) = self.lock().remove(&(session.to_owned(), uri.to_owned())) {
            task.abort();
        }
    }

    /// The session has ended.
    pub(crate) fn let_go_all(&self, session: &str) {
        self.lock().retain(|(held, _), task| {
            let is_kept = held != session;
            if !is_kept {
                task.abort();
            }
            is_kept
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
