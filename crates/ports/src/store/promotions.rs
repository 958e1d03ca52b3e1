//! Which deferred tools each thread has promoted, and in which catalogue (contract 9.3).
//!
//! A row belongs to one user in one thread: nobody else's promotion is seen. How two promotions become one is decided
//! by [`Promotion::after`].

use caribou_core::ids::Scope;
use caribou_core::tool::Promotion;

use super::StoreError;
use crate::BoxFuture;

/// The promotions of threads.
pub trait Promotions: Send + Sync + 'static {
    /// Adds to what `scope` has promoted, by the rule of [`Promotion::after`]. Of two at the same time both are kept.
    /// Promoting again changes nothing.
    fn promote(&self, scope: Scope, promotion: Promotion) -> BoxFuture<'_, Result<(), StoreError>>;

    /// What `scope` has promoted; `None` = nothing yet.
    fn promoted(&self, scope: Scope) -> BoxFuture<'_, Result<Option<Promotion>, StoreError>>;
}
