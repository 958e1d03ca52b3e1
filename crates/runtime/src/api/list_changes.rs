//! What clients with a standing stream are told of: changed lists, and what their own sessions are subscribed to.
//!
//! A replica hears of a change from the sessions that it holds and, by hints, from the other replicas. Changes of
//! personal servers are not told.

use std::sync::Arc;

use caribou_core::ids::ServerName;
use caribou_ports::peers::Change;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{Notify, watch};

use crate::Runtime;
use crate::catalog::DirtyLists;

/// Tells of changes, all of them or those of one server.
pub struct ListChanges {
    published: watch::Receiver<u64>,
    marked: watch::Receiver<u64>,
    told: broadcast::Receiver<Change>,
    server: Option<ServerName>,
    client: Option<Client>,
}

/// A client's session whose stream is held.
struct Client {
    session: String,
    holder: Arc<Notify>,
    dirty: Arc<DirtyLists>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.dirty.changes.let_go(&self.session, &self.holder);
    }
}

/// What changed, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The tools.
    Tools,
    /// The prompts.
    Prompts,
    /// The resources.
    Resources,
    /// What the client is subscribed to.
    Subscriptions,
    /// Any list: too much was told at once.
    AnyList,
}

impl ListChanges {
    /// Resolves at the next change, at once for those since the last time. Never, once the replica is gone. May be
    /// dropped and asked again.
    pub async fn next(&mut self) -> Changed {
        loop {
            let told = tokio::select! {
                changed = self.published.changed() => changed.map(|()| None).map_err(|_| RecvError::Closed),
                changed = self.marked.changed() => changed.map(|()| None).map_err(|_| RecvError::Closed),
                told = self.told.recv() => told.map(Some),
                () = of_client(self.client.as_ref()) => return Changed::Subscriptions,
            };
            match told {
                Ok(None) => {
                    self.published.mark_unchanged();
                    self.marked.mark_unchanged();
                    return Changed::Tools;
                }
                Ok(Some(Change::Prompts(server))) if self.is_of(&server) => return Changed::Prompts,
                Ok(Some(Change::Resources(server))) if self.is_of(&server) => return Changed::Resources,
                Ok(Some(_)) => {}
                Err(RecvError::Lagged(_)) => return Changed::AnyList,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    fn is_of(&self, server: &ServerName) -> bool {
        self.server.as_ref().is_none_or(|only| only == server)
    }
}

async fn of_client(client: Option<&Client>) {
    match client {
        Some(client) => client.holder.notified().await,
        None => std::future::pending().await,
    }
}

impl Runtime {
    /// Tells of changes from now on, of prompts and resources only those of `server` if one is named. Whoever holds the
    /// stream of a client's session names it, and hears of its subscriptions in place of who held it before.
    pub fn list_changes(&self, server: Option<&ServerName>, session: Option<&str>) -> ListChanges {
        let dirty = &self.catalog.dirty;
        let client = session.map(|session| {
            let holder = dirty.changes.hold(session);
            Client { session: session.to_owned(), holder, dirty: dirty.clone() }
        });
        let (published, marked) = (self.catalog.published.changes(), dirty.marked());
        ListChanges { published, marked, told: dirty.changes.hear(), server: server.cloned(), client }
    }

    /// What the client session of this name is subscribed to has changed: whoever holds its stream looks it up again,
    /// in whichever replica.
    pub fn client_changed(&self, session: &str) {
        let change = Change::Client(session.to_owned());
        let changes = &self.catalog.dirty.changes;
        changes.tell(&change);
        changes.pass_on(change, &self.router.homes);
    }

    /// Another replica noticed a change.
    pub(super) fn told_by_peer(&self, change: &Change) {
        let is_in_force = |server: &ServerName| self.in_force.get().binding(server).is_some();
        match change {
            Change::Tools(server) if is_in_force(server) => self.catalog.dirty.mark_server(server),
            Change::Prompts(server) | Change::Resources(server) if !is_in_force(server) => {}
            Change::Tools(_) => {}
            Change::Prompts(_) | Change::Resources(_) | Change::Client(_) => self.catalog.dirty.changes.tell(change),
        }
    }
}
