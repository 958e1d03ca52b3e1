//! Which connections there are: one for each server and what its `oauth` block stands for.
//!
//! Owns what outlives what: a session, a discovery, a reset and a server that is switched off, or whose entry is wrong
//! for the moment, leave the chain as it is. It is dropped when the server is gone or its block starts another chain;
//! an edit that leaves the chain the same (another client secret, other form fields) goes on with its refresh token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use caribou_core::bounds::{CHAIN_STOP, MAX_REMEMBERED_SERVERS};
use caribou_core::config::{OAuth, OAuthGrant, ServerConfig, ServerEntry};
use caribou_core::ids::{BootId, ServerName};
use caribou_core::oauth::Fingerprint;
use caribou_ports::access_token::AccessTokens;
use caribou_ports::mcp::OpenError;
use caribou_ports::token_endpoint::TokenEndpoint;
use ractor::ActorCell;

use super::alarm::Alarm;
use super::chain::MemoryChain;
use super::connection::{Chain, Connection, Desk};
use super::stored::{Nudges, Shared, SharedChain, StoredChains, Underway};
use crate::metrics::Metrics;
use crate::outside::Outside;

/// All connections of a replica. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(crate) struct Chains {
    endpoint: Option<Arc<dyn TokenEndpoint>>,
    metrics: Arc<Metrics>,
    root: Arc<OnceLock<ActorCell>>,
    connections: Arc<Mutex<Connections>>,
    /// Where chains are shared; `None` = each replica has its own, in memory.
    pub(super) stored: Option<StoredChains>,
    shared: Shared,
}

/// By server, and by what its `oauth` block stands for: one that is still opening sessions under former settings does
/// not displace the chain of those in force.
type Connections = HashMap<(ServerName, Fingerprint), Arc<Connection>>;

impl Chains {
    pub(crate) fn new(outside: &Outside, boot: BootId, metrics: Arc<Metrics>) -> Self {
        let (endpoint, stored) = (outside.token_endpoint.clone(), outside.oauth_chains.clone());
        let (root, connections) = Default::default();
        let nudges = Nudges::over(stored.as_ref().and_then(|stored| stored.wakeups.clone()));
        let alarm = outside.tasks.as_ref().map(|tasks| Alarm::to(&tasks.sinks)).unwrap_or_default();
        let shared = Shared { boot, underway: Underway::new(), nudges, alarm };
        Self { endpoint, metrics, root, connections, stored, shared }
    }

    /// The chain of a connection that there is none of in this process.
    fn chain(&self, name: &ServerName, oauth: &OAuth) -> Chain {
        match self.stored.clone().filter(|_| oauth.grant == OAuthGrant::RefreshToken) {
            None => Chain::Memory(MemoryChain::seeded(oauth)),
            Some(stored) => {
                let (seed, shared) = (Fingerprint::of(oauth), self.shared.clone());
                Chain::Shared(Arc::new(SharedChain::new(name.clone(), seed, stored, shared)))
            }
        }
    }

    /// Begins no refresh any more, and waits for those under way and for what is not stored yet, `CHAIN_STOP` at most.
    pub(crate) async fn stop(&self) {
        if !self.shared.underway.close(CHAIN_STOP).await {
            tracing::error!("a refresh did not end in time: what it brings is lost, and its chain becomes unknown");
        }
    }

    /// Sets under whom the actors live. Before it is told nothing is refreshed.
    pub(crate) fn live_under(&self, root: ActorCell) {
        let _ = self.root.set(root);
    }

    /// The tokens of this server; `None` when it has no OAuth in force. `guarded` tells that its addresses are a
    /// person's own.
    ///
    /// # Errors
    /// It has, and there is nothing to ask token endpoints with, or no room for one more connection.
    pub(crate) fn of(&self, server: &ServerConfig, guarded: bool) -> Result<Option<Arc<dyn AccessTokens>>, OpenError> {
        let Some(oauth) = server.oauth.as_ref().filter(|oauth| oauth.enabled) else { return Ok(None) };
        let name = &server.name;
        let Some(endpoint) = &self.endpoint else {
            return Err(OpenError::Denied(format!(
                "server `{name}` needs the access tokens of its `oauth`, and this runtime was started without a token \
                 endpoint; hand one in as `Outside::token_endpoint`"
            )));
        };
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.clone(), Fingerprint::of(oauth));
        let known = connections.get(&key);
        if let Some(known) = known.filter(|known| *known.desk.oauth == *oauth && known.desk.guarded == guarded) {
            return Ok(Some(known.clone()));
        }
        if known.is_none() && connections.len() >= MAX_REMEMBERED_SERVERS {
            return Err(OpenError::Queued(format!("server `{name}` gets no access token: too many servers have some")));
        }
        let desk = Desk {
            server: name.clone(),
            chain: known.map_or_else(|| self.chain(name, oauth), |known| known.desk.chain.clone()),
            oauth: Arc::new(OAuth::clone(oauth)),
            guarded,
            endpoint: endpoint.clone(),
            slot: Default::default(),
            metrics: self.metrics.clone(),
        };
        let connection = Connection::new(desk, self.root.clone());
        connections.insert(key, connection.clone());
        Ok(Some(connection))
    }

    /// Lets this process's share in the chains of a connection go.
    pub(super) fn let_go(&self, server: &ServerName) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|(name, _), _| name != server);
    }

    /// The connections of this name, each with its own settings.
    pub(super) fn connections_of(&self, server: &ServerName) -> Vec<Arc<Connection>> {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.iter().filter(|((name, _), _)| name == server).map(|(_, connection)| connection.clone()).collect()
    }

    /// Drops the chains of configured servers that these are not any more. Those of personal connections stay.
    pub(crate) fn keep<'e>(&self, configured: impl Iterator<Item = &'e ServerEntry>) {
        let kept: HashMap<&ServerName, Option<Fingerprint>> = configured
            .filter_map(|entry| match &entry.config {
                Ok(server) => Some((&entry.name, Some(Fingerprint::of(server.oauth.as_ref()?)))),
                // What is wrong today may be mended tomorrow, and its rotated token is nowhere else.
                Err(_) => Some((&entry.name, None)),
            })
            .collect();
        let is_kept =
            |name: &ServerName, fingerprint| kept.get(name).is_some_and(|now| now.is_none_or(|now| now == fingerprint));
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|(name, fingerprint), connection| connection.desk.guarded || is_kept(name, *fingerprint));
    }
}
