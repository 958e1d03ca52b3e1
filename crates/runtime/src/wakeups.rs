//! Hears hints that something may have become due, for as long as whoever wants them lives (durability.md 1.7).

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_ports::store::{Wake, Wakeups};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// The first wait after a listener was lost.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Ends a child with whoever holds it.
pub(crate) struct OnDrop(pub(crate) AbortHandle);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Hands every hint to `tell`, until it answers that nobody wants them any more. Whenever a listener begins, anything
/// may have been told before. What cannot be heard is found by timers.
pub(crate) async fn listen(store: Arc<dyn Wakeups>, tell: impl Fn(Wake) -> bool) {
    let mut wait = FIRST_WAIT;
    loop {
        if let Ok(mut listening) = store.listen().await {
            let mut hint = Ok(Wake::Everything);
            while let Ok(wake) = hint {
                if !tell(wake) {
                    return;
                }
                wait = FIRST_WAIT;
                hint = listening.next().await;
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(bounds::TASK_STORE_BACKOFF);
    }
}
