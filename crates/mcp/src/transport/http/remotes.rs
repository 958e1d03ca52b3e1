//! What all sessions with remote servers share: the HTTP clients, and per server what its tool list taught.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use caribou_core::bounds::MAX_REMEMBERED_SERVERS;
use caribou_core::config::{Remote, ServerConfig};
use caribou_core::ids::ServerName;
use caribou_core::network::AllowedNetworks;
use caribou_egress::{Guard, WayOut};

use super::client::HttpClient;
use super::mirrors::Mirrors;

/// Shared by all remote sessions of the process.
pub(crate) struct Remotes {
    /// For servers of the operator.
    client: HttpClient,
    /// For personal connections.
    guarded: HttpClient,
    mirrors: Mutex<HashMap<ServerName, (String, Arc<Mirrors>)>>,
}

impl Remotes {
    /// Builds the clients; personal connections reach `allowed` beside the public internet. Panics inside the TLS library unless a rustls provider was installed before.
    ///
    /// # Errors
    /// The system's certificates cannot be loaded.
    pub(crate) fn new(allowed: AllowedNetworks, way_out: &WayOut) -> Result<Arc<Self>, String> {
        let client = HttpClient::new(way_out, None)?;
        let guarded = HttpClient::new(way_out, Some(Guard::new(allowed)))?;
        Ok(Arc::new(Self { client, guarded, mirrors: Mutex::default() }))
    }

    /// The client that requests to this server are sent with.
    pub(crate) fn client_for(&self, server: &ServerConfig) -> HttpClient {
        if server.is_personal() { self.guarded.clone() } else { self.client.clone() }
    }

    /// What the tool list of this server taught, at this URL.
    pub(crate) fn mirrors(&self, server: &ServerName, remote: &Remote) -> Arc<Mirrors> {
        let mut known = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((url, mirrors)) = known.get(server)
            && *url == remote.url
        {
            return Arc::clone(mirrors);
        }
        if known.len() >= MAX_REMEMBERED_SERVERS {
            known.clear();
        }
        let mirrors = Arc::new(Mirrors::default());
        known.insert(server.clone(), (remote.url.clone(), Arc::clone(&mirrors)));
        mirrors
    }
}
