//! What becomes of the things that sessions tell on their own. Runs in the sessions' tasks, hence never waits.
//!
//! Owns which of them concern the tool list, that changes of lists are told to the clients that they concern, and visits
//! that have ended to those of the session's scope, and that oddities are counted each time but logged once for each server and kind. What is remembered for that is bounded (invariant B1):
//! beyond the bound a line may come again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use caribou_core::bounds::MAX_REMEMBERED_SERVERS;
use caribou_core::ids::ServerName;
use caribou_ports::mcp::{EventSink, Oddity, SessionEvent};
use caribou_ports::peers::{Change, Listed};

use super::handle::Handle;
use super::registry::Registry;
use crate::metrics::Metrics;

impl Registry {
    /// Receives what the session behind `handle` tells on its own.
    pub(super) fn events(&self, handle: &Arc<Handle>) -> EventSink {
        let (handle, book, homes) = (Arc::downgrade(handle), self.book.clone(), self.homes.clone());
        let (dirty, oddities, in_force) = (self.dirty.clone(), self.oddities.clone(), self.in_force.clone());
        Arc::new(move |event| {
            let Some(handle) = handle.upgrade() else { return };
            match &event {
                SessionEvent::Oddity(oddity) => return oddities.note(&handle.server.name, *oddity),
                SessionEvent::Visited(visit) => {
                    let change = Change::Visited(handle.key.scope.clone(), visit.to_string());
                    dirty.changes.tell(&change);
                    return dirty.changes.pass_on(change, &homes);
                }
                SessionEvent::Reopened if handle.is_held() => {
                    homes.follow(&handle);
                }
                SessionEvent::Reopened => {
                    handle.reopened(book.lock().unwrap_or_else(PoisonError::into_inner).next(&handle.key));
                }
                SessionEvent::ToolsChanged | SessionEvent::PromptsChanged | SessionEvent::ResourcesChanged => {}
            }
            // Marks of servers that are gone would be taken off by nobody.
            if !in_force.holds(&handle.server.name, handle.generation) {
                return;
            }
            let name = handle.server.name.clone();
            let listed = Listed { owner: in_force.owner_of(&name), server: Some(name) };
            let change = match event {
                SessionEvent::PromptsChanged => Change::Prompts(listed),
                SessionEvent::ResourcesChanged => Change::Resources(listed),
                _ if dirty.mark(&handle) => Change::Tools(listed),
                _ => return,
            };
            dirty.changes.tell(&change);
            // The catalogue of each replica has sessions of its own; of any other, only this replica hears.
            if event != SessionEvent::Reopened && !handle.key.scope.is_catalog() {
                dirty.changes.pass_on(change, &homes);
            }
        })
    }
}

/// The oddities of all servers.
pub(crate) struct Oddities {
    metrics: Arc<Metrics>,
    logged: Mutex<HashSet<(ServerName, Oddity)>>,
}

impl Oddities {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { metrics, logged: Mutex::default() })
    }

    /// Counts one, and logs it if it is the first of its kind from this server.
    fn note(&self, server: &ServerName, oddity: Oddity) {
        self.metrics.odd(server, oddity.kind());
        if self.is_first(server, oddity) {
            tracing::warn!(%server, kind = oddity.kind(), "a server strays from the protocol: {oddity}");
        }
    }

    fn is_first(&self, server: &ServerName, oddity: Oddity) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= MAX_REMEMBERED_SERVERS {
            logged.clear();
        }
        logged.insert((server.clone(), oddity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_oddity_of_each_server_and_kind_is_logged() {
        let oddities = Oddities::new(Arc::new(Metrics::new(&opentelemetry::global::meter("test"))));
        let (a, b) = (ServerName::from("a"), ServerName::from("b"));
        for server in [&a, &b] {
            for oddity in [Oddity::TextId, Oddity::NotAMessage] {
                assert!(oddities.is_first(server, oddity));
                assert!(!oddities.is_first(server, oddity));
            }
        }
    }
}
