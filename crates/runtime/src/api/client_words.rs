//! What clients of the legacy era say to another replica than the one that waits for it: answers to its questions, and
//! cancels of requests that run there (mcp.md 14.3, legacy client). And what they are told on a stream that another replica
//! holds for them (mcp.md §3.4).
//!
//! Whoever serves clients hears what comes from others; what this replica does not wait for is passed on, once, and goes no
//! further from there. That a session is its client's was judged where the client is heard (invariant P1). A word that
//! finds nobody is lost, as one to a request that has ended is.

use std::fmt;
use std::sync::{Arc, OnceLock};

use caribou_core::ids::BootId;
use caribou_core::session::NotTaken;
use caribou_ports::peers::{ClientWord, PeerError};
use futures::future::join_all;

use crate::Runtime;

/// Takes a word of a client, or to one; whether it was waited for. Must not block.
pub type ClientEars = Arc<dyn Fn(ClientWord) -> bool + Send + Sync>;

/// Who hears clients in this replica, once somebody does. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<OnceLock<ClientEars>>);

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ears({})", if self.0.get().is_some() { "open" } else { "shut" })
    }
}

impl Runtime {
    /// What others hear of clients of this replica goes to `ears` from now on. Only the first one counts.
    pub fn hear_clients(&self, ears: ClientEars) {
        let _ = self.ears.0.set(ears);
    }

    /// Whether the replica of this life takes part, this one too.
    pub fn knows_replica(&self, boot: &str) -> bool {
        self.boot.as_str() == boot || self.router.homes.others().iter().any(|peer| peer.boot.as_str() == boot)
    }

    /// Passes a word on to the replica of this life. Whether it was waited for there.
    pub async fn tell_replica(&self, boot: &str, word: ClientWord) -> bool {
        let Some(peers) = self.router.homes.peers() else { return false };
        let others = self.router.homes.others();
        let Some(peer) = others.into_iter().find(|peer| peer.boot.as_str() == boot) else { return false };
        matches!(peers.tell(peer, word).await, Ok(true))
    }

    /// Passes a word on to all others. Whether one of them waited for it.
    pub async fn tell_replicas(&self, word: &ClientWord) -> bool {
        let Some(peers) = self.router.homes.peers() else { return false };
        let told = self.router.homes.others().into_iter().map(|peer| peers.tell(peer, word.clone()));
        join_all(told).await.iter().any(|heard| matches!(heard, Ok(true)))
    }

    /// A word that was said to another replica. Whether it is waited for here.
    ///
    /// # Errors
    /// Another life is meant.
    pub fn hear_for_peer(&self, to: &BootId, word: ClientWord) -> Result<bool, PeerError> {
        if *to != self.boot {
            return Err(NotTaken::WrongBoot.into());
        }
        Ok(self.ears.0.get().is_some_and(|ears| ears(word)))
    }
}
