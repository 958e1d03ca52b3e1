//! The refresh token of one chain in memory: which one is presented next, and what becomes of it.
//!
//! Owns that presentations never overlap, whoever refreshes: whoever begins one holds the chain until it
//! is known how it came out. Loading and committing stand here and nowhere else. Kept in memory: a chain starts from
//! the configured token when the process starts.

use std::sync::Arc;

use caribou_core::config::{OAuth, Secret};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// One chain. Cheap to clone; all clones are the same chain.
#[derive(Clone)]
pub(super) struct MemoryChain(Arc<Mutex<Link>>);

/// Where a chain stands.
struct Link {
    /// The token to present; `None` for grants that have none.
    refresh_token: Option<Secret>,
    /// The provider said that it is of no use any more.
    ended: bool,
    /// An answer was lost since a token came: its successor may be lost with it.
    lost: bool,
}

impl MemoryChain {
    /// A chain that starts from the configured refresh token.
    pub(super) fn seeded(oauth: &OAuth) -> Self {
        let refresh_token = oauth.refresh_token.clone();
        Self(Arc::new(Mutex::new(Link { refresh_token, ended: false, lost: false })))
    }

    /// Waits for the presentation before this one to come out, if there is one, and begins the next.
    pub(super) async fn begin(&self) -> Turn {
        Turn(self.0.clone().lock_owned().await)
    }
}

/// One presentation. Dropping it leaves the chain as it was.
pub(super) struct Turn(OwnedMutexGuard<Link>);

impl Turn {
    /// The token to present.
    pub(super) fn refresh_token(&self) -> Option<Secret> {
        self.0.refresh_token.clone()
    }

    /// Whether the chain has ended: there is nothing to present.
    pub(super) fn is_ended(&self) -> bool {
        self.0.ended
    }

    /// Whether the successor may be lost.
    pub(super) fn is_lost(&self) -> bool {
        self.0.lost
    }

    /// A token came; a provider that gives no successor goes on with the one presented.
    pub(super) fn given(mut self, successor: Option<Secret>) {
        if successor.is_some() {
            self.0.refresh_token = successor;
        }
        self.0.lost = false;
    }

    /// The provider does not take the token any more.
    pub(super) fn end(mut self) {
        self.0.ended = true;
    }

    /// The answer is lost: the token may have been spent.
    pub(super) fn lost(mut self) {
        self.0.lost = true;
    }
}
