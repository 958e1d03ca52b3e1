//! What the guard of one life does, beside a process that may stand still: its children end with its trust, with their
//! process, and are not started without.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::machine::Machine;
use caribou_ports::store::Replica;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::child::Child;
use super::{Mutant, PROFILE};

/// From the end of trust until a child is gone: a tick of the guard, a signal, the reaping.
const KILLING: Duration = Duration::from_millis(50);

/// The guard of one life. Clones are the same.
#[derive(Clone)]
pub(super) struct Guard {
    /// What uptimes are counted from.
    since: Instant,
    until: watch::Sender<Option<Instant>>,
    children: Arc<Mutex<Vec<Arc<Child>>>>,
    mutant: Option<Mutant>,
}

impl Guard {
    pub(super) fn new(mutant: Option<Mutant>) -> Self {
        let guard = Self { since: Instant::now(), until: watch::Sender::new(None), children: Arc::default(), mutant };
        tokio::spawn(guard.clone().watch());
        guard
    }

    async fn watch(self) {
        let mut told = self.until.subscribe();
        loop {
            let until = *told.borrow_and_update();
            let over = async {
                match until {
                    Some(until) => sleep_until(until + KILLING).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = told.changed() => if changed.is_err() { return },
                () = over => {
                    if self.mutant != Some(Mutant::NoGuard) {
                        self.kill();
                    }
                    self.until.send_if_modified(|now| *now == until && now.take().is_some());
                }
            }
        }
    }

    /// Ends every child.
    pub(super) fn kill(&self) {
        for child in self.children.lock().unwrap().drain(..) {
            child.die();
        }
    }

    /// Whether a child may be started.
    pub(super) fn is_trusted(&self) -> bool {
        self.until.borrow().is_some_and(|until| until > Instant::now())
    }

    /// One more child, if it may be.
    pub(super) fn start(&self, child: &Arc<Child>) -> bool {
        let may = self.is_trusted() || self.mutant == Some(Mutant::NoGuard);
        if may {
            self.children.lock().unwrap().push(child.clone());
        }
        may
    }
}

impl Machine for Guard {
    fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    fn trust_until(&self, uptime: Duration) {
        // No more than what the lease is worth, whatever a life believes of itself.
        let most = Instant::now() + PROFILE.trust();
        let until = self.since.checked_add(uptime).map_or(most, |until| until.min(most));
        self.until.send_replace(Some(until));
    }

    fn is_gone(&self, _: Replica) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(false))
    }

    fn forget(&self, _: &Replica) {}
}
