//! What a replica that stops waits for: refreshes under way, and tokens that are not stored yet (R4).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// Counts what is under way. Clones count together.
#[derive(Clone)]
pub(in crate::oauth) struct Underway(Arc<Counted>);

struct Counted {
    count: watch::Sender<usize>,
    is_closing: AtomicBool,
}

/// One of them, until it is dropped.
pub(in crate::oauth) struct Entered(Underway);

impl Underway {
    pub(in crate::oauth) fn new() -> Self {
        Self(Arc::new(Counted { count: watch::Sender::new(0), is_closing: AtomicBool::new(false) }))
    }

    pub(in crate::oauth) fn enter(&self) -> Entered {
        self.0.count.send_modify(|count| *count += 1);
        Entered(self.clone())
    }

    /// Whether nothing new may begin.
    pub(in crate::oauth) fn is_closing(&self) -> bool {
        self.0.is_closing.load(Ordering::Acquire)
    }

    /// Lets nothing new begin, and waits for what is under way, at most so long. Whether all of it ended.
    pub(in crate::oauth) async fn close(&self, at_most: Duration) -> bool {
        self.0.is_closing.store(true, Ordering::Release);
        let mut count = self.0.count.subscribe();
        tokio::time::timeout(at_most, count.wait_for(|count| *count == 0)).await.is_ok()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.count.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_close_waits_for_what_is_under_way_and_not_for_ever() {
        let underway = Underway::new();
        let one = underway.enter();
        assert!(!underway.is_closing());
        assert!(!underway.close(Duration::from_secs(1)).await && underway.is_closing());
        drop(one);
        assert!(underway.close(Duration::from_secs(1)).await);
    }
}
