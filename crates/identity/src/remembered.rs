//! Answers that hold for a while: a bounded map, of which whatever was unused for longest goes first.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;

/// Answers by the digest of what was asked about.
pub(crate) struct Remembered<T>(Mutex<LruCache<[u8; 32], (T, Instant)>>);

impl<T: Clone> Remembered<T> {
    /// Room for this many.
    pub(crate) fn new(most: usize) -> Self {
        Self(Mutex::new(LruCache::new(NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN))))
    }

    /// The answer, while it holds.
    pub(crate) fn get(&self, digest: &[u8; 32]) -> Option<T> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, until) = answers.get(digest)?;
        if Instant::now() < *until {
            return Some(answer.clone());
        }
        answers.pop(digest);
        None
    }

    /// Remembers an answer that holds for so long.
    pub(crate) fn put(&self, digest: [u8; 32], answer: T, holds: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(digest, (answer, Instant::now() + holds));
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_forgotten_when_it_holds_no_more_or_when_room_is_needed() {
        let remembered = Remembered::new(2);
        remembered.put([1; 32], "a", Duration::from_secs(5));
        tokio::time::advance(Duration::from_millis(4_999)).await;
        assert_eq!(remembered.get(&[1; 32]), Some("a"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(remembered.get(&[1; 32]), None);
        for key in [2, 3, 4] {
            remembered.put([key; 32], "b", Duration::from_secs(5));
        }
        assert_eq!([2, 3, 4].map(|key| remembered.get(&[key; 32]).is_some()), [false, true, true]);
        remembered.clear();
        assert_eq!(remembered.get(&[4; 32]), None);
    }
}
