//! The states that the stored configuration had: list them, look at one, and go back to one.

use caribou_core::bounds::CONFIG_ANSWER;
use caribou_core::config::IfMatch;
use caribou_core::failure::Code;
use caribou_core::reset::MAX_HISTORY_PAGE;
use caribou_ports::store::RevisionHead;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::change_config::{late, stopping};
use crate::Runtime;
use crate::api::change_config::ConfigView;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::config::{ConfigurationMessage, not_done, shown};
use crate::error::VerbError;

impl Runtime {
    /// The revisions before `before`, the last first, at most `limit`.
    ///
    /// # Errors
    /// `denied` to all but admins; `not_found` where they are not kept, as of a file; `unavailable` when the store
    /// cannot be asked.
    pub async fn config_history(
        &self,
        caller: &Caller,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<RevisionHead>, VerbError> {
        caller.principal.administers()?;
        let history = self.desk()?.source.history(before, limit.min(MAX_HISTORY_PAGE)).await.map_err(not_done)?;
        history.ok_or_else(|| {
            let detail =
                "the configuration is a file, of which no history is kept; `config.source: database` keeps one";
            VerbError::new(Code::NotFound, detail)
        })
    }

    /// One revision, masked. Nothing of it is in force unless it is the last one.
    ///
    /// # Errors
    /// As [`Self::config_history`]; `not_found` also when it is not kept any more.
    pub async fn config_revision(&self, caller: &Caller, revision: i64) -> Result<ConfigView, VerbError> {
        caller.principal.administers()?;
        let found = self.desk()?.source.revision(revision).await.map_err(not_done)?;
        let missing =
            || VerbError::new(Code::NotFound, format!("there is no revision {revision} of the configuration"));
        shown(&found.ok_or_else(missing)?, Vec::new())
    }

    /// Stores an earlier revision anew, as the next one, and puts it in force. Answers with what is stored then.
    ///
    /// # Errors
    /// As [`Self::change_config`]; `not_found`: it is not kept; `invalid`: it cannot be used any more.
    pub async fn roll_back_config(
        &self,
        caller: &Caller,
        revision: i64,
        condition: IfMatch,
    ) -> Result<ConfigView, VerbError> {
        let rolling = async {
            caller.principal.administers()?;
            let desk = self.desk()?;
            let _turn = desk.turn()?;
            let (done, answer) = oneshot::channel();
            let by = caller.principal.id.clone();
            let _ = desk.role.cast(ConfigurationMessage::RollBack { revision, by, condition, done });
            match timeout(CONFIG_ANSWER, answer).await {
                Ok(answer) => answer.map_err(|_| stopping())?,
                Err(_) => Err(late(Code::OutcomeUnknown, "it is unknown whether the change is made: it was not done")),
            }
        };
        self.audit.around(Entry::new("roll_back_config", caller), rolling).await
    }
}
