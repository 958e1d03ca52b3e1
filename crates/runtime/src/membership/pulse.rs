//! Signs of life of the roles of this replica (durability.md 1.5, hung work).

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

/// The sign of life of one role. Clones are the same role; once all are gone, the role has ended and nobody misses it.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<Beat>);

#[derive(Debug)]
struct Beat {
    role: &'static str,
    last: Mutex<Instant>,
}

impl Pulse {
    /// Shows that the role works.
    pub(crate) fn beat(&self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// All roles that are watched: a handful, each for as long as the replica lives.
#[derive(Debug, Default)]
pub(super) struct Pulses(Mutex<Vec<Weak<Beat>>>);

impl Pulses {
    /// Begins to watch a role, as of now.
    pub(super) fn watch(&self, role: &'static str) -> Pulse {
        let beat = Arc::new(Beat { role, last: Mutex::new(Instant::now()) });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&beat));
        Pulse(beat)
    }

    /// A role that has shown no sign of life for longer than `longest`.
    pub(super) fn hanging(&self, longest: Duration) -> Option<&'static str> {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|beat| beat.strong_count() > 0);
        let hangs = |beat: &Arc<Beat>| beat.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > longest;
        watched.iter().filter_map(Weak::upgrade).find(hangs).map(|beat| beat.role)
    }
}
