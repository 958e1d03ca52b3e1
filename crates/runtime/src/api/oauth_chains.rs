//! Show the stored chains of refresh tokens, ask for a token, and forget a chain. Never shows a token (invariant O3).

use std::time::Duration;

use caribou_core::config::personal;
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, ServerName};
use caribou_ports::store::StoredChain;

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::error::VerbError;

/// A chain as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainView {
    /// The server, or the runtime name of a personal connection.
    pub server: ServerName,
    /// `idle`, `refreshing`, `unknown` or `reauth_needed`.
    pub state: &'static str,
    /// Grows with each token that took the place of another.
    pub generation: u64,
    /// How long the access token lives; `None` = there is none, or it has expired.
    pub access_left: Option<Duration>,
    /// Whether the provider was seen to rotate its refresh tokens.
    pub rotates: bool,
    /// Failures in a row.
    pub failures: u32,
    /// The last of them.
    pub last_error: Option<String>,
    /// When it may be tried again.
    pub next_try: Option<Duration>,
    /// Which replica refreshes it.
    pub holder: Option<BootId>,
    /// When it last changed, in microseconds of the Unix epoch.
    pub changed_at_us: i64,
}

impl Runtime {
    /// All stored chains, by server.
    ///
    /// # Errors
    /// `denied` to all but admins. `not_found`: this replica stores none. `unavailable`: the store cannot be asked now.
    pub async fn oauth_chains(&self, caller: &Caller) -> Result<Vec<ChainView>, VerbError> {
        caller.principal.administers()?;
        Ok(self.chains.rows().await?.iter().map(view).collect())
    }

    /// Asks for another access token, whatever the one in hand is good for, and waits for it.
    ///
    /// # Errors
    /// `denied` to all but admins, and when a person must act. `not_found`: no such server. `conflict`: it has no
    /// `oauth` in force. `unavailable`: there is no token to be had now.
    pub async fn refresh_oauth(&self, caller: &Caller, server: &ServerName) -> Result<(), VerbError> {
        let entry = Entry { server: Some(server.clone()), ..Entry::new("refresh_oauth", caller) };
        self.audit.around(entry, self.refresh_on_record(caller, server)).await
    }

    async fn refresh_on_record(&self, caller: &Caller, server: &ServerName) -> Result<(), VerbError> {
        caller.principal.administers()?;
        if personal::is_runtime_name(server) {
            return Err(VerbError::new(Code::Denied, "the tokens of a personal connection are its owner's alone"));
        }
        let current = self.catalog.current().await;
        let found = current.entries.iter().find(|entry| entry.name == *server).and_then(|entry| entry.config.clone());
        let Some(config) = found.filter(|config| config.enabled) else {
            return Err(VerbError::new(Code::NotFound, format!("no server `{server}` takes part")));
        };
        self.chains.another(&config).await.map(drop)
    }

    /// Deletes a chain: the next token is asked for with the configured refresh token.
    ///
    /// # Errors
    /// `denied` to all but admins. `not_found`: there is none of this name. `unavailable`: the store cannot be asked now.
    pub async fn forget_oauth(&self, caller: &Caller, server: &ServerName) -> Result<(), VerbError> {
        let entry = Entry { server: Some(server.clone()), ..Entry::new("forget_oauth", caller) };
        self.audit.around(entry, self.forget_on_record(caller, server)).await
    }

    async fn forget_on_record(&self, caller: &Caller, server: &ServerName) -> Result<(), VerbError> {
        caller.principal.administers()?;
        if self.chains.start_over(server).await? {
            return Ok(());
        }
        Err(VerbError::new(Code::NotFound, format!("there is no token chain of `{server}`")))
    }
}

fn view(row: &StoredChain) -> ChainView {
    let some = |left: Duration| (!left.is_zero()).then_some(left);
    ChainView {
        server: row.connection.clone(),
        state: row.state.as_str(),
        generation: row.generation,
        access_left: some(row.access_left),
        rotates: row.rotated,
        failures: row.failures,
        last_error: row.last_error.clone(),
        next_try: some(row.retry_in),
        holder: row.lease_owner.clone().filter(|_| !row.lease_left.is_zero()),
        changed_at_us: row.changed_at_us,
    }
}
