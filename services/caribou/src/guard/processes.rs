//! The children of this process and the environment of any, as the kernel knows them.
//!
//! Read from `/proc/<pid>/stat`, because a subreaper is given children it never started and nothing else lists them
//! (`/proc/<pid>/task/<tid>/children` is a build option of the kernel). Without a readable `/proc` the list is empty:
//! escaped descendants are then not found, everything else works.

use std::fs;

use rustix::process::{Pid, getpid};

/// One child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// Dead, and waiting to be reaped.
    pub(super) zombie: bool,
    pub(super) group: i32,
    pub(super) session: i32,
}

/// All children of this process, adopted ones and zombies too.
pub(super) fn children() -> Vec<Process> {
    let own = getpid().as_raw_nonzero().get();
    let stats = pids().filter_map(|pid| fs::read(format!("/proc/{pid}/stat")).ok());
    stats.filter_map(|stat| parse(&stat)).filter(|(parent, _)| *parent == own).map(|(_, process)| process).collect()
}

/// The session this process lives in, as a `Process` shows it; 0 when its leader is outside this PID namespace, which
/// is what a container entered with `nsenter` or `exec` sees (and what no checked pid of a library can hold).
pub(super) fn own_session() -> Option<i32> {
    parse(&fs::read("/proc/self/stat").ok()?).map(|(_, process)| process.session)
}

/// Every process on this machine that this one may see.
pub(super) fn pids() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
}

/// The value of `name` in the environment a process was started with. `None` for a zombie, or when it may not be read.
pub(super) fn environment_of(pid: Pid, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let (entry_name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        (entry_name == name).then(|| value.to_owned())
    })
}

/// The parent and the process of one `stat` line: `pid (name) state parent group session …`.
fn parse(stat: &[u8]) -> Option<(i32, Process)> {
    // The name may hold anything, also parentheses and bytes that are no text: the last one ends it.
    let (open, close) = (stat.iter().position(|b| *b == b'(')?, stat.iter().rposition(|b| *b == b')')?);
    let pid = std::str::from_utf8(&stat[..open]).ok()?.trim().parse().ok()?;
    let mut fields = std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let mut number = || fields.next()?.parse::<i32>().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    Some((parent, Process { pid: Pid::from_raw(pid)?, zombie, group, session }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_bytes_does_not_shift_the_fields() {
        let (parent, process) = parse(b"42 (a) Z 1 (\xff) S 7 40 39 0 -1 4194560").unwrap();
        assert_eq!(parent, 7);
        assert_eq!(process, Process { pid: Pid::from_raw(42).unwrap(), zombie: false, group: 40, session: 39 });
        assert!(parse(b"43 (gone) Z 7 40 39").unwrap().1.zombie);
    }

    #[test]
    fn what_is_no_stat_line_is_skipped() {
        for text in ["", "42", "42 (x", "42 (x) S", "0 (x) S 1 2 3", "x (x) S 1 2 3"] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_child_of_this_process_is_seen_with_its_environment() {
        let mut child = std::process::Command::new("cat")
            .env("CARIBOU_CHILD", "17")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(children().iter().any(|process| process.pid == pid));
        assert_eq!(environment_of(pid, "CARIBOU_CHILD").as_deref(), Some("17"));
        assert_eq!(environment_of(pid, "CARIBOU_CHIL"), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
