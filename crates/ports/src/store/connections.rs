//! Personal connections: servers that users bring for themselves. Definitions are stored sealed.

use caribou_core::ids::UserId;

use super::StoreError;
use crate::BoxFuture;

/// The personal connections of all users.
pub trait Connections: Send + Sync + 'static {
    /// Stores one; replaces the one of this name. A user has at most `at_most`; whether there was room.
    fn put(&self, connection: StoredConnection, at_most: u32) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Deletes one; whether there was one.
    fn delete(&self, user: UserId, name: String) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// All of one user, by name.
    fn of_user(&self, user: UserId) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>>;

    /// All of everybody after this user and name, at most `limit`, in their order: for re-encryption.
    fn page(&self, after: (String, String), limit: u32) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>>;

    /// A number that differs after every change of this user's connections, by whatever replica.
    fn revision(&self, user: UserId) -> BoxFuture<'_, Result<i64, StoreError>>;
}

/// One personal connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredConnection {
    /// Whose.
    pub user: UserId,
    /// What its owner calls it.
    pub name: String,
    /// `personal_` and 32 hexadecimal digits over user, name and definition.
    pub runtime_name: String,
    /// The definition as JSON text, sealed: URLs and headers may be secret.
    pub sealed: Vec<u8>,
    /// Whether it takes part. Not part of the runtime name.
    pub enabled: bool,
}
