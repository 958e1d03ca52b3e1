//! Waits that count only while this process runs.
//!
//! A process that stood still finds its timers over and what came meanwhile unread. Whoever gave up then would throw an
//! answer away that has arrived (durability.md 3.3, R3).

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

/// In so many parts a wait is cut; standing still uses up one.
const PARTS: u32 = 15;

/// What `future` yields, unless it takes longer than `bound`.
pub(super) async fn patiently<T>(bound: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..PARTS {
        if let Ok(done) = timeout(bound / PARTS, &mut future).await {
            return Some(done);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_at_its_bound() {
        let began = Instant::now();
        assert_eq!(patiently(Duration::from_secs(15), std::future::pending::<()>()).await, None);
        assert!(began.elapsed() >= Duration::from_secs(15) && began.elapsed() < Duration::from_secs(16));
    }

    #[tokio::test(start_paused = true)]
    async fn what_arrived_while_the_process_stood_still_is_taken() {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let waiting = tokio::spawn(patiently(Duration::from_secs(15), answered));
        tokio::task::yield_now().await;
        // Long past the bound, and the answer is not there at the first look.
        advance(Duration::from_secs(100)).await;
        tokio::task::yield_now().await;
        answer.send(7).unwrap();
        assert_eq!(waiting.await.unwrap(), Some(Ok(7)));
    }
}
