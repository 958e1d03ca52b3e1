//! What the system lets this process have: open files, and the processes and the memory of its control group. Children
//! of a replica count in the same group.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::finding::Finding;
use super::ground::Ground;

/// Pipes of one child.
const FILES_OF_A_CHILD: u64 = 3;

/// Callers, remote servers, the database and everything else.
const FILES_BESIDE: u64 = 256;

/// Processes and threads of a server that Node.js runs, with its launcher: both count.
const THREADS_OF_A_SERVER: u64 = 12;

/// Memory of a small server.
const BYTES_OF_A_SERVER: u64 = 64 * 1024 * 1024;

/// Room for fewer is hardly meant, however many are allowed.
const FEW_SERVERS: u64 = 16;

/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

pub(super) fn check(ground: &Ground) -> Vec<Finding> {
    let most = u64::try_from(ground.settings.sessions.max_live).unwrap_or(u64::MAX);
    let mut found = vec![open_files(getrlimit(Resource::Nofile).current, most)];
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group_of(&text, Path::new(GROUPS)));
    if let Some(group) = group {
        let (each, wanted) = (THREADS_OF_A_SERVER, most.min(FEW_SERVERS));
        found.extend(room(&group, Path::new(GROUPS), "pids").map(|room| {
            let what = format!("room for {room} more processes and threads, about {} servers", room / each);
            judged("processes", room / each, wanted, what, "raise the limit of processes of the container or unit")
        }));
        found.extend(room(&group, Path::new(GROUPS), "memory").map(|room| {
            let (each, mib) = (BYTES_OF_A_SERVER, room / 1024 / 1024);
            let what = format!("room for {mib} MiB more, about {} small servers", room / each);
            judged("memory", room / each, wanted, what, "raise the limit of memory of the container or unit")
        }));
    }
    found
}

fn judged(subject: &str, servers: u64, wanted: u64, what: String, mend: &str) -> Finding {
    let found = match servers < wanted {
        true => Finding::warning(what, format!("{mend}, or lower `sessions.max_live`")),
        false => Finding::ok(what),
    };
    found.about(subject)
}

fn open_files(limit: Option<u64>, most_children: u64) -> Finding {
    let needed = most_children.saturating_mul(FILES_OF_A_CHILD).saturating_add(FILES_BESIDE);
    let found = match limit {
        None => Finding::ok("no limit"),
        Some(limit) if limit >= needed => Finding::ok(format!("{limit}, and {needed} are enough for all sessions")),
        Some(limit) => Finding::warning(
            format!("{limit}, and {most_children} sessions of stdio servers need about {needed}"),
            format!("start it with `ulimit -n {needed}` (systemd: LimitNOFILE), or lower `sessions.max_live`"),
        ),
    };
    found.about("open files")
}

/// The folder of this process's group, of control groups of the second version.
fn group_of(text: &str, groups: &Path) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(groups.join(path.trim_start_matches('/')))
}

/// What is left of one resource: the least of this group and of those around it. `None` = there is no limit.
fn room(group: &Path, groups: &Path, resource: &str) -> Option<u64> {
    let read = |folder: &Path, what: &str| {
        let text = fs::read_to_string(folder.join(format!("{resource}.{what}"))).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let around = group.ancestors().take_while(|folder| folder.starts_with(groups));
    around.filter_map(|folder| Some(read(folder, "max")?.saturating_sub(read(folder, "current")?))).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    #[test]
    fn the_tightest_group_counts_and_no_limit_is_none() {
        let groups = tempfile::tempdir().unwrap();
        let group = group_of("1:name=x:/y\n0::/pod/app\n", groups.path()).unwrap();
        assert_eq!(group, groups.path().join("pod/app"));
        fs::create_dir_all(&group).unwrap();
        assert_eq!(room(&group, groups.path(), "pids"), None);
        for (file, text) in
            [("pids.max", "max\n"), ("pids.current", "5\n"), ("../pids.max", "100\n"), ("../pids.current", "90\n")]
        {
            fs::write(group.join(file), text).unwrap();
        }
        assert_eq!(room(&group, groups.path(), "pids"), Some(10));
        assert_eq!(group_of("1:cpu:/x\n", groups.path()), None);
    }

    #[test]
    fn too_few_open_files_are_told_with_how_many_are_enough() {
        assert_eq!(open_files(None, 256).state, State::Ok);
        assert_eq!(open_files(Some(1_024), 256).state, State::Ok);
        let few = open_files(Some(1_024), 1_000);
        assert!(few.state == State::Warning && few.mend.unwrap().contains("ulimit -n 3256"));
    }
}
