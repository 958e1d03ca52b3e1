//! The resources that one stream watches for its client.
//!
//! Each server is watched once for a stream, with all its URIs. What changed waits to be told as a set of URIs, so a
//! client that reads slowly is told of each resource once and nothing piles up (invariant B1).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use caribou_core::ids::{Scope, ServerName};
use caribou_core::namespace::{Label, shown_uri};
use caribou_runtime::{RequestSecrets, WatchResources};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::place::Place;
use crate::router::{Asked, Endpoint};

/// Resources that one stream may watch; more are left out.
pub(crate) const MOST: usize = 256;

/// Who watches.
#[derive(Clone)]
pub(crate) struct Who {
    pub(crate) asked: Asked,
    pub(crate) scope: Scope,
    pub(crate) secrets: RequestSecrets,
}

/// What is watched, until it is dropped.
pub(crate) struct Watching {
    endpoint: Arc<Endpoint>,
    who: Who,
    servers: HashMap<ServerName, Watched>,
    changed: Arc<Waiting>,
}

/// The resources of one server.
struct Watched {
    uris: BTreeSet<String>,
    task: AbortHandle,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// URIs that the client is to be told of, as they are shown.
#[derive(Default)]
struct Waiting {
    uris: Mutex<BTreeSet<String>>,
    filled: Notify,
}

impl Watching {
    /// Nothing yet.
    pub(crate) fn new(endpoint: &Arc<Endpoint>, who: Who) -> Self {
        Self { endpoint: endpoint.clone(), who, servers: HashMap::new(), changed: Arc::default() }
    }

    /// Watches these URIs, as they are shown, and no others. Those that can be watched; the rest is nobody's.
    pub(crate) async fn set(&mut self, shown: &[String]) -> Vec<String> {
        let mut wanted: BTreeMap<ServerName, (Option<Label>, BTreeSet<String>)> = BTreeMap::new();
        let mut granted = Vec::new();
        for uri in shown.iter().take(MOST) {
            let (server, label, raw) = match &self.who.asked.place {
                Place::One(server) => (server.clone(), None, uri.as_str()),
                Place::All => match self.endpoint.runtime.server_of_uri(&self.who.scope, uri).await {
                    Ok((server, raw)) => (server.server().clone(), Some(server.label()), raw),
                    Err(_) => continue,
                },
            };
            wanted.entry(server).or_insert_with(|| (label, BTreeSet::new())).1.insert(raw.to_owned());
            granted.push(uri.clone());
        }
        self.servers.retain(|server, _| wanted.contains_key(server));
        for (server, (label, uris)) in wanted {
            if self.servers.get(&server).is_some_and(|watched| watched.uris == uris) {
                continue;
            }
            let before = self.servers.remove(&server);
            let task = self.watch(server.clone(), label, &uris, before.is_some());
            self.servers.insert(server, Watched { uris, task });
        }
        granted
    }

    /// The next resource that changed, as it is shown. May be dropped and asked again.
    pub(crate) async fn next(&self) -> String {
        loop {
            let first = self.changed.uris.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
            if let Some(uri) = first {
                return uri;
            }
            self.changed.filled.notified().await;
        }
    }

    fn watch(&self, server: ServerName, label: Option<Label>, uris: &BTreeSet<String>, is_again: bool) -> AbortHandle {
        let (runtime, waiting) = (self.endpoint.runtime.clone(), self.changed.clone());
        let wanted = WatchResources {
            server: server.clone(),
            uris: uris.iter().cloned().collect(),
            is_again,
            caller: self.who.asked.caller.clone(),
            scope: self.who.scope.clone(),
            secrets: self.who.secrets.clone(),
            request_id: self.who.asked.request_id.clone(),
            changed: Arc::new(move |uri| {
                let shown = label.as_ref().map_or_else(|| uri.to_owned(), |label| shown_uri(label, uri));
                let mut uris = waiting.uris.lock().unwrap_or_else(PoisonError::into_inner);
                // A server may tell of parts of what is watched, as many as it likes.
                if uris.len() < MOST {
                    uris.insert(shown);
                }
                drop(uris);
                waiting.filled.notify_one();
            }),
        };
        let task = tokio::spawn(async move {
            let error = runtime.watch_resources(wanted).await;
            tracing::info!(%server, "resources are not watched any more: {error}");
        });
        task.abort_handle()
    }
}
