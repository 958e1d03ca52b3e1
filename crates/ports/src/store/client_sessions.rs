//! Sessions that clients opened with us in the legacy era (mcp.md §3.3): on record, so that every replica serves them
//! and the end of one is its end everywhere.
//!
//! A session says who may use it and what was agreed on at its opening. It authenticates nobody, and nothing of it is
//! needed to finish a request. One that nobody used for a while is gone.

use std::sync::Arc;
use std::time::Duration;

use super::StoreError;
use crate::BoxFuture;

/// The sessions of clients.
pub trait ClientSessions: Send + Sync + 'static {
    /// Stores a new session, unless there are `most` already. Whether it was stored.
    fn begin_client_session(&self, session: ClientSession, most: u32) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// The session of this name, which counts as used now. One that was used last longer than `idle` ago is not found.
    fn use_client_session(
        &self,
        id: String,
        idle: Duration,
    ) -> BoxFuture<'_, Result<Option<ClientSession>, StoreError>>;

    /// Notes what was agreed on with the client of a session that was begun before: the revision, and the capabilities
    /// that it declared (JSON text of an object). Whether there is such a session.
    fn agree_with_client(
        &self,
        id: String,
        version: String,
        capabilities: String,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Notes the least log level that the client wants to hear of; whether there is such a session.
    fn set_client_log_level(&self, id: String, level: String) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Adds a URI to what the client is subscribed to, or takes it off; whether that is noted. It is not when there is
    /// no such session, or what it is subscribed to would be longer than `most_chars`. A URI holds no line end.
    fn subscribe_client(
        &self,
        id: String,
        uri: String,
        is_wanted: bool,
        most_chars: u32,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Ends a session; whether there was one.
    fn end_client_session(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Forgets sessions used last longer than `idle` ago, at most `limit`; how many.
    fn forget_client_sessions(&self, idle: Duration, limit: u32) -> BoxFuture<'_, Result<u32, StoreError>>;
}

/// One session of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSession {
    /// Its name, which the client sends with each request.
    pub id: String,
    /// Whose it is: the id of the principal that opened it. It is nobody else's (invariant P1).
    pub principal: Arc<str>,
    /// The server it was opened with alone; `None` = all of them.
    pub server: Option<String>,
    /// The revision agreed on; empty = none yet.
    pub version: String,
    /// The capabilities that the client declared: JSON text of an object.
    pub capabilities: String,
    /// The least log level that the client asked for; `None` = it did not say.
    pub log_level: Option<String>,
    /// URIs of the resources that the client is subscribed to, in the order of its wishes.
    pub subscriptions: Vec<String>,
}
