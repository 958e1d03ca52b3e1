//! What callers heard, and when: by the clock that the servers' diary is written by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caribou_tests::counter_server::boot_clock_ns;

/// How a call ended for its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was counted.
    Counted(Counted),
    /// It was surely not made.
    Refused(String),
    /// It may have been made.
    Unknown(String),
}

/// The answer of a counter, and of the session that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) count: u64,
    /// The life of the counter.
    pub(crate) life: String,
    pub(crate) epoch: u64,
    /// The life of the replica that holds the session.
    pub(crate) replica: String,
    pub(crate) restarted: bool,
}

/// One call that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    /// Whose: a key has one thread, and the other way round.
    pub(crate) thread: String,
    /// The seat whose door it went in by.
    pub(crate) seat: Option<usize>,
    pub(crate) invoked_ns: u64,
    pub(crate) returned_ns: u64,
    pub(crate) outcome: Outcome,
}

impl Call {
    /// What was counted, if it was.
    pub(crate) fn counted(&self) -> Option<&Counted> {
        match &self.outcome {
            Outcome::Counted(counted) => Some(counted),
            Outcome::Refused(_) | Outcome::Unknown(_) => None,
        }
    }

    /// How long its caller waited, in milliseconds.
    pub(crate) fn took_ms(&self) -> u64 {
        (self.returned_ns - self.invoked_ns) / 1_000_000
    }
}

/// A time of trouble with one replica.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Whose door.
    pub(crate) seat: usize,
    /// Whose sessions it held when it began.
    pub(crate) threads: BTreeSet<String>,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Window {
    /// Whether the call was under way in it and had to do with that replica.
    pub(crate) fn touches(&self, call: &Call) -> bool {
        let is_near = call.seat == Some(self.seat) || self.threads.contains(&call.thread);
        is_near && call.invoked_ns <= self.to_ns && call.returned_ns >= self.from_ns
    }
}

/// All calls so far. Shared by all callers.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    calls: Vec<Call>,
    /// Those that have not ended, with the moment at which they began.
    under_way: BTreeMap<String, u64>,
    /// Who answered last in each thread: the life of a replica, and the epoch.
    holders: BTreeMap<String, (String, u64)>,
}

impl History {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins; when.
    pub(crate) fn begin(&self, id: &str) -> u64 {
        let now = boot_clock_ns();
        self.inner().under_way.insert(id.to_owned(), now);
        now
    }

    /// It has ended.
    pub(crate) fn end(&self, call: Call) {
        let mut inner = self.inner();
        inner.under_way.remove(&call.id);
        if let Some(counted) = call.counted() {
            let holder = (counted.replica.clone(), counted.epoch);
            let held = inner.holders.entry(call.thread.clone()).or_default();
            if held.1 <= holder.1 {
                *held = holder;
            }
        }
        inner.calls.push(call);
    }

    /// How many are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.inner().under_way.len()
    }

    /// The threads whose sessions this life of a replica holds, as far as callers have heard.
    pub(crate) fn held_by(&self, replica: &str) -> BTreeSet<String> {
        let inner = self.inner();
        let held = inner.holders.iter().filter(|(_, (holder, _))| holder == replica);
        held.map(|(thread, _)| thread.clone()).collect()
    }

    /// Those that have ended, in the order in which they were invoked.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut calls = self.inner().calls.clone();
        calls.sort_by_key(|call| call.invoked_ns);
        calls
    }
}

/// The value that `share` of them do not exceed; 0 when there are none.
pub(crate) fn percentile(values: impl IntoIterator<Item = u64>, share: f64) -> u64 {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    let at = (values.len() as f64 * share).ceil() as usize;
    values.get(at.saturating_sub(1)).copied().unwrap_or_default()
}
