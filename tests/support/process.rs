//! What `/proc` tells about processes: who is alive, who belongs to whom, how much they hold.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// One line of `/proc/<pid>/stat`, as far as the tests need it.
struct Stat {
    state: char,
    parent: u32,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so the fields are counted from the last parenthesis.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

/// Whether the process runs; a zombie does not.
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state != 'Z')
}

/// Whether it stands still, as after a SIGSTOP.
pub fn is_stopped(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state == 'T')
}

/// All processes below `pid`, zombies included, nearest first.
pub fn descendants(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .expect("/proc is mounted")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?.parent)))
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// The processes below `pid` that ended and were not reaped.
pub fn zombies(pid: u32) -> Vec<u32> {
    descendants(pid).into_iter().filter(|pid| stat(*pid).is_some_and(|stat| stat.state == 'Z')).collect()
}

/// Resident memory in KiB; 0 when the process is gone.
pub fn rss_kib(pid: u32) -> u64 {
    status_field(pid, "VmRSS:")
}

/// The most memory it ever held, in KiB; 0 when the process is gone.
pub fn peak_rss_kib(pid: u32) -> u64 {
    status_field(pid, "VmHWM:")
}

fn status_field(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(field));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// How many file descriptors it holds; 0 when the process is gone.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Sends a signal; a process that is gone already is fine.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_a_descendant_until_it_is_reaped() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let me = std::process::id();
        assert!(is_alive(child.id()) && descendants(me).contains(&child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_alive(child.id()) && !descendants(me).contains(&child.id()));
    }

    #[test]
    fn this_process_holds_memory_and_files() {
        let me = std::process::id();
        assert!(rss_kib(me) > 100 && peak_rss_kib(me) >= rss_kib(me) && open_files(me) >= 3);
    }
}
