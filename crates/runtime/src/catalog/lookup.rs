//! What callers ask the catalogue: where a name leads, and what there is.
//!
//! Reads the published snapshot and asks for a discovery only where that cannot answer. A server that hangs delays
//! nobody who does not ask for one of its tools.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use futures::future::join_all;
use tokio::sync::oneshot;

use super::actor::CatalogMessage;
use super::dirty::DirtyLists;
use super::offer::Offer;
use super::snapshot::{Entry, EntryState, Published, Snapshot, Target};
use crate::config::ConfigurationDesk;
use crate::error::VerbError;
use crate::options::Options;
use crate::roles::Role;

/// The callers' side of the catalogue.
#[derive(Clone)]
pub(crate) struct Catalog {
    pub(crate) role: Role<CatalogMessage>,
    pub(crate) published: Published,
    pub(crate) dirty: Arc<DirtyLists>,
    pub(crate) options: Options,
    /// Asked first, so that what is stored is in force before anything is looked up (contract 5.4).
    pub(crate) configuration: Option<ConfigurationDesk>,
}

impl Catalog {
    /// Where a visible name leads. Discovers the servers that may have it, if it is not known yet.
    pub(crate) async fn find(&self, name: &str) -> Result<Target, VerbError> {
        let snapshot = self.fresh().await?;
        if let Some(target) = snapshot.target(name) {
            return Ok(target.clone());
        }
        let may_have = self.stale(&snapshot, |entry| entry.could_have(name));
        self.settle(&may_have, self.options.call_max).await;
        let snapshot = self.published.get();
        snapshot.target(name).cloned().ok_or_else(|| not_found(&snapshot, name))
    }

    /// All tools. Waits a bounded while for servers never seen before; those that failed are tried again, and those
    /// that take longer are left to themselves, without anybody waiting, unless there is nothing else to show.
    pub(crate) async fn list(&self) -> Result<Arc<Snapshot>, VerbError> {
        let snapshot = self.fresh().await?;
        let any_ready = is_any_ready(&snapshot);
        let is_waited_for = |entry: &Entry| match entry.state {
            EntryState::Failed(_) => !any_ready,
            EntryState::Starting => !any_ready || entry.since.elapsed() < self.options.list_wait,
            _ => true,
        };
        self.nudge(&self.stale(&snapshot, |entry| !is_waited_for(entry)));
        let waited_for = self.stale(&snapshot, is_waited_for);
        let snapshot = if waited_for.is_empty() {
            // Whole as it is; what is published meanwhile may be the beginning of another document.
            snapshot
        } else {
            self.settle(&waited_for, self.options.list_wait).await;
            self.published.get()
        };
        let listed = &snapshot.listed;
        if !is_any_ready(&snapshot) && listed.pending.is_empty() && !listed.failed.is_empty() {
            return Err(all_failed(&snapshot));
        }
        Ok(snapshot)
    }

    /// What is known once `server` was discovered, whatever came of it.
    pub(crate) async fn discovered(&self, server: &ServerName) -> Arc<Snapshot> {
        let snapshot = self.current().await;
        let wanted = self.stale(&snapshot, |entry| entry.name == *server);
        if wanted.is_empty() {
            return snapshot;
        }
        self.settle(&wanted, self.options.call_max).await;
        self.published.get()
    }

    /// Asks for the lists of these servers again, all enabled ones when `None`.
    pub(crate) async fn refresh(&self, server: Option<&ServerName>) -> Result<(), VerbError> {
        let snapshot = self.fresh().await?;
        let enabled = snapshot.entries.iter().filter(|entry| entry.enabled().is_some()).map(|entry| &entry.name);
        let servers: Vec<ServerName> = enabled.filter(|name| server.is_none_or(|s| s == *name)).cloned().collect();
        if let Some(server) = server
            && servers.is_empty()
        {
            return Err(VerbError::new(Code::NotFound, format!("there is no enabled server `{server}`")));
        }
        for server in &servers {
            self.dirty.mark_server(server);
        }
        self.settle(&servers, self.options.call_max).await;
        Ok(())
    }

    /// Begins the discovery of every server without waiting for any.
    pub(crate) fn discover_all(&self) {
        self.nudge(&self.stale(&self.published.get(), |_| true));
    }

    /// Takes the configuration in force over. Resolves once it is published.
    pub(crate) async fn supersede(&self) {
        let (done, published) = oneshot::channel();
        let _ = self.role.cast(CatalogMessage::Supersede { done });
        let _ = tokio::time::timeout(bounds::ROLE_ANSWER, published).await;
    }

    /// What is offered of `snapshot`.
    pub(crate) fn offer<'s>(&self, snapshot: &'s Snapshot) -> &'s Offer {
        snapshot.offer.get_or_init(|| Offer::of(&snapshot.listed.tools, &self.options))
    }

    /// The snapshot in force.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.published.get()
    }

    /// The snapshot of what is stored now.
    pub(crate) async fn current(&self) -> Arc<Snapshot> {
        if let Some(configuration) = &self.configuration {
            // Whoever only shows what there is shows it as it is.
            let _ = configuration.refresh().await;
        }
        self.published.get()
    }

    /// The same, for whoever acts by it: never what may be out of date for too long (invariant G1).
    ///
    /// # Errors
    /// Nobody has known for too long whether it still holds.
    async fn fresh(&self) -> Result<Arc<Snapshot>, VerbError> {
        if let Some(configuration) = &self.configuration {
            configuration.refresh().await?;
        }
        Ok(self.published.get())
    }

    /// The enabled servers among these of which something newer may be known.
    fn stale(&self, snapshot: &Snapshot, among: impl Fn(&Entry) -> bool) -> Vec<ServerName> {
        let is_fresh = |entry: &Entry| matches!(entry.state, EntryState::Ready) && !self.dirty.is_dirty(&entry.name);
        let enabled = snapshot.entries.iter().filter(|entry| entry.enabled().is_some());
        enabled.filter(|entry| !is_fresh(entry) && among(entry)).map(|entry| entry.name.clone()).collect()
    }

    fn nudge(&self, servers: &[ServerName]) {
        for server in servers {
            let (settled, _) = oneshot::channel();
            let _ = self.role.cast(CatalogMessage::Want { server: server.clone(), settled });
        }
    }

    async fn settle(&self, servers: &[ServerName], at_most: Duration) {
        if servers.is_empty() {
            return;
        }
        let waits = servers.iter().map(|server| {
            let (settled, wait) = oneshot::channel();
            let _ = self.role.cast(CatalogMessage::Want { server: server.clone(), settled });
            wait
        });
        // Running out of time is no error: what is known by then is served.
        let _ = tokio::time::timeout(at_most, join_all(waits)).await;
    }
}

fn is_any_ready(snapshot: &Snapshot) -> bool {
    snapshot.entries.iter().any(|entry| matches!(entry.state, EntryState::Ready))
}

fn not_found(snapshot: &Snapshot, name: &str) -> VerbError {
    for entry in snapshot.entries.iter().filter(|entry| entry.could_have(name)) {
        if let EntryState::Failed(error) = &entry.state {
            return VerbError {
                detail: format!("no tool `{name}` is known, and server `{}` is absent: {}", entry.name, error.detail),
                ..error.clone()
            };
        }
    }
    VerbError::new(Code::NotFound, format!("there is no tool `{name}`; list the tools to see what there is"))
}

fn all_failed(snapshot: &Snapshot) -> VerbError {
    let reasons: Vec<&str> = snapshot.listed.failed.iter().map(|(_, reason)| reason.as_str()).collect();
    VerbError::new(Code::Unavailable, format!("no server could be discovered: {}", reasons.join("; ")))
}
