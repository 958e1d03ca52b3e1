//! Waiting for a condition: the only way a test waits.

use std::time::{Duration, Instant};

/// Between two looks: short beside a process start, long beside a look into `/proc`.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until `look` finds something, and gives it back.
///
/// # Panics
/// Nothing was found `within` this time; the message says `what` was waited for.
pub async fn eventually<T>(within: Duration, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {within:?} in vain: {what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_the_third_look_finds_is_given_back() {
        let mut looks = 0;
        let found = eventually(Duration::from_secs(5), "the third look", async || {
            looks += 1;
            (looks == 3).then_some("here")
        });
        assert_eq!(found.await, "here");
    }

    #[tokio::test]
    #[should_panic(expected = "waited 20ms in vain: the moon")]
    async fn what_never_comes_ends_the_test_by_name() {
        eventually(Duration::from_millis(20), "the moon", async || None::<()>).await;
    }
}
