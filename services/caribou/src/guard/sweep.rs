//! What main does with processes whose guard died: kill ours, reap, touch nothing else.
//!
//! The guard's children lead sessions of their own, and everything else main starts lives in main's session. So a
//! child of main in another session was adopted, and reaping it steals no exit status from other code in this
//! process. Killed is only what carries our boot's mark, sat in the session of a child of ours, or never got past the
//! guard's own group.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, pidfd_send_signal, waitpid,
};
use tokio::time::{Instant, interval};
use tracing::warn;

use super::frame::{MARK_BOOT, MARK_CHILD};
use super::processes::{self, Process};

/// How long swept processes may take to die. Longer only in uninterruptible I/O.
const LIMIT: Duration = Duration::from_secs(5);

/// How soon to look again: whoever loses its parent to the sweep becomes our child and is next.
const AGAIN: Duration = Duration::from_millis(10);

/// How ours are told from others.
pub(super) struct Marks<'a> {
    /// This life of the replica.
    pub(super) boot: &'a str,
    /// The dead guard.
    pub(super) guard: u32,
    /// The leaders it had, whose numbers are those of their sessions.
    pub(super) leaders: Vec<u32>,
}

impl Marks<'_> {
    fn cover(&self, process: Process) -> bool {
        let in_session = |leader: &u32| u32::try_from(process.session) == Ok(*leader);
        u32::try_from(process.group) == Ok(self.guard)
            || self.leaders.iter().any(in_session)
            || processes::environment_of(process.pid, MARK_BOOT).as_deref() == Some(self.boot)
    }
}

/// Kills and reaps all that a dead guard left. The guard itself must have been reaped: the kernel hands its children
/// over only then. False when something of ours is still alive after the limit.
pub(super) async fn sweep(marks: &Marks<'_>) -> bool {
    let deadline = Instant::now() + LIMIT;
    let mut again = interval(AGAIN);
    // Remembered, because a process that is about to die shows no marks any more.
    let mut killed = HashSet::new();
    while Instant::now() < deadline {
        again.tick().await;
        let adopted = adopted(Some(marks.guard));
        let (zombies, alive): (Vec<_>, Vec<_>) = adopted.into_iter().partition(|process| process.zombie);
        killed.extend(alive.iter().filter(|process| marks.cover(**process)).map(|process| process.pid));
        let left: Vec<_> = alive.iter().filter(|process| killed.contains(&process.pid)).collect();
        if left.is_empty() && zombies.is_empty() {
            return true;
        }
        zombies.iter().for_each(reap);
        for process in left {
            // Fails only if it died meanwhile.
            let _ = kill_process(process.pid, Signal::KILL);
        }
    }
    false
}

/// Kills what an earlier life on this machine left because its main process and its guard were killed at the same
/// instant: processes marked as children of a boot whose guard is not there. The guard of a boot carries the boot's
/// mark and no child's.
pub(super) fn kill_remainders() {
    let boot_of = |pid| processes::environment_of(pid, MARK_BOOT);
    let marked = processes::pids().filter(|pid| *pid != getpid()).filter_map(|pid| Some((pid, boot_of(pid)?)));
    let (children, guards): (Vec<_>, Vec<_>) =
        marked.partition(|(pid, _)| processes::environment_of(*pid, MARK_CHILD).is_some());
    let guarded: HashSet<String> = guards.into_iter().map(|(_, boot)| boot).collect();
    for (pid, boot) in children.into_iter().filter(|(_, boot)| !guarded.contains(boot)) {
        kill_marked(pid, &boot);
    }
}

/// Kills what is left of a life whose main process and guard are surely gone. Whether nothing was.
pub(crate) fn kill_left_of(boot: &str) -> bool {
    let is_left = |pid: &Pid| processes::environment_of(*pid, MARK_BOOT).as_deref() == Some(boot);
    let left: Vec<Pid> = processes::pids().filter(|pid| *pid != getpid()).filter(is_left).collect();
    left.iter().for_each(|pid| kill_marked(*pid, boot));
    left.is_empty()
}

/// Kills a process that is not our child, if it is still the one that carries this mark.
fn kill_marked(pid: Pid, boot: &str) {
    // Its number may belong to another process by now, a descriptor of it cannot.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if processes::environment_of(pid, MARK_BOOT).as_deref() == Some(boot) {
        warn!(pid = pid.as_raw_nonzero(), "killing a server left by another life on this machine");
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// Reaps adopted processes that died, whosever they were.
pub(super) fn reap_adopted() {
    adopted(None).iter().filter(|process| process.zombie).for_each(reap);
}

/// Children this process was given, not those it started.
fn adopted(guard: Option<u32>) -> Vec<Process> {
    let Some(own) = processes::own_session() else { return Vec::new() };
    let mut children = processes::children();
    children.retain(|process| process.session != own || guard.is_some_and(|g| u32::try_from(process.group) == Ok(g)));
    children
}

fn reap(zombie: &Process) {
    // By its own number, so that nobody else's child is taken. Fails only if it was reaped meanwhile.
    let _ = waitpid(Some(zombie.pid), WaitOptions::NOHANG);
}
