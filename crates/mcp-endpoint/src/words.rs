//! What legacy clients say beside requests: answers to our questions, and cancels (mcp.md §8, 14.3).
//!
//! And what is told to clients of HTTP+SSE whose stream is here by a replica that they spoke to.
//!
//! What this replica does not wait for may be meant for another one: an answer names the one that asked, a cancel is
//! passed to all. The session was found to be the client's before anything is heard of it here (invariant P1).

use std::sync::{Arc, Weak};

use caribou_ports::peers::{ClientSays, ClientWord};

use crate::asking::{Answer, asked_by};
use crate::fault::Fault;
use crate::router::Endpoint;

/// Has what clients say to other replicas be heard here.
pub(crate) fn open_ears(endpoint: &Arc<Endpoint>) {
    // Weak: the runtime outlives nobody by it.
    let here: Weak<Endpoint> = Arc::downgrade(endpoint);
    let ears = move |word| here.upgrade().is_some_and(|endpoint| endpoint.hear_here(word));
    endpoint.runtime.hear_clients(Arc::new(ears));
}

impl Endpoint {
    /// Hears a client of this replica.
    ///
    /// # Errors
    /// It answers a replica that cannot be reached: it may say so again.
    pub(crate) async fn hear(&self, session: String, says: ClientSays) -> Result<(), Fault> {
        let word = ClientWord { session, says };
        if self.hear_here(word.clone()) {
            return Ok(());
        }
        let asker = match &word.says {
            ClientSays::Result(id, _) | ClientSays::Error(id, _) => asked_by(id).map(str::to_owned),
            ClientSays::Cancels(_) => {
                self.runtime.tell_replicas(&word).await;
                return Ok(());
            }
            ClientSays::Told(_) => None,
        };
        // What nobody asked is passed over.
        let Some(asker) = asker.filter(|asker| asker != self.runtime.boot().as_str()) else { return Ok(()) };
        let told = self.runtime.tell_replica(&asker, word).await;
        told.map(|_| ()).map_err(|error| {
            tracing::warn!(asker, %error, "an answer of a client did not reach the replica that asked");
            Fault::no_room("the replica that asked cannot be reached now; answer again")
        })
    }

    /// Whether this replica waits for it.
    fn hear_here(&self, ClientWord { session, says }: ClientWord) -> bool {
        match says {
            ClientSays::Result(id, result) => self.answers.deliver(&session, &id, Answer::Result(result)),
            ClientSays::Error(id, error) => self.answers.deliver(&session, &id, Answer::Refused(error)),
            ClientSays::Cancels(id) => self.in_flight.cancel(&session, &id),
            ClientSays::Told(message) => self.outboxes.put(&session, message),
        }
    }
}
