//! The configuration in force, and under which generation each server stands (invariant G1).
//!
//! A generation is a number that is never given out twice: a server that was removed and added again unchanged has
//! another one, so nothing opened before serves a call made after (contract 5.8).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use caribou_core::config::{InterceptorEntry, Secret, ServerConfig, ServerEntry};
use caribou_core::ids::{ServerName, UserId};

use crate::session::Home;

/// Under which configuration a server's sessions were opened. Compared for equality only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// A server as it is configured, and the generation it stands under.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) generation: Generation,
    /// The headers of a caller that a session is opened with; `None` = the configured ones are all.
    pub(crate) headers: Option<Arc<[(String, Secret)]>>,
    /// Where its session lives, as far as it was looked up.
    pub(crate) home: Home,
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
        Some(Binding { server: server.clone(), generation: self.generation, headers: None, home: Home::Here })
    }
}

/// All servers, in document order, their generations by name, and what stands around their calls.
#[derive(Default)]
pub(crate) struct Servers {
    pub(crate) list: Vec<Configured>,
    pub(crate) interceptors: Vec<InterceptorEntry>,
    generations: HashMap<ServerName, Generation>,
}

impl Servers {
    /// What a call to this server goes by, if it takes part.
    pub(crate) fn binding(&self, server: &ServerName) -> Option<Binding> {
        self.list.iter().find(|configured| configured.entry.name == *server).and_then(Configured::binding)
    }
}

/// What is in force now. Written when the configuration changes or is reset, read by everybody.
#[derive(Clone, Default)]
pub(crate) struct InForce {
    servers: Arc<RwLock<Arc<Servers>>>,
    /// The personal connections of all users that are held, by their runtime names, and whose they are.
    personal: Arc<RwLock<HashMap<ServerName, (Generation, UserId)>>>,
    /// Whose part this is; `None` = the deployment's.
    user: Option<UserId>,
    given: Arc<AtomicU64>,
    renewals: Arc<AtomicU64>,
}

impl InForce {
    /// A generation that was never given out.
    pub(crate) fn fresh(&self) -> Generation {
        Generation(self.given.fetch_add(1, Ordering::Relaxed))
    }

    /// Puts these servers in force, with these interceptors around their calls.
    pub(crate) fn set(&self, list: Vec<Configured>, interceptors: Vec<InterceptorEntry>) {
        let enabled = list.iter().filter(|configured| configured.binding().is_some());
        let generations = enabled.map(|configured| (configured.entry.name.clone(), configured.generation)).collect();
        let servers = Arc::new(Servers { list, interceptors, generations });
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
        let now = self.get().generations.get(server).copied();
        now.or_else(|| self.personal().get(server).map(|(generation, _)| *generation)) == Some(generation)
    }

    /// Whether `server` takes part.
    pub(crate) fn has(&self, server: &ServerName) -> bool {
        self.get().generations.contains_key(server) || self.personal().contains_key(server)
    }

    /// Whose own server this is, as far as it is held here; `None` = it is nobody's own.
    pub(crate) fn owner_of(&self, server: &ServerName) -> Option<UserId> {
        self.personal().get(server).map(|(_, owner)| owner.clone())
    }

    /// The part of one user: servers of its own, under generations of the same count.
    pub(crate) fn of_user(&self, user: UserId) -> Self {
        Self { servers: Arc::default(), user: Some(user), ..self.clone() }
    }

    /// Puts a user's own servers in force, in its part of this. Those it had and has no more are not from here on.
    pub(crate) fn set_personal(&self, list: Vec<Configured>) {
        let mut personal = self.personal.write().unwrap_or_else(PoisonError::into_inner);
        for before in &self.get().list {
            personal.remove(&before.entry.name);
        }
        let enabled = list.iter().filter(|configured| configured.binding().is_some());
        let of_user = |configured: &Configured| {
            Some((configured.entry.name.clone(), (configured.generation, self.user.clone()?)))
        };
        personal.extend(enabled.filter_map(of_user));
        // Under the same lock, so that of two changes at once the later one removes what the earlier one put here.
        self.set(list, Vec::new());
    }

    /// Takes all personal connections out of force: nothing that was opened for them serves a new call.
    pub(crate) fn renew_personal(&self) {
        self.personal.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.renewals.fetch_add(1, Ordering::AcqRel);
    }

    /// How often that was done.
    pub(crate) fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Acquire)
    }

    fn personal(&self) -> RwLockReadGuard<'_, HashMap<ServerName, (Generation, UserId)>> {
        self.personal.read().unwrap_or_else(PoisonError::into_inner)
    }
}
