//! What clients with a standing stream are told of: changed lists, what is on record of their own sessions, and visits
//! that have ended.
//!
//! A replica hears of a change from the sessions that it holds and, by hints, from the other replicas. What concerns the
//! servers of one user is told to that user's clients only, and of a visit to those of its thread (invariant P1).

use std::sync::Arc;

use caribou_core::config::personal::is_runtime_name;
use caribou_core::ids::{Scope, ServerName};
use caribou_ports::peers::{Change, Listed};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{Notify, watch};

use crate::Runtime;
use crate::catalog::DirtyLists;

/// Tells of changes, all of them or those of one server.
pub struct ListChanges {
    published: watch::Receiver<u64>,
    marked: watch::Receiver<u64>,
    told: broadcast::Receiver<Change>,
    scope: Scope,
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
    /// What is on record of the client: what it is subscribed to, or its tasks.
    Client,
    /// Any list: too much was told at once.
    AnyList,
    /// Somebody has been where a server sent the client: the server's name of the visit (mcp.md §1.3).
    Visited(String),
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
                () = of_client(self.client.as_ref()) => return Changed::Client,
            };
            match told {
                Ok(None) => {
                    self.published.mark_unchanged();
                    self.marked.mark_unchanged();
                    return Changed::Tools;
                }
                Ok(Some(Change::Tools(listed))) if self.hears(&listed) => return Changed::Tools,
                Ok(Some(Change::Prompts(listed))) if self.hears(&listed) => return Changed::Prompts,
                Ok(Some(Change::Resources(listed))) if self.hears(&listed) => return Changed::Resources,
                Ok(Some(Change::Visited(scope, visit))) if scope == self.scope => return Changed::Visited(visit),
                Ok(Some(_)) => {}
                Err(RecvError::Lagged(_)) => return Changed::AnyList,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    fn hears(&self, listed: &Listed) -> bool {
        let is_theirs = listed.owner.as_ref().is_none_or(|owner| *owner == self.scope.user);
        let is_here = self.server.as_ref().is_none_or(|only| match &listed.server {
            Some(server) => server == only,
            None => listed.owner.is_none() || is_runtime_name(only),
        });
        is_theirs && is_here
    }
}

async fn of_client(client: Option<&Client>) {
    match client {
        Some(client) => client.holder.notified().await,
        None => std::future::pending().await,
    }
}

impl Runtime {
    /// Tells a client of this scope of changes from now on, of prompts and resources only those of `server` if one is
    /// named. Whoever holds the stream of a client's session names it, and hears of it in place of who held it before.
    pub fn list_changes(&self, scope: &Scope, server: Option<&ServerName>, session: Option<&str>) -> ListChanges {
        let dirty = &self.catalog.dirty;
        let client = session.map(|session| {
            let holder = dirty.changes.hold(session);
            Client { session: session.to_owned(), holder, dirty: dirty.clone() }
        });
        let (published, marked) = (self.catalog.published.changes(), dirty.marked());
        let (scope, server) = (scope.clone(), server.cloned());
        ListChanges { published, marked, told: dirty.changes.hear(), scope, server, client }
    }

    /// What is on record of the client session of this name has changed: what it is subscribed to, or which tasks it
    /// has. Whoever holds its stream looks it up again, in whichever replica.
    pub fn client_changed(&self, session: &str) {
        let change = Change::Client(session.to_owned());
        let changes = &self.catalog.dirty.changes;
        changes.tell(&change);
        changes.pass_on(change, &self.router.homes);
    }

    /// Another replica noticed a change.
    pub(super) fn told_by_peer(&self, change: &Change) {
        let (dirty, is_tools) = (&self.catalog.dirty, matches!(change, Change::Tools(_)));
        if let Change::Tools(listed) | Change::Prompts(listed) | Change::Resources(listed) = change {
            match (&listed.server, &listed.owner) {
                // It is not in force here, or is not yet.
                (Some(server), None) if self.in_force.get().binding(server).is_none() => return,
                (Some(server), _) if is_tools && self.in_force.has(server) => dirty.mark_server(server),
                (None, Some(owner)) => self.users.iter().for_each(|users| users.look_again(owner)),
                _ => {}
            }
        }
        dirty.changes.tell(change);
    }
}
