//! Applies what other replicas changed, as the very same change would be applied here (durability.md §4; invariants G1,
//! G2).

use std::collections::HashMap;
use std::sync::Arc;

use caribou_core::ids::ServerName;
use caribou_core::reset::{ResetGeneration, ResetScope};

use super::actor::{ConfigurationActor, ConfigurationState};
use super::in_force::{Generation, Servers};

/// What servers stand under before anything is done to them.
struct Before(Arc<Servers>);

impl Before {
    fn generations(&self) -> HashMap<&ServerName, Generation> {
        self.0.list.iter().map(|configured| (&configured.entry.name, configured.generation)).collect()
    }
}

impl ConfigurationActor {
    /// Puts in force what is heard and not applied. A generation of everything, or of a server, supersedes what was
    /// opened under another one even if what is stored cannot be read now; the document is tried again then.
    pub(super) async fn catch_up(&self, state: &mut ConfigurationState) {
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.is_behind()) else { return };
        let mut differences = seen.differences();
        let before = Before(self.in_force.get());
        let is_global = differences.iter().any(|(scope, _)| *scope == ResetScope::Global);
        let is_document = differences.iter().any(|(scope, _)| *scope == ResetScope::Document);
        let is_read = !(is_global || is_document) || self.reload(state).await;
        if is_global {
            self.supersede_all(state).await;
            if !seen.is_ours(&differences) {
                self.metrics.reset_heard("global");
                tracing::info!("everything is opened anew, because another replica was told to");
            }
        } else {
            let servers = differences.iter().filter_map(|(scope, _)| server_of(scope)).cloned();
            self.supersede_servers(state, &before, servers.collect()).await;
        }
        if !is_read {
            differences.retain(|(scope, _)| *scope != ResetScope::Document);
        }
        seen.applied(&differences);
        if is_global {
            seen.confirm();
        }
        if is_document && !is_read {
            seen.not_applied();
        }
    }

    /// The generations that a change of ours has just put in force for all replicas, who are told.
    pub(super) fn moved(&self) -> Vec<(ResetScope, ResetGeneration)> {
        let moved = self.configuration.source.take_moved();
        if let Some(seen) = self.seen.as_ref().filter(|_| !moved.is_empty()) {
            seen.tell(&moved);
        }
        moved
    }

    /// Whatever these generations supersede, and the change itself did not: what was opened under a document that this
    /// replica never had in force is out of date too.
    pub(super) async fn supersede_moved(
        &self,
        state: &ConfigurationState,
        before: &Arc<Servers>,
        moved: &[(ResetScope, ResetGeneration)],
    ) {
        let Some(seen) = self.seen.as_ref().filter(|_| !moved.is_empty()) else { return };
        if moved.iter().any(|(scope, _)| *scope == ResetScope::Global) {
            self.supersede_all(state).await;
        } else {
            let servers = moved.iter().filter_map(|(scope, _)| server_of(scope)).cloned();
            self.supersede_servers(state, &Before(before.clone()), servers.collect()).await;
        }
        seen.moved(moved);
    }

    /// Gives those of `servers` another generation that still stand under the one they had before.
    async fn supersede_servers(&self, state: &ConfigurationState, before: &Before, servers: Vec<ServerName>) {
        let before = before.generations();
        let mut list = self.in_force.get().list.clone();
        let mut is_any = false;
        for configured in list.iter_mut().filter(|configured| servers.contains(&configured.entry.name)) {
            if before.get(&configured.entry.name) == Some(&configured.generation) {
                configured.generation = self.in_force.fresh();
                is_any = true;
                self.metrics.reset_heard("server");
            }
        }
        if is_any {
            self.put_in_force(list, &state.document.interceptors).await;
        }
    }
}

fn server_of(scope: &ResetScope) -> Option<&ServerName> {
    match scope {
        ResetScope::Server(server) => Some(server),
        ResetScope::Document | ResetScope::Global => None,
    }
}
