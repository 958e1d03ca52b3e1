//! A wait that counts only while this process runs.
//!
//! Whoever stood still finds its timers over and what came meanwhile unread; giving up then would throw an answer away
//! that has arrived (durability.md 3.3, R3).

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

/// In so many parts a wait is cut; standing still uses up one.
const PARTS: u32 = 60;

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
