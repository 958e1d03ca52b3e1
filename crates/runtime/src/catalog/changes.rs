//! What clients are told of beside tools: in this replica at once, and in the others by a hint.
//!
//! A burst of notices is one hint to each replica, a moment after the first of it. Nothing depends on a hint: one that
//! is lost leaves a client with what it knew (mcp.md 14.6). Bounded by the servers and sessions that something is told
//! of.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::ids::UserId;
use caribou_ports::peers::{Change, Listed, Nudge};
use tokio::sync::{Notify, broadcast};

use crate::session::Homes;

/// How many changes a client's stream may be behind; one that is further behind is told of all kinds.
const BEHIND: usize = 64;

/// How long a burst is waited for.
const BURST: Duration = Duration::from_millis(100);

/// Tells of changes.
pub(crate) struct Changes {
    told: broadcast::Sender<Change>,
    /// Who holds the stream of a client's session here, by the name of the session.
    clients: Mutex<HashMap<String, Arc<Notify>>>,
    /// What the other replicas are about to hear.
    about_to: Arc<Mutex<HashSet<Change>>>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { told: broadcast::Sender::new(BEHIND), clients: Mutex::default(), about_to: Arc::default() }
    }
}

impl Changes {
    /// Tells the streams of this replica that it concerns.
    pub(crate) fn tell(&self, change: &Change) {
        match change {
            // Told by the marks of whose list is to be asked for again.
            Change::Tools(Listed { owner: None, .. }) => {}
            Change::Tools(_) | Change::Prompts(_) | Change::Resources(_) | Change::Visited(..) => {
                drop(self.told.send(change.clone()));
            }
            Change::Client(session) => {
                let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(holder) = clients.get(session) {
                    holder.notify_one();
                }
            }
        }
    }

    /// Tells a user's clients, here and at the other replicas, that it has other servers of its own.
    pub(crate) fn tell_owner(&self, owner: &UserId, homes: &Homes) {
        let listed = || Listed { server: None, owner: Some(owner.clone()) };
        for change in [Change::Tools(listed()), Change::Prompts(listed()), Change::Resources(listed())] {
            self.tell(&change);
            self.pass_on(change, homes);
        }
    }

    /// The holder of the stream of this session is told of its changes from now on; one before is not any more.
    pub(crate) fn hold(&self, session: &str) -> Arc<Notify> {
        let holder = Arc::new(Notify::new());
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned(), holder.clone());
        holder
    }

    /// This holder of the stream of a session has gone.
    pub(crate) fn let_go(&self, session: &str, holder: &Arc<Notify>) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.get(session).is_some_and(|held| Arc::ptr_eq(held, holder)) {
            clients.remove(session);
        }
    }

    /// Hears of every change from now on.
    pub(crate) fn hear(&self) -> broadcast::Receiver<Change> {
        self.told.subscribe()
    }

    /// Has the other replicas told.
    pub(crate) fn pass_on(&self, change: Change, homes: &Homes) {
        let (Some(peers), Ok(runtime)) = (homes.peers().cloned(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let about_to = self.about_to.clone();
        let lock = |all: &Mutex<HashSet<Change>>, change: &Change, is_added: bool| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            if is_added { all.insert(change.clone()) } else { all.remove(change) }
        };
        if !lock(&about_to, &change, true) {
            return;
        }
        let homes = homes.clone();
        runtime.spawn(async move {
            tokio::time::sleep(BURST).await;
            // A notice that comes from now on is told by a hint of its own.
            lock(&about_to, &change, false);
            for peer in homes.others() {
                peers.nudge(peer, Nudge::Told(change.clone()));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_of_a_session_is_told_to_who_holds_its_stream_now_and_to_nobody_else() {
        let changes = Changes::default();
        let (old, other) = (changes.hold("a"), changes.hold("b"));
        let new = changes.hold("a");
        changes.let_go("a", &old);
        let mut lists = changes.hear();
        changes.tell(&Change::Client("a".to_owned()));
        new.notified().await;
        for silent in [&old, &new, &other] {
            let told = silent.notified();
            tokio::pin!(told);
            assert!(!told.as_mut().enable());
        }
        let listed = Listed::of("s".into());
        changes.tell(&Change::Tools(listed.clone()));
        changes.tell(&Change::Prompts(listed.clone()));
        assert_eq!(lists.recv().await, Ok(Change::Prompts(listed)));
        changes.let_go("a", &new);
        changes.let_go("b", &other);
        assert!(changes.clients.lock().unwrap().is_empty());
    }
}
