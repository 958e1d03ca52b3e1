//! Which calls of other replicas were made here.
//!
//! Remembers a bounded number of calls for a bounded time, and a bounded number of bytes of their answers (invariant B1).
//! A call that was forgotten is not made again: its caller is told that nobody knows what became of it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::running::Call;

/// How long a call is remembered after it began (durability.md 2.2).
const REMEMBERED: Duration = Duration::from_secs(600);

/// How many calls are remembered, those that run not counted: each of those holds a place in a session.
const MAX_ENDED: usize = 4_096;

/// Bytes of answers that are remembered: those of calls that ended last.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The calls of other replicas. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct CallBook(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    calls: HashMap<String, Arc<Call>>,
    /// Those that ended, the oldest first, with the bytes of their answers.
    ended: VecDeque<(String, Instant, usize)>,
    bytes: usize,
}

impl CallBook {
    /// The call of this name, if it was made here and is remembered.
    pub(crate) fn find(&self, call_id: &str) -> Option<Arc<Call>> {
        self.entries().calls.get(call_id).cloned()
    }

    /// Notes that a call begins; the one that has its name already, if there is one.
    pub(crate) fn begin(&self, call_id: &str, call: Arc<Call>) -> Result<(), Arc<Call>> {
        let mut entries = self.entries();
        if let Some(known) = entries.calls.get(call_id) {
            return Err(known.clone());
        }
        entries.calls.insert(call_id.to_owned(), call);
        Ok(())
    }

    /// Notes that a call ended with an answer of so many bytes, and forgets what is too old or too much.
    pub(super) fn ended(&self, call_id: &str, bytes: usize) {
        let mut entries = self.entries();
        entries.ended.push_back((call_id.to_owned(), Instant::now(), bytes));
        entries.bytes += bytes;
        while let Some((oldest, since, its_bytes)) = entries.ended.front() {
            let is_too_much = entries.ended.len() > MAX_ENDED || entries.bytes > MAX_BYTES;
            if since.elapsed() < REMEMBERED && !is_too_much {
                break;
            }
            let (oldest, its_bytes) = (oldest.clone(), *its_bytes);
            entries.ended.pop_front();
            entries.bytes -= its_bytes;
            entries.calls.remove(&oldest);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
