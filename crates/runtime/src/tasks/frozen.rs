//! The configuration of task servers as it was when this replica started: running tasks go by it (contract 6.12).
//!
//! A change of one is stored and waits for the next start; until then polls, cancels and answers use what is here, and
//! nothing new is submitted to that server.

use std::collections::BTreeMap;
use std::sync::Arc;

use caribou_core::config::{InterceptorEntry, ServerConfig, ServerEntry, is_same_for_tasks, task_fingerprint};
use caribou_core::ids::ServerName;
use caribou_core::task::SnapshotFingerprint;

/// The task servers of the start.
#[derive(Clone, Default)]
pub(crate) struct Frozen(Arc<Snapshot>);

#[derive(Default)]
struct Snapshot {
    servers: BTreeMap<ServerName, (Arc<ServerConfig>, SnapshotFingerprint)>,
    interceptors: Vec<InterceptorEntry>,
}

impl Frozen {
    /// The enabled servers among these that have toolsets.
    pub(crate) fn of(entries: &[ServerEntry], interceptors: &[InterceptorEntry]) -> Self {
        let enabled = entries.iter().filter_map(|entry| entry.config.as_ref().ok()).filter(|server| server.enabled);
        let servers: BTreeMap<_, _> = enabled
            .filter(|server| !server.task_toolsets.is_empty())
            .map(|server| (server.name.clone(), (server.clone(), task_fingerprint(server, interceptors))))
            .collect();
        let interceptors = if servers.is_empty() { Vec::new() } else { interceptors.to_vec() };
        Self(Arc::new(Snapshot { servers, interceptors }))
    }

    /// Its fingerprint.
    pub(crate) fn fingerprint(&self, server: &ServerName) -> Option<SnapshotFingerprint> {
        self.0.servers.get(server).map(|(_, fingerprint)| *fingerprint)
    }

    /// All fingerprints: what a replica tells of itself with each renewal of its lease.
    pub(crate) fn fingerprints(&self) -> Vec<SnapshotFingerprint> {
        self.0.servers.values().map(|(_, fingerprint)| *fingerprint).collect()
    }

    /// The interceptors of the start; none without a task server.
    pub(crate) fn interceptors(&self) -> &[InterceptorEntry] {
        &self.0.interceptors
    }

    /// The entries with the servers of the start in place of those that would be other ones.
    pub(crate) fn kept(&self, mut entries: Vec<ServerEntry>) -> Vec<ServerEntry> {
        for (name, (config, _)) in &self.0.servers {
            let frozen = || ServerEntry { name: name.clone(), config: Ok(config.clone()) };
            match entries.iter_mut().find(|entry| entry.name == *name) {
                Some(entry) if entry.config.as_ref().is_ok_and(|now| is_same_for_tasks(config, now)) => {}
                Some(entry) => *entry = frozen(),
                None => entries.push(frozen()),
            }
        }
        entries
    }

    /// Whether there is no task server.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.servers.is_empty()
    }

    /// The task servers that another document would make other ones, by name. Such a document is in force for them
    /// after the next start only.
    pub(crate) fn changed_by(&self, entries: &[ServerEntry], interceptors: &[InterceptorEntry]) -> Vec<ServerName> {
        let before = &self.0;
        let is_same = |name: &ServerName, before: &ServerConfig| {
            let now = entries.iter().find(|entry| entry.name == *name).and_then(|entry| entry.config.as_ref().ok());
            now.is_some_and(|now| is_same_for_tasks(before, now))
        };
        let others = before.interceptors != interceptors;
        let changed = before.servers.iter().filter(|(name, (config, _))| others || !is_same(name, config));
        let mut changed: Vec<ServerName> = changed.map(|(name, _)| name.clone()).collect();
        // One that becomes a task server, or another one, was not frozen and is followed from the next start on.
        let new = entries.iter().filter_map(|entry| entry.config.as_ref().ok()).filter(|server| server.enabled);
        let new = new.filter(|server| !server.task_toolsets.is_empty() && !before.servers.contains_key(&server.name));
        changed.extend(new.map(|server| server.name.clone()));
        changed.sort_unstable();
        changed
    }
}
