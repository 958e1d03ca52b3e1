//! The children the guard has, and when one of them is gone.
//!
//! Owns the table, signalling and the search for escaped descendants; not starting, reaping or talking to main
//! (`keeper`). A child passes through: leader alive → leader reaped → group empty → gone, which means that no orphan
//! of it is alive either (invariant S3). Nothing is signalled by number once it may belong to somebody else: the
//! leader until it is reaped, its group until it was seen empty.
//!
//! Every step is driven by SIGCHLD: whoever loses its parent becomes a child of the guard, so the death of each
//! descendant is seen here sooner or later.

use std::collections::{HashMap, HashSet};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::frame::{ChildId, Ending, MARK_CHILD};
use super::processes::{self, Process};

/// All children of the guard that are not gone.
pub(super) struct Kept {
    boot: String,
    children: HashMap<ChildId, Child>,
}

struct Child {
    leader: Pid,
    stage: Stage,
    /// The severest ending ordered so far.
    ending: Option<Ending>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    LeaderAlive,
    GroupLeft,
    GroupEmpty,
}

impl Kept {
    /// No children yet, of this life of the replica.
    pub(super) fn new(boot: String) -> Self {
        Self { boot, children: HashMap::new() }
    }

    /// The value of [`MARK_CHILD`] for a child; names the boot as well, because a server may itself be a Caribou.
    pub(super) fn mark(&self, id: ChildId) -> String {
        format!("{}/{id}", self.boot)
    }

    /// Takes a started child in.
    pub(super) fn add(&mut self, id: ChildId, leader: Pid) {
        self.children.insert(id, Child { leader, stage: Stage::LeaderAlive, ending: None });
    }

    /// Whose leader this reaped process was; `None` for an orphan.
    pub(super) fn leader_reaped(&mut self, pid: Pid) -> Option<ChildId> {
        let alive = |child: &Child| child.stage == Stage::LeaderAlive && child.leader == pid;
        let (id, child) = self.children.iter_mut().find(|(_, child)| alive(child))?;
        child.stage = Stage::GroupLeft;
        Some(*id)
    }

    /// Begins to end a child. False when there is no such child.
    pub(super) fn end(&mut self, id: ChildId, ending: Ending) -> bool {
        let Some(child) = self.children.get_mut(&id) else { return false };
        child.ending = child.ending.max(Some(ending));
        child.signal(ending);
        true
    }

    /// Kills all children.
    pub(super) fn kill_all(&mut self) {
        for child in self.children.values_mut() {
            child.ending = Some(Ending::Kill);
            child.signal(Ending::Kill);
        }
    }

    /// Looks again after something died or was signalled; returns the children that are gone, and forgets them.
    pub(super) fn settle(&mut self) -> Vec<ChildId> {
        self.children.values_mut().for_each(Child::notice_an_empty_group);
        if !self.children.values().any(Child::may_have_lost_orphans) {
            return Vec::new();
        }
        let orphans = self.orphans();
        let mut alive = HashSet::new();
        for (owner, pid) in &orphans {
            let owner = owner.as_ref().and_then(|id| self.children.get(id).map(|child| (*id, child)));
            let Some((id, child)) = owner else { continue };
            alive.insert(id);
            if let Some(ending) = child.ending {
                signal_process(*pid, ending);
            }
        }
        let gone: Vec<ChildId> = self
            .children
            .iter()
            .filter(|(id, child)| child.stage == Stage::GroupEmpty && !alive.contains(id))
            .map(|(id, _)| *id)
            .collect();
        self.children.retain(|id, _| !gone.contains(id));
        self.kill_ownerless(&orphans);
        gone
    }

    /// An orphan of a child that is gone has nobody left to serve. One that hides its origin may serve anybody, so it
    /// stays until the last child is gone.
    fn kill_ownerless(&self, orphans: &[(Option<ChildId>, Pid)]) {
        for (owner, pid) in orphans {
            let ownerless = match owner {
                Some(id) => !self.children.contains_key(id),
                None => self.children.is_empty(),
            };
            if ownerless {
                signal_process(*pid, Ending::Kill);
            }
        }
    }

    /// Living descendants that were re-parented to the guard, each with the child it came from.
    fn orphans(&self) -> Vec<(Option<ChildId>, Pid)> {
        let leaders: HashSet<Pid> = self
            .children
            .values()
            .filter(|child| child.stage == Stage::LeaderAlive)
            .map(|child| child.leader)
            .collect();
        let orphans = processes::children().into_iter().filter(|p| !p.zombie && !leaders.contains(&p.pid));
        orphans.map(|process| (self.owner_of(process), process.pid)).collect()
    }

    fn owner_of(&self, process: Process) -> Option<ChildId> {
        let mark = processes::environment_of(process.pid, MARK_CHILD);
        let by_mark = mark.and_then(|mark| mark.strip_prefix(&self.boot)?.strip_prefix('/')?.parse().ok());
        let by_session = || {
            let same = |child: &Child| child.leader.as_raw_nonzero().get() == process.session;
            self.children.iter().find(|(_, child)| same(child)).map(|(id, _)| *id)
        };
        by_mark.or_else(by_session)
    }
}

impl Child {
    fn signal(&self, ending: Ending) {
        if self.stage == Stage::LeaderAlive {
            // By its own number as well: a shim that has not made its group yet must not be missed.
            signal_process(self.leader, ending);
        }
        if self.stage < Stage::GroupEmpty {
            // Fails only if the group is not made yet, or empty.
            let _ = kill_process_group(self.leader, signal_of(ending));
        }
    }

    fn notice_an_empty_group(&mut self) {
        if self.stage == Stage::GroupLeft && test_kill_process_group(self.leader) == Err(Errno::SRCH) {
            self.stage = Stage::GroupEmpty;
        }
    }

    fn may_have_lost_orphans(&self) -> bool {
        self.stage == Stage::GroupEmpty || self.ending == Some(Ending::Kill)
    }
}

fn signal_process(pid: Pid, ending: Ending) {
    // Fails only if it died meanwhile; it is our child, so its number is not used again before we reap it.
    let _ = kill_process(pid, signal_of(ending));
}

fn signal_of(ending: Ending) -> Signal {
    match ending {
        Ending::Ask => Signal::TERM,
        Ending::Kill => Signal::KILL,
    }
}
