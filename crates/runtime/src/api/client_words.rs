//! What clients of the legacy era say to another replica than the one that waits for it: answers to its questions, and
//! cancels of requests that run there (mcp.md 14.3, legacy client). And what they are told on a stream that another replica
//! holds for them (mcp.md §3.4).
//!
//! Whoever serves clients hears what comes from others; what this replica does not wait for is passed on, once, and goes no
//! further from there. That a session is its client's was judged where the client is heard (invariant P1). A word that
//! finds nobody is lost, as one to a request that has ended is; an answer that cannot be passed on is not.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_core::session::NotTaken;
use caribou_ports::peers::{ClientSays, ClientWord, PeerError};
use futures::future::join_all;
use tokio::time::{Instant, sleep};

use crate::Runtime;

/// For how long an answer is passed on again to a replica that cannot be reached: several looks at who there is, and far
/// less than a client waits for an answer to its POST.
const PASSED_ON: Duration = Duration::from_secs(10);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

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

    /// Has a message told on a stream that the replica of this life holds for a client. Tried once, since it would be told
    /// twice if it was heard before. Whether it will be told.
    pub async fn tell_stream(&self, boot: &str, session: String, message: String) -> bool {
        let Some(peers) = self.router.homes.peers() else { return false };
        let others = self.router.homes.others();
        let Some(peer) = others.into_iter().find(|peer| peer.boot.as_str() == boot) else { return false };
        matches!(peers.tell(peer, ClientWord { session, says: ClientSays::Told(message) }).await, Ok(true))
    }

    /// Passes a word on to the replica of this life, again for a while where it cannot be reached: its client says it once,
    /// and a word that is heard twice counts once. Whether it was waited for there; nobody waits in a life that has ended.
    ///
    /// # Errors
    /// That replica cannot be reached in time.
    pub async fn tell_replica(&self, boot: &str, word: ClientWord) -> Result<bool, PeerError> {
        let Some(peers) = self.router.homes.peers() else { return Ok(false) };
        let (began, boot) = (Instant::now(), BootId::from(boot));
        loop {
            let told = match self.router.homes.others().into_iter().find(|peer| peer.boot == boot) {
                Some(peer) => peers.tell(peer, word.clone()).await,
                None if self.is_no_life(&boot, began) => Ok(false),
                None => Err(PeerError::Unreachable(format!("nobody knows yet where {boot} is"))),
            };
            match told {
                Err(PeerError::NotTaken(_)) => return Ok(false),
                Err(error) if began.elapsed() < PASSED_ON => {
                    tracing::info!(%boot, %error, "an answer of a client is passed on again");
                    sleep(PAUSE).await;
                }
                told => return told,
            }
        }
    }

    /// Whether there is no such life as far as somebody has looked since then: one may have begun after the look before.
    fn is_no_life(&self, boot: &BootId, since: Instant) -> bool {
        self.peers().is_none_or(|view| view.looked > Some(since) && !view.is_alive(boot))
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
