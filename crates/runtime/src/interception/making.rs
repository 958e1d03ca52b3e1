//! From the entries in force to the chain of one server.
//!
//! An entry that leads nowhere costs itself and nothing else. When there are entries and nobody who makes interceptors
//! of them, the server is refused: they may be there to keep calls back.

use std::sync::Arc;

use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use caribou_ports::interceptor::Interceptors;

use super::chain::{Chain, Link};
use crate::config::InForce;
use crate::error::VerbError;

/// Makes chains.
#[derive(Clone)]
pub(crate) struct Interception {
    pub(crate) makers: Option<Arc<dyn Interceptors>>,
    pub(crate) in_force: InForce,
}

impl Interception {
    /// A new chain for `server`, of the entries now in force.
    pub(crate) fn chain(&self, server: &ServerName) -> Result<Arc<Chain>, VerbError> {
        let servers = self.in_force.get();
        let entries = &servers.interceptors;
        if entries.is_empty() {
            return Ok(Arc::default());
        }
        let Some(makers) = &self.makers else {
            let detail = format!(
                "server `{server}` is refused: `mcpInterceptors` lists {}, and this program can run none",
                entries.len()
            );
            return Err(VerbError::new(Code::Unavailable, detail));
        };
        let mut links = Vec::with_capacity(entries.len());
        for entry in entries.iter() {
            match makers.build(entry, server) {
                Ok(Some(interceptor)) => links.push(Link::new(entry, interceptor)),
                Ok(None) => {
                    tracing::debug!(%server, interceptor = entry.name(), "wants nothing to do with this server")
                }
                Err(why) => tracing::warn!(%server, "interceptor `{}` is skipped: {why}", entry.name()),
            }
        }
        Ok(Arc::new(Chain::of(links)))
    }
}
