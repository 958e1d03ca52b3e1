//! Which era and revision each server spoke last, so that later sessions need no probe and no refused offer.
//!
//! Owns a belief, not a truth: whoever finds it wrong forgets it and probes again (mcp.md §3.2). One entry a server,
//! valid only for the connection it was learnt on. Authentication failures teach nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use caribou_core::bounds::MAX_REMEMBERED_SERVERS;
use caribou_core::config::{ServerConfig, Transport};
use caribou_core::era::{Era, LATEST_LEGACY_VERSION, LEGACY_VERSIONS};
use caribou_core::ids::ServerName;

/// The beliefs.
#[derive(Default)]
pub(crate) struct EraMemory {
    /// Keyed anew in each process, so that no digest of a secret can be compared with another's.
    hasher: RandomState,
    known: Mutex<HashMap<ServerName, (u64, Belief)>>,
}

/// What a server spoke last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    /// The era.
    pub(crate) era: Era,
    /// The revision that `initialize` agreed on, if it is older than the one that is offered anyway.
    pub(crate) version: Option<&'static str>,
}

impl EraMemory {
    /// What this server spoke last over this very connection.
    pub(crate) fn recall(&self, server: &ServerConfig) -> Option<Belief> {
        let connection = self.connection(&server.transport);
        self.known().get(&server.name).filter(|(known, _)| *known == connection).map(|(_, belief)| *belief)
    }

    /// Notes the era a server was opened in, and the revision if it is known.
    pub(crate) fn learn(&self, server: &ServerConfig, era: Era, version: Option<&str>) {
        let version = LEGACY_VERSIONS.into_iter().find(|&ours| Some(ours) == version && ours != LATEST_LEGACY_VERSION);
        let connection = self.connection(&server.transport);
        let mut known = self.known();
        if known.len() >= MAX_REMEMBERED_SERVERS {
            known.clear();
        }
        known.insert(server.name.clone(), (connection, Belief { era, version }));
    }

    /// Drops a belief that proved wrong.
    pub(crate) fn forget(&self, server: &ServerConfig) {
        self.known().remove(&server.name);
    }

    /// What makes a connection the same one: everything that is started or asked.
    fn connection(&self, transport: &Transport) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        transport.name().hash(&mut hasher);
        match transport {
            Transport::Stdio(stdio) => {
                (&stdio.command, &stdio.args, &stdio.cwd).hash(&mut hasher);
                for (name, value) in &stdio.env {
                    (name, value.expose()).hash(&mut hasher);
                }
            }
            Transport::Http(remote) | Transport::Sse(remote) => remote.url.hash(&mut hasher),
        }
        hasher.finish()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ServerName, (u64, Belief)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::stdio_server;

    #[test]
    fn a_belief_holds_for_one_connection_until_it_is_forgotten() {
        let memory = EraMemory::default();
        let server = stdio_server(&["x", "1"]);
        memory.learn(&server, Era::Legacy, Some("2025-06-18"));
        assert_eq!(memory.recall(&server), Some(Belief { era: Era::Legacy, version: Some("2025-06-18") }));
        assert_eq!(memory.recall(&stdio_server(&["x", "2"])), None, "another command may be another server");
        memory.learn(&server, Era::Legacy, Some("2025-11-25"));
        assert_eq!(memory.recall(&server), Some(Belief { era: Era::Legacy, version: None }));
        memory.forget(&server);
        assert_eq!(memory.recall(&server), None);
    }
}
