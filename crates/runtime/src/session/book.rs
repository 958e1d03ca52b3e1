//! Which epochs were given out and which of them their threads were told (invariant L2).
//!
//! Remembers a bounded number of keys. A key that was forgotten goes on above every epoch ever forgotten, so an
//! epoch still only grows; only the hint `restarted` is lost for it.

use std::num::NonZeroUsize;

use caribou_core::ids::{Epoch, SessionKey};
use lru::LruCache;

struct Record {
    given: Epoch,
    told: Option<Epoch>,
}

/// The epochs of all keys of this replica.
pub(crate) struct EpochBook {
    records: LruCache<SessionKey, Record>,
    forgotten: Epoch,
}

impl EpochBook {
    pub(crate) fn new(remembered: usize) -> Self {
        let remembered = NonZeroUsize::new(remembered).unwrap_or(NonZeroUsize::MIN);
        Self { records: LruCache::new(remembered), forgotten: Epoch(0) }
    }

    /// Gives out the next epoch of `key`.
    pub(crate) fn next(&mut self, key: &SessionKey) -> Epoch {
        if let Some(record) = self.records.get_mut(key) {
            record.given = record.given.next();
            return record.given;
        }
        let given = self.forgotten.next();
        if let Some((_, oldest)) = self.records.push(key.clone(), Record { given, told: None }) {
            self.forgotten = self.forgotten.max(oldest.given);
        }
        given
    }

    /// Notes that `key` was served at `epoch`; whether that is a restart its thread has not been told of.
    pub(crate) fn served(&mut self, key: &SessionKey, epoch: Epoch) -> bool {
        let Some(record) = self.records.get_mut(key) else { return false };
        let restarted = record.told.is_some_and(|told| told < epoch);
        record.told = record.told.max(Some(epoch));
        restarted
    }
}

#[cfg(test)]
mod tests {
    use caribou_core::ids::{Scope, ServerName};

    use super::*;

    fn key(thread: &str) -> SessionKey {
        SessionKey { server: ServerName::from("s"), scope: Scope::new(None, Some(thread)), credential: None }
    }

    #[test]
    fn a_restart_is_told_once_and_a_first_start_never() {
        let mut book = EpochBook::new(8);
        let first = book.next(&key("t"));
        assert!(!book.served(&key("t"), first));
        let second = book.next(&key("t"));
        assert!(book.served(&key("t"), second));
        assert!(!book.served(&key("t"), second));
    }

    #[test]
    fn an_epoch_grows_even_for_a_forgotten_key() {
        let mut book = EpochBook::new(1);
        let first = book.next(&key("a"));
        let again = book.next(&key("a"));
        book.next(&key("b"));
        assert!(first < again && again < book.next(&key("a")));
    }
}
