//! What processes cost, read from `/proc`.
//!
//! Owns CPU time and resident memory by role. CPU time is user plus system time of all threads, those that ended
//! included; the kernel counts it in nanoseconds and shows it in steps of 10 ms. A process that ends between two
//! readings drops out of their difference. An unreadable process counts as gone. Keeps no invariant.

use std::collections::HashMap;
use std::fs;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

/// The step of the times in `/proc`: `USER_HZ` is 100 on the machines we run on, whatever the kernel's own tick.
const TICK: Duration = Duration::from_millis(10);

/// CPU time by who used it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    /// Caribou's own process.
    pub(crate) caribou: Duration,
    /// Its guard.
    pub(crate) guard: Duration,
    /// Whoever answers the calls: the echo servers, children of Caribou or ours.
    pub(crate) upstream: Duration,
    /// This process.
    pub(crate) generator: Duration,
}

impl AddAssign for Cpu {
    fn add_assign(&mut self, other: Self) {
        self.caribou += other.caribou;
        self.guard += other.guard;
        self.upstream += other.upstream;
        self.generator += other.generator;
    }
}

/// Resident memory of Caribou's processes, in KiB.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Resident {
    /// Caribou's own process.
    pub(crate) caribou_kib: u64,
    /// Its guard.
    pub(crate) guard_kib: u64,
    /// All child servers together.
    pub(crate) children_kib: u64,
    /// How many child servers there are.
    pub(crate) children: usize,
}

#[derive(Clone, Copy)]
enum Role {
    Generator,
    Caribou,
    Guard,
    /// A server that Caribou started.
    Child,
    /// A server that we started.
    Echo,
}

/// The processes of this moment that belong to a run, with the CPU time each has used.
pub(crate) struct Processes(HashMap<u32, (Role, Duration)>);

impl Processes {
    /// Finds this process and what descends from it; `caribou` is the pid of Caribou, if it runs.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub(crate) fn now(caribou: Option<u32>) -> anyhow::Result<Self> {
        let stats = stats()?;
        let generator = std::process::id();
        let ours = program(generator);
        let guard = caribou.and_then(program);
        let role = |pid: u32| match pid {
            _ if pid == generator => Some(Role::Generator),
            _ if Some(pid) == caribou => Some(Role::Caribou),
            _ if !descends(pid, generator, &stats) => None,
            // A Caribou that waits for its turn, and its guard, are nobody's cost.
            _ if !caribou.is_some_and(|caribou| descends(pid, caribou, &stats)) => {
                (program(pid) == ours).then_some(Role::Echo)
            }
            // The guard is the same program as Caribou; the servers it starts are not.
            _ if guard.is_some() && program(pid) == guard => Some(Role::Guard),
            _ => Some(Role::Child),
        };
        Ok(Self(stats.iter().filter_map(|(&pid, stat)| Some((pid, (role(pid)?, stat.cpu)))).collect()))
    }

    /// CPU time used since an earlier reading.
    pub(crate) fn cpu_since(&self, earlier: &Self) -> Cpu {
        let mut used = Cpu::default();
        for (pid, (role, cpu)) in &self.0 {
            let before = earlier.0.get(pid).map_or(Duration::ZERO, |(_, cpu)| *cpu);
            *match role {
                Role::Generator => &mut used.generator,
                Role::Caribou => &mut used.caribou,
                Role::Guard => &mut used.guard,
                Role::Child | Role::Echo => &mut used.upstream,
            } += cpu.saturating_sub(before);
        }
        used
    }
}

/// Resident memory of the Caribou with this pid and of what it started.
///
/// # Errors
/// There is no `/proc`.
pub(crate) fn resident(caribou: u32) -> anyhow::Result<Resident> {
    let mut resident = Resident::default();
    for (pid, (role, _)) in Processes::now(Some(caribou))?.0 {
        match role {
            Role::Caribou => resident.caribou_kib += rss_kib(pid),
            Role::Guard => resident.guard_kib += rss_kib(pid),
            Role::Child => {
                resident.children_kib += rss_kib(pid);
                resident.children += 1;
            }
            Role::Generator | Role::Echo => {}
        }
    }
    Ok(resident)
}

/// CPU time that this process has used, and everything below it, whatever has ended and was waited for included.
///
/// # Errors
/// There is no `/proc`, or no such process.
pub(crate) fn cpu_below(pid: u32) -> anyhow::Result<Duration> {
    let stats = stats()?;
    let root = stats.get(&pid).with_context(|| format!("process {pid} is gone"))?;
    let below = stats.iter().filter(|&(&other, _)| descends(other, pid, &stats));
    Ok(root.cpu + root.reaped + below.map(|(_, stat)| stat.cpu + stat.reaped).sum::<Duration>())
}

/// CPU time that this process has used.
///
/// # Errors
/// There is no `/proc`.
pub(crate) fn own_cpu() -> anyhow::Result<Duration> {
    Stat::read(std::process::id()).map(|stat| stat.cpu).context("reading /proc")
}

fn stats() -> anyhow::Result<HashMap<u32, Stat>> {
    let entries = fs::read_dir("/proc").context("listing /proc")?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(|pid| Some((pid, Stat::read(pid)?))).collect())
}

struct Stat {
    parent: u32,
    cpu: Duration,
    /// Of children that have ended and were waited for, and of theirs.
    reaped: Duration,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// See proc(5). The command stands in parentheses and may hold anything, blanks and parentheses included.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(") ")?.1.split(' ');
        let parent = fields.nth(1)?.parse().ok()?;
        let mut ticks = fields.skip(9).map_while(|field| field.parse::<u32>().ok());
        let mut two = || Some(TICK * (ticks.next()? + ticks.next()?));
        Some(Self { parent, cpu: two()?, reaped: two()? })
    }
}

fn descends(pid: u32, from: u32, stats: &HashMap<u32, Stat>) -> bool {
    std::iter::successors(stats.get(&pid), |stat| stats.get(&stat.parent)).any(|stat| stat.parent == from)
}

fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

fn rss_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|value| value.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let stat =
            Stat::parse("7 (a) b (c) S 3 7 7 0 -1 4194304 101 0 0 0 150 25 7 2 20 0 1 0 93084 1 1").expect("a stat");
        assert_eq!((stat.parent, stat.cpu), (3, Duration::from_millis(1750)));
        assert_eq!(stat.reaped, Duration::from_millis(90));
    }

    #[test]
    fn what_ended_below_a_process_is_counted_too() {
        let before = cpu_below(std::process::id()).expect("/proc");
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let ended = std::process::Command::new("sh").args(["-c", busy]).status().expect("a shell");
        let used = cpu_below(std::process::id()).expect("/proc") - before;
        assert!(ended.success() && used >= TICK, "{used:?}");
        assert!(cpu_below(u32::MAX).is_err() && own_cpu().is_ok());
    }

    #[test]
    fn this_process_is_the_generator() {
        let before = Processes::now(None).expect("/proc");
        let used = Processes::now(None).expect("/proc").cpu_since(&before);
        assert_eq!((used.caribou, used.guard), (Duration::ZERO, Duration::ZERO));
        assert!(rss_kib(std::process::id()) > 0);
    }
}
