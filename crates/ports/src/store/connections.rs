//! Personal connections: servers that users bring for themselves. Definitions are stored sealed.

use caribou_core::ids::UserId;

use super::StoreError;
use crate::BoxFuture;
use crate::vault::Place;

/// The personal connections of all users.
pub trait Connections: Send + Sync + 'static {
    /// Stores one, if what stands under its name is as expected and its user has at most `at_most` then.
    fn put(
        &self,
        connection: StoredConnection,
        expected: Expected,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Put, StoreError>>;

    /// Deletes one, if it is as expected; whether it was.
    fn delete(&self, user: UserId, name: String, expected: Expected) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// All of one user, by name.
    fn of_user(&self, user: UserId) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>>;

    /// All of everybody after this user and name, at most `limit`, in their order: for re-encryption.
    fn page(&self, after: (String, String), limit: u32) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>>;

    /// Replaces what is sealed of one, if exactly `sealed` stands there: the same definition under another key. No
    /// change that anybody must hear of. Whether it did.
    fn reseal(&self, connection: StoredConnection, sealed: Vec<u8>) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// A number that differs after every change of this user's connections, by whatever replica.
    fn revision(&self, user: UserId) -> BoxFuture<'_, Result<i64, StoreError>>;
}

/// What stands under a name before a change. Of two that change the same, the later one finds something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing.
    Nothing,
    /// A definition of this runtime name, which takes part or does not.
    Exactly {
        /// Its runtime name: equal names mean equal definitions.
        runtime_name: String,
        /// Whether it takes part.
        enabled: bool,
    },
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is stored.
    Stored,
    /// The user has as many as it may have; nothing was stored.
    Full,
    /// Something else stands there; nothing was stored.
    Unexpected,
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

impl StoredConnection {
    /// Where its definition stands: bound to its owner, its name and what it says, so that neither another row's nor
    /// an older definition is taken for it (invariant O3).
    pub fn place(&self) -> Place {
        let row = serde_json::json!([self.user, self.name, self.runtime_name]).to_string();
        Place { table: "mcp_connection", column: "sealed", row, generation: 0 }
    }
}
