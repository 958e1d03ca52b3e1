//! Which task servers are other ones in what is stored than in this replica (contract 6.12).
//!
//! Told in the log once each time it changes, and with every answer about the configuration.

use std::sync::{Arc, PoisonError, RwLock};

use caribou_core::ids::ServerName;

/// The servers by name, sorted; shared by the actor, which writes them, and by who asks.
#[derive(Clone, Default)]
pub(crate) struct Pending(Arc<RwLock<Vec<ServerName>>>);

impl Pending {
    pub(crate) fn get(&self) -> Vec<ServerName> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, servers: Vec<ServerName>) {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if *now != servers && !servers.is_empty() {
            let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
            tracing::warn!(
                "MCP task configuration changed after startup ({}): running tasks go on as before, and nothing new is \
                 submitted there until Caribou is restarted",
                names.join(", ")
            );
        }
        *now = servers;
    }
}
