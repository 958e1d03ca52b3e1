//! The configuration in force, and under which generation each server stands (invariant G1).
//!
//! A generation is a number that is never given out twice: a server that was removed and added again unchanged has
//! another one, so nothing opened before serves a call made after (contract 5.8).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use caribou_core::config::{ServerConfig, ServerEntry};
use caribou_core::ids::ServerName;

/// Under which configuration a server's sessions were opened. Compared for equality only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// A server as it is configured, and the generation it stands under.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) generation: Generation,
}

/// One server of the configuration in force.
#[derive(Clone)]
pub(crate) struct Configured {
    pub(crate) entry: ServerEntry,
    pub(crate) generation: Generation,
}

impl Configured {
    /// The server and its generation, if it takes part.
    pub(crate) fn binding(&self) -> Option<Binding> {
        let server = self.entry.config.as_ref().ok().filter(|server| server.enabled)?;
        Some(Binding { server: server.clone(), generation: self.generation })
    }
}

/// All servers, in document order, and their generations by name.
#[derive(Default)]
pub(crate) struct Servers {
    pub(crate) list: Vec<Configured>,
    generations: HashMap<ServerName, Generation>,
}

impl Servers {
    /// Whether `server` takes part.
    pub(crate) fn has(&self, server: &ServerName) -> bool {
        self.generations.contains_key(server)
    }
}

/// What is in force now. Written when the configuration changes or is reset, read by everybody.
#[derive(Clone, Default)]
pub(crate) struct InForce {
    servers: Arc<RwLock<Arc<Servers>>>,
    given: Arc<AtomicU64>,
}

impl InForce {
    /// A generation that was never given out.
    pub(crate) fn fresh(&self) -> Generation {
        Generation(self.given.fetch_add(1, Ordering::Relaxed))
    }

    /// Puts these servers in force.
    pub(crate) fn set(&self, list: Vec<Configured>) {
        let enabled = list.iter().filter(|configured| configured.binding().is_some());
        let generations = enabled.map(|configured| (configured.entry.name.clone(), configured.generation)).collect();
        let servers = Arc::new(Servers { list, generations });
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = servers;
    }

    pub(crate) fn get(&self) -> Arc<Servers> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The servers as they are configured, in document order.
    pub(crate) fn entries(&self) -> Vec<ServerEntry> {
        self.get().list.iter().map(|configured| configured.entry.clone()).collect()
    }

    /// Whether `generation` is the one `server` stands under now.
    pub(crate) fn holds(&self, server: &ServerName, generation: Generation) -> bool {
        self.get().generations.get(server) == Some(&generation)
    }
}
