//! API keys of callers. The key itself is never stored: only a keyed hash of it.

use std::time::Duration;

use caribou_core::identity::{Role, ToolRules};
use caribou_core::ids::UserId;

use super::StoreError;
use crate::BoxFuture;

/// The keys that callers may present.
pub trait ApiKeys: Send + Sync + 'static {
    /// Stores a new key. Its id is never given out again.
    fn create(&self, key: ApiKey) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The key with this hash; revoked and expired ones are not found.
    fn find(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<ApiKey>, StoreError>>;

    /// Revokes it now; whether there was one to revoke.
    fn revoke(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// All keys, revoked ones too, oldest first.
    fn all(&self) -> BoxFuture<'_, Result<Vec<StoredApiKey>, StoreError>>;
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Names it in lists and audit rows.
    pub id: String,
    /// HMAC-SHA256 of the key.
    pub hash: [u8; 32],
    /// What a person calls it.
    pub label: String,
    /// Whose it is.
    pub user: UserId,
    /// What its holder may be.
    pub roles: Vec<Role>,
    /// Which tools it may use.
    pub tools: ToolRules,
    /// How long it lives from its creation on, by the store's clock; `None` = until revoked.
    pub expires_in: Option<Duration>,
}

/// A key as it is on record; `expires_in` is what is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApiKey {
    /// The key.
    pub key: ApiKey,
    /// How long ago it was created, by the store's clock.
    pub age: Duration,
    /// Whether it was revoked.
    pub revoked: bool,
}
