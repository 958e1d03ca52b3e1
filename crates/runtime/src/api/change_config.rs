//! Read and change the stored configuration (contract 2.2).
//!
//! A change is judged before anything is written: the masked values are restored, the entries must load, and what
//! they start must be allowed. Then it is written, put in force and answered, as one unit that runs to its end whether
//! or not its caller still waits.

use caribou_core::bounds::CONFIG_ANSWER;
use caribou_core::config::{ETag, IfMatch};
use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::config::{Change, ConfigurationDesk, ConfigurationMessage, LaunchRefused};
use crate::error::VerbError;

/// The stored configuration as it is shown: masked, references unresolved, every field filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigView {
    /// The servers by name, in document order.
    pub servers: Map<String, Value>,
    /// The tag of what is stored; `None` while nothing is.
    pub etag: Option<ETag>,
    /// Task servers that are other ones here than in what is stored, until this replica is restarted.
    pub pending_restart: Vec<ServerName>,
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

impl ConfigChange {
    /// The one server it is about, if it is about one.
    fn server(&self) -> Option<ServerName> {
        match self {
            Self::Replace { name, .. } | Self::SetEnabled { name, .. } | Self::Remove { name } => {
                Some(ServerName::new(&**name))
            }
            Self::Add(servers) if servers.len() == 1 => servers.keys().next().map(|name| ServerName::new(&**name)),
            Self::Add(_) | Self::ReplaceAll(_) => None,
        }
    }
}

impl Runtime {
    /// What is stored.
    ///
    /// # Errors
    /// `denied` to all but admins, `unavailable` when this replica follows no configuration or cannot read it, `invalid` when it is no document,
    /// `timeout` when other changes or the disk take too long.
    pub async fn read_config(&self, caller: &Caller) -> Result<ConfigView, VerbError> {
        caller.principal.administers()?;
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
    /// `denied`: the caller is no admin. `conflict`: the condition does not hold, the name is taken, or the document is
    /// read-only; `not_found`: no such server; `invalid`: the change would not load or may not be started. Nothing was
    /// written then. `outcome_unknown`: the write broke off midway, or takes too long and may still be made. `config_changed`: it was
    /// written, but is not in force or cannot be shown.
    pub async fn change_config(
        &self,
        caller: &Caller,
        change: ConfigChange,
        condition: IfMatch,
    ) -> Result<ConfigView, VerbError> {
        let mut entry = Entry::new("change_config", caller);
        entry.server = change.server();
        self.audit.around(entry, self.change_on_record(caller, change, condition)).await
    }

    async fn change_on_record(
        &self,
        caller: &Caller,
        change: ConfigChange,
        condition: IfMatch,
    ) -> Result<ConfigView, VerbError> {
        caller.principal.administers()?;
        let desk = self.desk()?;
        let _turn = desk.turn()?;
        let (done, answer) = oneshot::channel();
        let by = caller.principal.id.clone();
        let change = Change { change, by, condition, launch_refused: self.launch_refused(caller) };
        let _ = desk.role.cast(ConfigurationMessage::Change { change, done });
        match timeout(CONFIG_ANSWER, answer).await {
            Ok(answer) => answer.map_err(|_| stopping())?,
            Err(_) => Err(late(Code::OutcomeUnknown, "it is unknown whether the change is made: it was not done")),
        }
    }

    /// Puts on record that the launch policy refused a server that the caller submitted (contract 3.1).
    fn launch_refused(&self, caller: &Caller) -> LaunchRefused {
        let entry = Entry { outcome: Code::Invalid.as_str(), ..Entry::new("launch_refused", caller) };
        let audit = self.audit.clone();
        Box::new(move |server| audit.record(Entry { server: Some(server.clone()), ..entry.clone() }))
    }

    pub(super) fn desk(&self) -> Result<&ConfigurationDesk, VerbError> {
        let missing = || VerbError::new(Code::Unavailable, "this replica follows no configuration that can be changed");
        self.configuration.as_ref().ok_or_else(missing)
    }
}

pub(super) fn late(code: Code, what: &str) -> VerbError {
    let detail = format!("{what} within {} s; read the configuration to see what is stored", CONFIG_ANSWER.as_secs());
    VerbError::new(code, detail)
}

pub(super) fn stopping() -> VerbError {
    VerbError::new(Code::Unavailable, "this replica is stopping")
}
