//! Forget everything that was opened or found so far.

use caribou_core::bounds;
use caribou_core::failure::Code;
use caribou_core::ids::BootId;
use tokio::sync::oneshot;

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::config::{ConfigurationMessage, StaleConfig};
use crate::error::VerbError;

/// How far a reset is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only this replica.
    Process,
    /// Everybody who follows the same configuration file, before their next look-up.
    Directory,
    /// Every replica of the cluster.
    Cluster,
}

impl Reach {
    /// The word shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Directory => "directory",
            Self::Cluster => "cluster",
        }
    }
}

/// A reset that was made.
#[derive(Clone, Debug)]
pub struct ResetDone {
    /// How far it is heard.
    pub reach: Reach,
    /// Replicas that have done it.
    pub confirmed: Vec<BootId>,
    /// Replicas that were told and have not said so yet.
    pub unconfirmed: Vec<BootId>,
}

impl Runtime {
    /// Closes every session and forgets every tool list; the next look-up finds all anew (contract 5.7). When it
    /// returns, nothing opened before serves a new call (invariant G1). What is stored is read anew, so a reference
    /// such as `$TOKEN` means what it means then.
    ///
    /// # Errors
    /// The caller is no admin; or there is no configuration to follow, or it takes longer than a few seconds.
    pub async fn reset(&self, caller: &Caller) -> Result<ResetDone, VerbError> {
        self.audit.around(Entry::new("reset", caller), self.reset_for(caller)).await
    }

    async fn reset_for(&self, caller: &Caller) -> Result<ResetDone, VerbError> {
        caller.principal.administers()?;
        let (done, reset) = oneshot::channel();
        let _ = self.desk()?.role.cast(ConfigurationMessage::Reset { done });
        match tokio::time::timeout(bounds::SESSION_CLOSE * 2, reset).await {
            Ok(Ok(published)) => Ok(ResetDone {
                reach: if published { Reach::Directory } else { Reach::Process },
                confirmed: vec![self.boot.clone()],
                unconfirmed: Vec::new(),
            }),
            _ => Err(VerbError::new(Code::Timeout, "the reset was begun, but is not done yet")),
        }
    }

    /// Why what is stored is not in force, if it is not: the last good configuration is (contract 5.4).
    pub fn stale_config(&self) -> Option<StaleConfig> {
        self.configuration.as_ref().and_then(|configuration| configuration.stale.get())
    }
}
