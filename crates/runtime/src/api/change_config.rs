//! Read and change the stored configuration (contract 2.2).
//!
//! A change is judged before anything is written: the masked values are restored, the entries must load, and what
//! they start must be allowed. Then it is written, put in force and answered, as one unit that runs to its end whether
//! or not its caller still waits.

use caribou_core::bounds::CONFIG_ANSWER;
use caribou_core::config::{ETag, IfMatch};
use caribou_core::failure::Code;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::Runtime;
use crate::config::{ConfigurationDesk, ConfigurationMessage};
use crate::error::VerbError;

/// The stored configuration as it is shown: masked, references unresolved, every field filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigView {
    /// The servers by name, in document order.
    pub servers: Map<String, Value>,
    /// The tag of what is stored; `None` while nothing is.
    pub etag: Option<ETag>,
}

/// One change of the stored configuration.
#[derive(Clone)]
pub enum ConfigChange {
    /// Replaces the whole set of servers.
    ReplaceAll(Map<String, Value>),
    /// Adds servers.
    Add(Map<String, Value>),
    /// Replaces one server completely.
    Replace {
        /// Its name.
        name: String,
        /// What it is from now on.
        server: Map<String, Value>,
    },
    /// Switches one server on or off, leaving every other byte.
    SetEnabled {
        /// Its name.
        name: String,
        /// On or off.
        enabled: bool,
    },
    /// Removes one server.
    Remove {
        /// Its name.
        name: String,
    },
}

impl Runtime {
    /// What is stored.
    ///
    /// # Errors
    /// `unavailable` when this replica follows no configuration or cannot read it, `invalid` when it is no document,
    /// `timeout` when other changes or the disk take too long.
    pub async fn read_config(&self) -> Result<ConfigView, VerbError> {
        let desk = self.desk()?;
        let _turn = desk.turn()?;
        let (done, answer) = oneshot::channel();
        let _ = desk.role.cast(ConfigurationMessage::Read { done });
        match timeout(CONFIG_ANSWER, answer).await {
            Ok(answer) => answer.map_err(|_| stopping())?,
            Err(_) => Err(late(Code::Timeout, "the configuration was not read")),
        }
    }

    /// Changes what is stored, and puts it in force. Answers with what is stored then.
    ///
    /// # Errors
    /// `conflict`: the condition does not hold, the name is taken, or the document is read-only; `not_found`: no such
    /// server; `invalid`: the change would not load or may not be started. Nothing was written then.
    /// `outcome_unknown`: the write broke off midway, or takes too long and may still be made. `config_changed`: it was
    /// written, but is not in force or cannot be shown.
    pub async fn change_config(&self, change: ConfigChange, condition: IfMatch) -> Result<ConfigView, VerbError> {
        let desk = self.desk()?;
        let _turn = desk.turn()?;
        let (done, answer) = oneshot::channel();
        let _ = desk.role.cast(ConfigurationMessage::Change { change, condition, done });
        match timeout(CONFIG_ANSWER, answer).await {
            Ok(answer) => answer.map_err(|_| stopping())?,
            Err(_) => Err(late(Code::OutcomeUnknown, "it is unknown whether the change is made: it was not done")),
        }
    }

    pub(super) fn desk(&self) -> Result<&ConfigurationDesk, VerbError> {
        let missing = || VerbError::new(Code::Unavailable, "this replica follows no configuration that can be changed");
        self.configuration.as_ref().ok_or_else(missing)
    }
}

fn late(code: Code, what: &str) -> VerbError {
    let detail = format!("{what} within {} s; read the configuration to see what is stored", CONFIG_ANSWER.as_secs());
    VerbError::new(code, detail)
}

fn stopping() -> VerbError {
    VerbError::new(Code::Unavailable, "this replica is stopping")
}
