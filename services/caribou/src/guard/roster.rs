//! What main knows of its children, and who waits for it.
//!
//! Owns the states that `spawn`, `exited` and `end` wait for; not the connection they arrive on (`supervisor`). A
//! state only gains facts, so a waiter that looks late misses nothing. When the guard is lost, every child's exit
//! becomes [`Exit::Lost`] at once, but `gone` only after the sweep (invariant S3).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use caribou_ports::guard::Exit;
use tokio::sync::watch;

use super::frame::{ChildId, Refusal, Report};

/// Children at once, those starting counted. Far above what a pool holds; a bound all the same (invariant B1).
const MAX_CHILDREN: usize = 4_096;

/// The facts about one child so far.
#[derive(Clone, Default)]
pub(super) struct Facts {
    pub(super) pid: Option<u32>,
    pub(super) refused: Option<Refusal>,
    pub(super) exit: Option<Exit>,
    /// Nothing of it is alive.
    pub(super) gone: bool,
}

impl Facts {
    /// Whether the order to start it was answered, or never will be.
    pub(super) fn answered(&self) -> bool {
        self.pid.is_some() || self.refused.is_some() || self.exit.is_some()
    }
}

/// All children that are not gone.
#[derive(Default)]
pub(super) struct Roster {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: ChildId,
    children: HashMap<ChildId, watch::Sender<Facts>>,
}

impl Roster {
    /// A new child, about to be ordered; `None` when there are too many.
    pub(super) fn enlist(&self) -> Option<(ChildId, watch::Receiver<Facts>)> {
        let mut inner = self.lock();
        if inner.children.len() >= MAX_CHILDREN {
            return None;
        }
        inner.last += 1;
        let (facts, receiver) = watch::channel(Facts::default());
        let id = inner.last;
        inner.children.insert(id, facts);
        Some((id, receiver))
    }

    /// Drops a child that was never ordered; its waiters see a closed channel.
    pub(super) fn forget(&self, id: ChildId) {
        self.lock().children.remove(&id);
    }

    /// Notes a report of the guard. One about a child nobody knows any more changes nothing.
    pub(super) fn note(&self, report: Report) {
        match report {
            Report::Started { child, pid } => self.learn(child, |facts| facts.pid = Some(pid)),
            Report::Exited { child, exit } => self.learn(child, |facts| facts.exit = Some(exit)),
            Report::Refused { child, why } => {
                self.learn(child, |facts| (facts.refused, facts.gone) = (Some(why), true));
                self.forget(child);
            }
            Report::Gone { child } => {
                self.learn(child, |facts| facts.gone = true);
                self.forget(child);
            }
        }
    }

    /// The guard is lost, and with it every exit not yet reported. Returns the leaders' numbers, for the sweep.
    pub(super) fn lose_all(&self) -> Vec<u32> {
        let inner = self.lock();
        for facts in inner.children.values() {
            facts.send_modify(|facts| facts.exit = facts.exit.or(Some(Exit::Lost)));
        }
        inner.children.values().filter_map(|facts| facts.borrow().pid).collect()
    }

    /// Nothing of any lost child is alive any more.
    pub(super) fn all_gone(&self) {
        for (_, facts) in self.lock().children.extract_if(|_, facts| facts.borrow().exit.is_some()) {
            facts.send_modify(|facts| facts.gone = true);
        }
    }

    fn learn(&self, child: ChildId, fact: impl FnOnce(&mut Facts)) {
        if let Some(facts) = self.lock().children.get(&child) {
            facts.send_modify(fact);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code that can panic runs under the lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_arrive_before_anybody_looks_are_all_seen() {
        let roster = Roster::default();
        let (child, facts) = roster.enlist().unwrap();
        roster.note(Report::Started { child, pid: 7 });
        roster.note(Report::Exited { child, exit: Exit::Code(3) });
        roster.note(Report::Gone { child });
        let facts = facts.borrow();
        assert_eq!((facts.pid, facts.exit, facts.gone), (Some(7), Some(Exit::Code(3)), true));
    }

    #[test]
    fn a_lost_guard_loses_only_exits_nobody_reported_and_gone_comes_later() {
        let roster = Roster::default();
        let (one, first) = roster.enlist().unwrap();
        let (_two, second) = roster.enlist().unwrap();
        roster.note(Report::Started { child: one, pid: 7 });
        roster.note(Report::Exited { child: one, exit: Exit::Code(0) });
        assert_eq!(roster.lose_all(), [7]);
        assert_eq!(first.borrow().exit, Some(Exit::Code(0)));
        assert_eq!(second.borrow().exit, Some(Exit::Lost));
        assert!(!first.borrow().gone && second.borrow().answered());
        roster.all_gone();
        assert!(first.borrow().gone && second.borrow().gone);
    }

    #[test]
    fn children_are_bounded_and_numbers_are_never_used_twice() {
        let roster = Roster::default();
        let (first, _) = roster.enlist().unwrap();
        roster.forget(first);
        let ids: Vec<_> = std::iter::from_fn(|| roster.enlist().map(|(id, _)| id)).collect();
        assert_eq!((ids.len(), ids[0]), (MAX_CHILDREN, first + 1));
    }
}
