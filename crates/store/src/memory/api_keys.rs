//! API keys, in the order in which they were created.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use caribou_ports::BoxFuture;
use caribou_ports::store::{ApiKey, ApiKeys, StoreError, StoredApiKey};

use super::Memory;

/// One key.
#[derive(Debug)]
pub(super) struct Kept {
    key: ApiKey,
    created: Instant,
    revoked: bool,
}

impl Kept {
    /// The key with what is left of its life.
    fn key(&self) -> ApiKey {
        let left = |life: Duration| life.saturating_sub(self.created.elapsed());
        ApiKey { expires_in: self.key.expires_in.map(left), ..self.key.clone() }
    }

    fn is_valid(&self) -> bool {
        !self.revoked && self.key.expires_in.is_none_or(|life| self.created.elapsed() < life)
    }
}

impl ApiKeys for Memory {
    fn create(&self, key: ApiKey) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut keys = self.api_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let is_taken = keys.iter().any(|kept| kept.key.id == key.id || kept.key.hash == key.hash);
        if !is_taken {
            keys.push(Kept { key, created: Instant::now(), revoked: false });
        }
        let done = if is_taken { Err(StoreError::Mismatch("the key exists".to_owned())) } else { Ok(()) };
        Box::pin(async { done })
    }

    fn find(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<ApiKey>, StoreError>> {
        let keys = self.api_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let found = keys.iter().find(|kept| kept.key.hash == hash && kept.is_valid()).map(Kept::key);
        Box::pin(async { Ok(found) })
    }

    fn revoke(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut keys = self.api_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let found = keys.iter_mut().find(|kept| kept.key.id == id && !kept.revoked);
        let is_found = found.is_some();
        found.into_iter().for_each(|kept| kept.revoked = true);
        Box::pin(async move { Ok(is_found) })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<StoredApiKey>, StoreError>> {
        let keys = self.api_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = |kept: &Kept| StoredApiKey { key: kept.key(), age: kept.created.elapsed(), revoked: kept.revoked };
        let all = keys.iter().map(stored).collect();
        Box::pin(async { Ok(all) })
    }
}
