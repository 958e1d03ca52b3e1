//! The resources that one stream watches for its client.
//!
//! Each server is watched once for a stream, with all its URIs. What changed waits to be told as a set of URIs, so a
//! client that reads slowly is told of each resource once and nothing piles up (invariant B1). What a server grants of
//! them is known once it was asked, which a client that wants to know waits for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::ids::{Scope, ServerName};
use caribou_core::namespace::{Label, shown_uri};
use caribou_runtime::{RequestSecrets, VerbError, WatchResources};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::place::Place;
use crate::router::{Asked, Endpoint};

/// Resources that one stream may watch; more are left out.
pub(crate) const MOST: usize = 256;

/// How long a client waits to hear what servers grant: one may have to be started first. What is not known by then is
/// watched as soon as it can be.
const DECIDED: Duration = Duration::from_secs(10);

/// What a server says: the URIs that it grants, as it knows them; or why it grants none.
type Verdict = Result<Vec<String>, VerbError>;

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
    /// Whether what is watched may have changed before, so that each is told of once when it is watched.
    is_behind: bool,
    servers: HashMap<ServerName, Watched>,
    /// What can be watched: as it is shown, and whose it is.
    wished: Vec<(String, ServerName, String)>,
    changed: Arc<Waiting>,
}

/// The resources of one server.
struct Watched {
    uris: BTreeSet<String>,
    verdict: watch::Receiver<Option<Verdict>>,
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
        let (servers, wished) = (HashMap::new(), Vec::new());
        Self { endpoint: endpoint.clone(), who, is_behind: false, servers, wished, changed: Arc::default() }
    }

    /// Nothing yet, for a client that was told before that it is subscribed: what changes from then on until it is
    /// watched here is told as one change.
    pub(crate) fn behind(endpoint: &Arc<Endpoint>, who: Who) -> Self {
        Self { is_behind: true, ..Self::new(endpoint, who) }
    }

    /// Watches these URIs, as they are shown, and no others. Those that are nobody's are left out.
    pub(crate) async fn set(&mut self, shown: &[String]) {
        let mut wanted: BTreeMap<ServerName, (Option<Label>, BTreeSet<String>)> = BTreeMap::new();
        self.wished.clear();
        for uri in shown.iter().take(MOST) {
            let (server, label, raw) = match &self.who.asked.place {
                Place::One(server) => (server.clone(), None, uri.as_str()),
                Place::All => match self.endpoint.runtime.server_of_uri(&self.who.scope, uri).await {
                    Ok((server, raw)) => (server.server().clone(), Some(server.label()), raw),
                    Err(_) => continue,
                },
            };
            self.wished.push((uri.clone(), server.clone(), raw.to_owned()));
            wanted.entry(server).or_insert_with(|| (label, BTreeSet::new())).1.insert(raw.to_owned());
        }
        self.servers.retain(|server, _| wanted.contains_key(server));
        for (server, (label, uris)) in wanted {
            if self.servers.get(&server).is_some_and(|watched| watched.uris == uris) {
                continue;
            }
            let before = self.servers.remove(&server);
            let (verdict, task) = self.watch(server.clone(), label, &uris, self.is_behind || before.is_some());
            self.servers.insert(server, Watched { uris, verdict, task });
        }
    }

    /// Those that are watched, as they are shown: what a server refuses is not.
    pub(crate) async fn granted(&self) -> Vec<String> {
        let until = Instant::now() + DECIDED;
        let mut granted = Vec::new();
        for (shown, server, raw) in &self.wished {
            match self.verdict(server, until).await {
                Some(Ok(uris)) if !uris.contains(raw) => {}
                Some(Err(_)) => {}
                Some(Ok(_)) | None => granted.push(shown.clone()),
            }
        }
        granted
    }

    /// Why the one resource that is watched is not; `None` = it is, or nobody knows yet.
    pub(crate) async fn refusal(&self) -> Option<VerbError> {
        let (_, server, _) = self.wished.first()?;
        self.verdict(server, Instant::now() + DECIDED).await?.err()
    }

    async fn verdict(&self, server: &ServerName, until: Instant) -> Option<Verdict> {
        let mut verdict = self.servers.get(server)?.verdict.clone();
        let known = timeout_at(until, verdict.wait_for(Option::is_some)).await.ok()?;
        known.ok().and_then(|known| known.clone())
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

    fn watch(
        &self,
        server: ServerName,
        label: Option<Label>,
        uris: &BTreeSet<String>,
        is_again: bool,
    ) -> (watch::Receiver<Option<Verdict>>, AbortHandle) {
        let (runtime, waiting) = (self.endpoint.runtime.clone(), self.changed.clone());
        let (verdict, heard) = watch::channel(None);
        let verdict = Arc::new(verdict);
        let granted = verdict.clone();
        let wanted = WatchResources {
            server: server.clone(),
            uris: uris.iter().cloned().collect(),
            is_again,
            caller: self.who.asked.caller.clone(),
            scope: self.who.scope.clone(),
            secrets: self.who.secrets.clone(),
            request_id: self.who.asked.request_id.clone(),
            granted: Arc::new(move |uris| drop(granted.send_replace(Some(Ok(uris.to_vec()))))),
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
            verdict.send_replace(Some(Err(error)));
        });
        (heard, task.abort_handle())
    }
}
