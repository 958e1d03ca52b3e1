//! What callers ask the catalogue: where a name leads, and what there is.
//!
//! Reads the published snapshot and asks for a discovery only where that cannot answer. A server that hangs delays
//! nobody who does not ask for one of its tools.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use futures::future::join_all;
use tokio::sync::oneshot;

use super::actor::CatalogMessage;
use super::dirty::DirtyLists;
use super::snapshot::{EntryState, Published, Snapshot, Target};
use crate::api::list_tools::ListedTools;
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
}

impl Catalog {
    /// Where a visible name leads. Discovers the servers that may have it, if it is not known yet.
    pub(crate) async fn find(&self, name: &str) -> Result<Target, VerbError> {
        let snapshot = self.published.get();
        if let Some(target) = snapshot.target(name) {
            return Ok(target.clone());
        }
        let may_have: Vec<usize> = (0..snapshot.entries.len())
            .filter(|&place| snapshot.entries[place].could_have(name))
            .filter(|&place| !self.is_fresh(&snapshot, place))
            .collect();
        self.settle(&may_have, self.options.call_max).await;
        let snapshot = self.published.get();
        snapshot.target(name).cloned().ok_or_else(|| not_found(&snapshot, name))
    }

    /// All tools. Waits a bounded while for servers never seen before; those that failed are tried again without
    /// anybody waiting, unless there is nothing else to show.
    pub(crate) async fn list(&self) -> Result<ListedTools, VerbError> {
        let snapshot = self.published.get();
        let stale: Vec<usize> = (0..snapshot.entries.len()).filter(|&place| !self.is_fresh(&snapshot, place)).collect();
        if !stale.is_empty() {
            let any_ready = snapshot.entries.iter().any(|entry| matches!(entry.state, EntryState::Ready));
            let (failed, others): (Vec<usize>, Vec<usize>) = stale
                .into_iter()
                .partition(|&place| any_ready && matches!(snapshot.entries[place].state, EntryState::Failed(_)));
            self.nudge(&failed);
            self.settle(&others, self.options.list_wait).await;
        }
        let snapshot = self.published.get();
        let listed = snapshot.listed.clone();
        let any_ready = snapshot.entries.iter().any(|entry| matches!(entry.state, EntryState::Ready));
        if !any_ready && listed.pending.is_empty() && !listed.failed.is_empty() {
            return Err(all_failed(&snapshot));
        }
        Ok(listed)
    }

    /// Asks for the lists of these servers again, all enabled ones when `None`.
    pub(crate) async fn refresh(&self, server: Option<&ServerName>) -> Result<(), VerbError> {
        let snapshot = self.published.get();
        let places: Vec<usize> = (0..snapshot.entries.len())
            .filter(|&place| snapshot.entries[place].enabled().is_some())
            .filter(|&place| server.is_none_or(|server| snapshot.entries[place].name == *server))
            .collect();
        if let Some(server) = server
            && places.is_empty()
        {
            return Err(VerbError::new(Code::NotFound, format!("there is no enabled server `{server}`")));
        }
        for &place in &places {
            self.dirty.mark_server(&snapshot.entries[place].name);
        }
        self.settle(&places, self.options.call_max).await;
        Ok(())
    }

    /// Begins the discovery of every server without waiting for any.
    pub(crate) fn discover_all(&self) {
        let places: Vec<usize> = (0..self.published.get().entries.len()).collect();
        self.nudge(&places);
    }

    /// The snapshot in force.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.published.get()
    }

    fn is_fresh(&self, snapshot: &Snapshot, place: usize) -> bool {
        let entry = &snapshot.entries[place];
        entry.enabled().is_none() || (matches!(entry.state, EntryState::Ready) && !self.dirty.is_dirty(&entry.name))
    }

    fn nudge(&self, places: &[usize]) {
        for &place in places {
            let (settled, _) = oneshot::channel();
            let _ = self.role.cast(CatalogMessage::Want { place, settled });
        }
    }

    async fn settle(&self, places: &[usize], at_most: Duration) {
        let waits = places.iter().map(|&place| {
            let (settled, wait) = oneshot::channel();
            let _ = self.role.cast(CatalogMessage::Want { place, settled });
            wait
        });
        // Running out of time is no error: what is known by then is served.
        let _ = tokio::time::timeout(at_most, join_all(waits)).await;
    }
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
