//! Promoted tools, one entry for each thread of a user.

use std::sync::PoisonError;

use caribou_core::ids::Scope;
use caribou_core::tool::Promotion;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Promotions, StoreError};

use super::Memory;

impl Promotions for Memory {
    fn promote(&self, scope: Scope, promotion: Promotion) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut threads = self.promotions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = threads.remove(&scope);
        threads.insert(scope, promotion.after(before));
        Box::pin(async { Ok(()) })
    }

    fn promoted(&self, scope: Scope) -> BoxFuture<'_, Result<Option<Promotion>, StoreError>> {
        let found = self.promotions.lock().unwrap_or_else(PoisonError::into_inner).get(&scope).cloned();
        Box::pin(async { Ok(found) })
    }
}
