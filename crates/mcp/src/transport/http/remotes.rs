//! What all sessions with remote servers share: the HTTP client, and per server what its tool list taught.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use caribou_core::bounds::MAX_REMEMBERED_SERVERS;
use caribou_core::config::Remote;
use caribou_core::ids::ServerName;

use super::client::client;
use super::mirrors::Mirrors;

/// Shared by all remote sessions of the process.
pub(crate) struct Remotes {
    /// The one HTTP client.
    pub(crate) client: reqwest::Client,
    mirrors: Mutex<HashMap<ServerName, (String, Arc<Mirrors>)>>,
}

impl Remotes {
    /// Builds the client. Panics inside the TLS library unless a rustls provider was installed before.
    ///
    /// # Errors
    /// The system's certificates cannot be loaded.
    pub(crate) fn new() -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self { client: client()?, mirrors: Mutex::default() }))
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
