//! Work in a task of its own whose end somebody waits for, whether it ends well or panics.
//!
//! A panic in a task that nobody joins is silent, and what the task held (a place in the pool, a server marked as being
//! discovered) would be held for ever (invariant B1). Here it becomes a value. The panic itself is told by the
//! process's panic hook.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// What `work` yields; `None` = it panicked. Whatever it shares with others must stay sound when it breaks off midway,
/// as it must when it is dropped.
pub(crate) async fn survived<F: Future>(work: F) -> Option<F::Output> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_end_like_any_other() {
        assert_eq!(survived(async { 1 }).await, Some(1));
        assert_eq!(survived(async { panic!("told by the hook") }).await, None::<()>);
    }
}
