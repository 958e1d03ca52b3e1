//! The callers' side of the configuration.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_ports::config_source::ConfigSource;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::actor::{Configuration, ConfigurationMessage};
use super::pending::Pending;
use super::stale::Staleness;
use crate::error::VerbError;
use crate::metrics::Metrics;
use crate::reset::Seen;
use crate::roles::Role;

/// The callers' side.
#[derive(Clone)]
pub(crate) struct ConfigurationDesk {
    pub(crate) role: Role<ConfigurationMessage>,
    pub(crate) source: Arc<dyn ConfigSource>,
    pub(crate) stale: Staleness,
    pub(crate) pending: Pending,
    /// What is heard of changes of other replicas; `None` = there are none.
    pub(crate) seen: Option<Seen>,
    /// Taken before a message is sent, since mailboxes have no bound of their own (invariant B1).
    turns: Arc<Semaphore>,
}

impl ConfigurationDesk {
    /// The callers' side of `configuration`, before its actor runs.
    pub(crate) fn new(configuration: &Configuration, seen: Option<Seen>, metrics: Arc<Metrics>) -> Self {
        Self {
            role: Role::vacant(),
            source: configuration.source.clone(),
            stale: Staleness::none(metrics),
            pending: Pending::default(),
            seen,
            turns: Arc::new(Semaphore::new(bounds::MAX_CONFIG_REQUESTS)),
        }
    }

    /// A turn with the actor, kept until its answer is there.
    pub(crate) fn turn(&self) -> Result<OwnedSemaphorePermit, VerbError> {
        self.turns.clone().try_acquire_owned().map_err(|_| VerbError {
            retry_after: Some(Duration::from_secs(1)),
            ..VerbError::new(Code::Busy, "too many requests about the configuration wait already; try again")
        })
    }

    /// Sees to it that what is stored is in force, and what other replicas changed; costs one look at the file while
    /// nothing changed.
    ///
    /// # Errors
    /// Nobody has known for too long whether what is in force still holds.
    pub(crate) async fn refresh(&self) -> Result<(), VerbError> {
        let mut is_behind = self.source.has_changed();
        if let Some(seen) = &self.seen {
            seen.in_touch().await?;
            is_behind |= seen.is_behind();
        }
        if is_behind {
            let (done, seen) = oneshot::channel();
            let _ = self.role.cast(ConfigurationMessage::Refresh { done });
            let _ = tokio::time::timeout(bounds::ROLE_ANSWER, seen).await;
        }
        Ok(())
    }
}
