//! Tells the other replicas of generations that this one put in force: by the signal, and by a nudge to each of them.
//!
//! Nobody waits for it. What cannot be told for `TELL_AT_MOST` is given up: the others have read the store by then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use caribou_core::reset::{ResetGeneration, ResetScope, TELL_AT_MOST};
use caribou_ports::peers::{Nudge, PeerAddress};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::Seen;

/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);

/// What is to be told: of each scope the last generation, and since when.
#[derive(Default)]
pub(super) struct Outbox {
    letters: Mutex<HashMap<ResetScope, (ResetGeneration, Instant)>>,
    filled: Notify,
    /// Letters that are on their way.
    under_way: AtomicUsize,
}

impl Outbox {
    fn take(&self) -> Vec<(ResetScope, (ResetGeneration, Instant))> {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        self.under_way.store(letters.len(), Ordering::Release);
        letters.drain().collect()
    }

    fn is_done(&self) -> bool {
        self.is_empty() && self.under_way.load(Ordering::Acquire) == 0
    }

    /// Puts back what could not be told, unless there is something newer to tell.
    fn put_back(&self, scope: ResetScope, letter: (ResetGeneration, Instant)) {
        if letter.1.elapsed() < TELL_AT_MOST {
            self.letters.lock().unwrap_or_else(PoisonError::into_inner).entry(scope).or_insert(letter);
        }
    }

    fn is_empty(&self) -> bool {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Seen {
    /// Has the others told that these are in force now.
    pub(crate) fn tell(&self, moved: &[(ResetScope, ResetGeneration)]) {
        let outbox = &self.0.outbox;
        let mut letters = outbox.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.extend(moved.iter().map(|(scope, generation)| (scope.clone(), (*generation, Instant::now()))));
        drop(letters);
        outbox.filled.notify_one();
        if let Some((peers, membership)) = self.0.peers.get() {
            for peer in &membership.peers().peers {
                let replica = &peer.replica;
                if let Some(address) = replica.address.clone().filter(|_| replica.boot != self.0.boot) {
                    peers.nudge(PeerAddress { boot: replica.boot.clone(), address }, Nudge::Generations);
                }
            }
        }
    }
}

/// How long the end of a replica waits for what it has to tell.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Seen {
    /// Resolves when everything is told, or nobody can be told soon.
    pub(crate) async fn told(&self) {
        let until = Instant::now() + LAST_WORDS;
        while !self.0.outbox.is_done() && Instant::now() < until {
            sleep(AGAIN / 10).await;
        }
    }
}

/// Tells what is in the outbox, for as long as it runs.
pub(super) async fn tell(seen: Seen) {
    let outbox = &seen.0.outbox;
    let Some(signal) = &seen.0.resets.signal else {
        loop {
            outbox.filled.notified().await;
            drop(outbox.take());
            outbox.under_way.store(0, Ordering::Release);
        }
    };
    loop {
        if outbox.is_empty() {
            outbox.filled.notified().await;
        }
        for (scope, letter) in outbox.take() {
            if let Err(why) = signal.tell(scope.clone(), letter.0).await {
                tracing::debug!("a reset is told to nobody yet: {why}");
                outbox.put_back(scope, letter);
            }
            outbox.under_way.fetch_sub(1, Ordering::AcqRel);
        }
        if !outbox.is_empty() {
            sleep(AGAIN).await;
        }
    }
}
