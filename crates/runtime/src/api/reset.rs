//! Forget everything that was opened or found so far.

use caribou_core::bounds;
use caribou_core::failure::Code;
use tokio::sync::oneshot;

use crate::Runtime;
use crate::config::ConfigurationMessage;
use crate::error::VerbError;

impl Runtime {
    /// Closes every session and forgets every tool list; the next look-up finds all anew (contract 5.7). When it
    /// returns, nothing opened before serves a new call (invariant G1).
    ///
    /// # Errors
    /// There is no configuration to follow, or it takes longer than a few seconds.
    pub async fn reset(&self) -> Result<(), VerbError> {
        let Some(configuration) = &self.configuration else {
            return Err(VerbError::new(Code::Unavailable, "this replica follows no configuration"));
        };
        let (done, reset) = oneshot::channel();
        let _ = configuration.role.cast(ConfigurationMessage::Reset { done });
        match tokio::time::timeout(bounds::SESSION_CLOSE * 2, reset).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(VerbError::new(Code::Timeout, "the reset was begun, but is not done yet")),
        }
    }

    /// Why the stored configuration is not in force, if it is not: the last good one is (contract 5.4).
    pub fn config_problem(&self) -> Option<String> {
        self.configuration.as_ref().and_then(|configuration| configuration.problem())
    }
}
