//! Until when this life trusts itself, by two clocks: the one that this process waits by, and the machine's, which goes
//! on while it is suspended (durability.md 2.3; invariant L1). Whichever says first that trust is over is right.
//!
//! Whoever guards the children is told with each renewal, so that they end with trust also while this process stands
//! still.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caribou_ports::machine::Machine;
use tokio::sync::watch;
use tokio::time::Instant;

/// The trust of one life.
pub(super) struct Trust {
    /// `None` = nothing of this life outlives its process, and nobody else tells the time.
    machine: Option<Arc<dyn Machine>>,
    until: watch::Sender<Option<Moment>>,
}

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    instant: Instant,
    uptime: Option<Duration>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("until", &*self.until.borrow()).finish_non_exhaustive()
    }
}

impl Trust {
    /// None yet.
    pub(super) fn none_yet(machine: Option<Arc<dyn Machine>>) -> Self {
        Self { machine, until: watch::Sender::new(None) }
    }

    /// The machine, if it has a part in this.
    pub(super) fn machine(&self) -> Option<&Arc<dyn Machine>> {
        self.machine.as_ref()
    }

    /// Now.
    pub(super) fn now(&self) -> Moment {
        Moment { instant: Instant::now(), uptime: self.machine.as_ref().map(|machine| machine.uptime()) }
    }

    /// It holds for `trust` from `sent` on, which is in the past.
    pub(super) fn grant(&self, sent: Moment, trust: Duration) {
        let uptime = sent.uptime.map(|uptime| uptime + trust);
        if let (Some(machine), Some(uptime)) = (&self.machine, uptime) {
            machine.trust_until(uptime);
        }
        self.until.send_replace(Some(Moment { instant: sent.instant + trust, uptime }));
    }

    /// It is over at once.
    pub(super) fn end(&self) {
        if let Some(machine) = &self.machine {
            machine.trust_until(Duration::ZERO);
        }
        self.until.send_replace(None);
    }

    /// For how long it still holds; zero = not at all.
    pub(super) fn left(&self) -> Duration {
        let Some(until) = *self.until.borrow() else { return Duration::ZERO };
        let now = self.now();
        let by_instant = until.instant.saturating_duration_since(now.instant);
        let by_uptime = until.uptime.zip(now.uptime).map(|(until, now)| until.saturating_sub(now));
        by_uptime.map_or(by_instant, |left| left.min(by_instant))
    }

    /// Resolves once there has been any.
    pub(super) async fn begun(&self) {
        // The sender is ours, so it is not closed.
        let _ = self.until.subscribe().wait_for(Option::is_some).await;
    }
}
