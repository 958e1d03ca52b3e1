//! Promotions of threads in memory, for replicas that store nothing: programs that embed the runtime without a store.
//!
//! Remembers a bounded number of threads (invariant B1). One that was forgotten searches again, as after a restart.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use caribou_core::bounds;
use caribou_core::ids::Scope;
use caribou_core::tool::Promotion;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Promotions, StoreError};
use lru::LruCache;

/// Promotions that last as long as this process.
pub(crate) struct PromotionsInMemory(Mutex<LruCache<Scope, Promotion>>);

impl PromotionsInMemory {
    /// Remembers this many threads.
    fn new(threads: NonZeroUsize) -> Self {
        Self(Mutex::new(LruCache::new(threads)))
    }
}

impl Default for PromotionsInMemory {
    fn default() -> Self {
        Self::new(NonZeroUsize::new(bounds::MAX_REMEMBERED_PROMOTIONS).unwrap_or(NonZeroUsize::MIN))
    }
}

impl Promotions for PromotionsInMemory {
    fn promote(&self, scope: Scope, promotion: Promotion) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = threads.pop(&scope);
        threads.put(scope, promotion.after(before));
        Box::pin(async { Ok(()) })
    }

    fn promoted(&self, scope: Scope) -> BoxFuture<'_, Result<Option<Promotion>, StoreError>> {
        let promotion = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&scope).cloned();
        Box::pin(async { Ok(promotion) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(thread: &str) -> Scope {
        Scope::new(Some("ann"), Some(thread))
    }

    #[tokio::test]
    async fn a_thread_sees_its_own_promotions_and_the_one_unused_for_longest_is_forgotten() {
        let store = PromotionsInMemory::new(NonZeroUsize::new(2).unwrap());
        let promotion = |name: &str| Promotion { catalog: "h".into(), names: vec![name.into()] };
        for (thread, name) in [("a", "x"), ("b", "x"), ("a", "y"), ("c", "x")] {
            store.promote(scope(thread), promotion(name)).await.unwrap();
        }
        let names = async |scope| store.promoted(scope).await.unwrap().map(|promotion| promotion.names.len());
        assert_eq!(names(scope("a")).await, Some(2));
        assert_eq!(names(scope("b")).await, None);
        assert_eq!(names(scope("c")).await, Some(1));
        assert_eq!(names(Scope::new(Some("bob"), Some("a"))).await, None, "another user's");
    }
}
