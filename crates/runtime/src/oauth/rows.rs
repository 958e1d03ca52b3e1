//! The rows of stored chains: which go when a configuration is saved (contract 7.6), and what is shown of them.
//!
//! A row that could not be deleted is deleted by the next save, or by hand: nobody presents its token meanwhile.

use std::collections::HashSet;

use caribou_core::config::{OAuth, ServerConfig, personal};
use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use caribou_ports::access_token::AccessToken;
use caribou_ports::store::{StoreError, StoredChain};

use super::chains::Chains;
use crate::error::VerbError;

impl Chains {
    /// The stored configuration holds exactly these servers: the rows of others go. Those of personal connections, and
    /// of servers that are switched off or wrong, stay.
    pub(crate) async fn saved<'n>(&self, servers: impl Iterator<Item = &'n ServerName>) {
        let servers: HashSet<&ServerName> = servers.collect();
        self.delete(|connection| !personal::is_runtime_name(connection) && !servers.contains(connection)).await;
    }

    /// A personal connection is no more: its chain goes, here and in the store.
    pub(crate) async fn forget(&self, connection: &ServerName) {
        self.let_go(connection);
        self.delete(|stored| stored == connection).await;
    }

    async fn delete(&self, is_gone: impl Fn(&ServerName) -> bool) {
        let Some(stored) = &self.stored else { return };
        let rows = match stored.store.list_chains().await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!("the token chains of connections that are gone are not deleted yet: {error}");
                return;
            }
        };
        for row in rows.into_iter().filter(|row| is_gone(&row.connection)) {
            match stored.store.forget_chain(row.grant).await {
                Ok(_) => tracing::info!(server = %row.connection, "its token chain is deleted: the connection is gone"),
                Err(error) => tracing::warn!(server = %row.connection, "its token chain is not deleted yet: {error}"),
            }
        }
    }

    /// All rows, by connection.
    ///
    /// # Errors
    /// Chains are not stored here, or the store cannot be asked.
    pub(crate) async fn rows(&self) -> Result<Vec<StoredChain>, VerbError> {
        let Some(stored) = &self.stored else {
            let detail =
                "this replica keeps token chains in memory only; a database and CARIBOU_CREDENTIALS_KEY store them";
            return Err(VerbError::new(Code::NotFound, detail));
        };
        stored.store.list_chains().await.map_err(|error| unread(&error))
    }

    /// Deletes the row of a connection, and starts over from the configured token. Whether there was one.
    ///
    /// # Errors
    /// As [`Chains::rows`].
    pub(crate) async fn start_over(&self, connection: &ServerName) -> Result<bool, VerbError> {
        let row = self.rows().await?.into_iter().find(|row| row.connection == *connection);
        let (Some(row), Some(stored)) = (row, &self.stored) else { return Ok(false) };
        let is_gone = stored.store.forget_chain(row.grant).await.map_err(|error| unread(&error))?;
        // What is in hand came from it.
        self.let_go(connection);
        Ok(is_gone)
    }

    /// Another access token for this server, whatever the one in hand is good for.
    ///
    /// # Errors
    /// It has no `oauth` in force, or there is none to be had.
    pub(crate) async fn another(&self, server: &ServerConfig) -> Result<AccessToken, VerbError> {
        let name = &server.name;
        let tokens = self.of(server, server.is_personal());
        if tokens.map_err(|error| VerbError::new(Code::Unavailable, error.to_string()))?.is_none() {
            return Err(VerbError::new(Code::Conflict, format!("server `{name}` has no `oauth` in force")));
        }
        let connections = self.connections_of(name);
        let is_in_force = |oauth: &OAuth| server.oauth.as_ref().is_some_and(|own| own == oauth);
        let Some(connection) = connections.into_iter().find(|connection| is_in_force(&connection.desk.oauth)) else {
            return Err(VerbError::new(
                Code::ConfigChanged,
                format!("the `oauth` of server `{name}` has just changed"),
            ));
        };
        connection.another().await.map_err(|error| {
            let code = if error.needs_person { Code::Denied } else { Code::Unavailable };
            VerbError::new(code, error.message)
        })
    }
}

fn unread(error: &StoreError) -> VerbError {
    VerbError::new(Code::Unavailable, format!("the token chains cannot be read or changed: {error}"))
}
