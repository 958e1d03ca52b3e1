//! Which era each server spoke last, so that later sessions need no probe.
//!
//! Owns a belief, not a truth: whoever finds it wrong forgets it and probes again (mcp.md §3.2). One entry a server,
//! valid only for the connection it was learnt on. Authentication failures teach nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use caribou_core::config::{ServerConfig, Transport};
use caribou_core::era::Era;
use caribou_core::ids::ServerName;

/// More servers than any configuration holds; beyond it all beliefs are dropped and learnt again.
const MAX_SERVERS: usize = 10_000;

/// The beliefs.
#[derive(Default)]
pub(crate) struct EraMemory {
    /// Keyed anew in each process, so that no digest of a secret can be compared with another's.
    hasher: RandomState,
    known: Mutex<HashMap<ServerName, (u64, Era)>>,
}

impl EraMemory {
    /// The era this server spoke last over this very connection.
    pub(crate) fn recall(&self, server: &ServerConfig) -> Option<Era> {
        let connection = self.connection(&server.transport);
        self.known().get(&server.name).filter(|(known, _)| *known == connection).map(|(_, era)| *era)
    }

    /// Notes the era a server was opened in.
    pub(crate) fn learn(&self, server: &ServerConfig, era: Era) {
        let connection = self.connection(&server.transport);
        let mut known = self.known();
        if known.len() >= MAX_SERVERS {
            known.clear();
        }
        known.insert(server.name.clone(), (connection, era));
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

    fn known(&self) -> MutexGuard<'_, HashMap<ServerName, (u64, Era)>> {
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
        memory.learn(&server, Era::Legacy);
        assert_eq!(memory.recall(&server), Some(Era::Legacy));
        assert_eq!(memory.recall(&stdio_server(&["x", "2"])), None, "another command may be another server");
        memory.forget(&server);
        assert_eq!(memory.recall(&server), None);
    }
}
