//! Tells callers by their keys, from memory while an answer holds.
//!
//! A key is believed for `API_KEY_BELIEVED` at most, so that a revoked one is refused after it. A store that cannot be
//! asked lets nobody in whose answer does not hold. Look-ups queue by hash, so that of many requests with one key one
//! asks the store, and whoever guesses keys keeps few connections of it busy.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_core::config::Secret;
use caribou_core::identity::{HeldScopes, Principal};
use caribou_ports::BoxFuture;
use caribou_ports::identity::{Authenticator, Unauthenticated};
use caribou_ports::store::{ApiKey, ApiKeys, StoreError};
use subtle::ConstantTimeEq as _;
use tokio::sync::Mutex;

use super::key::Presented;
use crate::remembered::Remembered;

/// Look-ups at once.
const QUEUES: usize = 16;

/// Callers that present a key.
pub struct ApiKeyCallers {
    keys: Arc<dyn ApiKeys>,
    known: Remembered<Principal>,
    /// Well-formed keys that are nobody's.
    strangers: Remembered<()>,
    queues: [Mutex<()>; QUEUES],
}

impl ApiKeyCallers {
    /// Callers whose keys are in this store.
    pub fn new(keys: Arc<dyn ApiKeys>) -> Self {
        Self {
            keys,
            known: Remembered::new(bounds::MAX_REMEMBERED_CALLERS),
            strangers: Remembered::new(bounds::MAX_REMEMBERED_STRANGERS),
            queues: std::array::from_fn(|_| Mutex::default()),
        }
    }

    fn remembered(&self, hash: &[u8; 32]) -> Option<Result<Principal, Unauthenticated>> {
        let known = self.known.get(hash).map(Ok);
        known.or_else(|| self.strangers.get(hash).map(|()| Err(refused())))
    }

    async fn look_up(&self, presented: &Presented<'_>) -> Result<Principal, Unauthenticated> {
        let hash = &presented.hash;
        let _turn = self.queues[usize::from(hash[0]) % QUEUES].lock().await;
        if let Some(answer) = self.remembered(hash) {
            return answer;
        }
        let found = self.keys.find(*hash).await.map_err(unavailable)?;
        // The store compares too, but in a time that depends on what it holds.
        let Some(key) = found.filter(|key| bool::from(key.hash.ct_eq(hash)) && key.id == presented.id) else {
            self.strangers.put(*hash, (), bounds::API_KEY_BELIEVED);
            return Err(refused());
        };
        let holds = key.expires_in.unwrap_or(Duration::MAX).min(bounds::API_KEY_BELIEVED);
        let principal = principal(key);
        self.known.put(*hash, principal.clone(), holds);
        Ok(principal)
    }
}

impl Authenticator for ApiKeyCallers {
    fn authenticate(&self, bearer: Option<Secret>) -> BoxFuture<'_, Result<Principal, Unauthenticated>> {
        Box::pin(async move {
            let bearer = bearer.ok_or(Unauthenticated::Missing)?;
            let presented = Presented::read(bearer.expose()).ok_or_else(refused)?;
            if let Some(answer) = self.remembered(&presented.hash) {
                return answer;
            }
            let late = |_| Unauthenticated::Unavailable("the keys could not be read in time".to_owned());
            tokio::time::timeout(bounds::AUTHENTICATE, self.look_up(&presented)).await.map_err(late)?
        })
    }
}

fn principal(key: ApiKey) -> Principal {
    Principal {
        id: key.id.into(),
        user: key.user,
        roles: key.roles.into_iter().collect(),
        tools: Arc::new(key.tools),
        scopes: HeldScopes::All,
    }
}

/// One text for every reason: a stranger learns nothing of which keys there are.
fn refused() -> Unauthenticated {
    Unauthenticated::Refused("the API key is unknown, revoked or expired".to_owned())
}

fn unavailable(error: StoreError) -> Unauthenticated {
    tracing::warn!("API keys cannot be read: {error}");
    Unauthenticated::Unavailable("the store of API keys cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Held;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use caribou_core::identity::{Role, Roles, ToolRules};
    use caribou_ports::store::StoredApiKey;

    use super::*;
    use crate::NewKey;

    /// A store of one key, which counts how often it is asked.
    #[derive(Default)]
    struct Store {
        key: Held<Option<ApiKey>>,
        asked: AtomicUsize,
        is_away: AtomicBool,
    }

    impl ApiKeys for Store {
        fn create(&self, key: ApiKey) -> BoxFuture<'_, Result<(), StoreError>> {
            *self.key.lock().unwrap() = Some(key);
            Box::pin(async { Ok(()) })
        }

        fn find(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<ApiKey>, StoreError>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let found = self.key.lock().unwrap().clone().filter(|key| key.hash == hash);
            let is_away = self.is_away.load(Ordering::SeqCst);
            Box::pin(async move {
                tokio::task::yield_now().await;
                if is_away { Err(StoreError::Unavailable("gone".to_owned())) } else { Ok(found) }
            })
        }

        fn revoke(&self, _: String) -> BoxFuture<'_, Result<bool, StoreError>> {
            Box::pin(async { Ok(self.key.lock().unwrap().take().is_some()) })
        }

        fn all(&self) -> BoxFuture<'_, Result<Vec<StoredApiKey>, StoreError>> {
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    async fn with_key(expires_in: Option<Duration>) -> (Arc<Store>, ApiKeyCallers, String) {
        let new = NewKey::random().unwrap();
        let store = Arc::new(Store::default());
        let key = ApiKey {
            id: new.id,
            hash: new.hash,
            label: "laptop".to_owned(),
            user: "ann".into(),
            roles: vec![Role::Agent],
            tools: ToolRules { allowed: None, denied: vec!["x".to_owned()] },
            expires_in,
        };
        store.create(key).await.unwrap();
        let callers = ApiKeyCallers::new(store.clone());
        (store, callers, new.text.expose().to_owned())
    }

    async fn present(callers: &ApiKeyCallers, key: &str) -> Result<Principal, Unauthenticated> {
        callers.authenticate(Some(Secret::new(key))).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_says_whose_it_is_and_of_many_requests_one_asks() {
        let (store, callers, key) = with_key(None).await;
        let all = futures_of(50, || present(&callers, &key));
        for caller in all.await {
            let caller = caller.unwrap();
            assert_eq!((&*caller.user.to_string(), caller.roles), ("ann", Roles { admin: false, agent: true }));
            assert!(key.contains(&*caller.id) && caller.uses("x").is_err());
        }
        assert_eq!(store.asked.load(Ordering::SeqCst), 1);
        assert_eq!(callers.authenticate(None).await, Err(Unauthenticated::Missing));
    }

    /// Runs so many at once.
    async fn futures_of<F: Future>(count: usize, make: impl Fn() -> F) -> Vec<F::Output> {
        let mut running: Vec<_> = (0..count).map(|_| Box::pin(make())).collect();
        let mut done = Vec::new();
        std::future::poll_fn(|context| {
            running.retain_mut(|one| match one.as_mut().poll(context) {
                std::task::Poll::Ready(output) => {
                    done.push(output);
                    false
                }
                std::task::Poll::Pending => true,
            });
            if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        done
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_key_is_refused_within_five_seconds_and_an_expired_one_at_once() {
        let (store, callers, key) = with_key(None).await;
        present(&callers, &key).await.unwrap();
        store.revoke(String::new()).await.unwrap();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(matches!(present(&callers, &key).await, Err(Unauthenticated::Refused(_))));

        let (store, callers, key) = with_key(Some(Duration::from_secs(2))).await;
        present(&callers, &key).await.unwrap();
        store.revoke(String::new()).await.unwrap();
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(present(&callers, &key).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_are_refused_alike_and_without_a_look_where_possible() {
        let (store, callers, key) = with_key(None).await;
        let other = NewKey::random().unwrap();
        let refused = present(&callers, other.text.expose()).await.unwrap_err();
        assert_eq!(present(&callers, other.text.expose()).await.unwrap_err(), refused);
        assert_eq!(store.asked.load(Ordering::SeqCst), 1, "remembered");
        for odd in ["hunter2", &key[..20]] {
            assert_eq!(present(&callers, odd).await.unwrap_err(), refused);
        }
        assert_eq!(store.asked.load(Ordering::SeqCst), 1, "known by its form");
        assert!(!refused.to_string().contains("cbk_"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_lets_nobody_in_whose_answer_does_not_hold() {
        let (store, callers, key) = with_key(None).await;
        present(&callers, &key).await.unwrap();
        store.is_away.store(true, Ordering::SeqCst);
        assert!(present(&callers, &key).await.is_ok());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(matches!(present(&callers, &key).await, Err(Unauthenticated::Unavailable(_))));
        store.is_away.store(false, Ordering::SeqCst);
        assert!(present(&callers, &key).await.is_ok(), "a failure is not remembered");
    }
}
