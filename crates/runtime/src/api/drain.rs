//! Hand over what this replica holds, before it stops (durability.md 2.2, drain).

use std::time::Duration;

use tokio::sync::oneshot;

use crate::Runtime;
use crate::session::RegistryMessage;

impl Runtime {
    /// Takes nothing new, and hands over the sessions that are idle, now and as they fall idle, so that other replicas
    /// open them at once. Calls are answered meanwhile. Resolves when no session is left, or when `within` has passed;
    /// at once for a replica whose sessions no other one could open.
    pub async fn drain(&self, within: Duration) {
        let Some(life) = self.life.as_ref().filter(|life| life.is_shared()) else { return };
        life.drain().await;
        if self.router.homes.peers().is_none() {
            return;
        }
        let (done, drained) = oneshot::channel();
        let _ = self.router.registry.cast(RegistryMessage::Drain { done });
        if tokio::time::timeout(within, drained).await.is_err() {
            tracing::warn!("some sessions are still in use; they are closed now");
        }
    }
}
