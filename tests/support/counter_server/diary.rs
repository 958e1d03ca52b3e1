//! The diary of all lives of one test's counters: lines that are only added, and a stamp for each life.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::bearing::Bearing;
use super::lives::Lives;
use crate::caribou::binary;
use crate::{Home, process};

/// Names the folder.
const FOLDER: &str = "COUNTER_DIARY";

/// The lines, within it.
const LINES: &str = "lines.jsonl";

/// Nanoseconds of the clock that all processes of this machine share and nobody sets.
pub fn boot_clock_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Where counters write, and where a test reads what they wrote.
#[derive(Debug)]
pub struct Diary {
    folder: PathBuf,
    lines: File,
    /// Whose life this process is; empty in a test.
    session: String,
    boot: String,
}

impl Diary {
    /// A new one in the test's own folder.
    pub fn new(home: &Home) -> Self {
        let folder = home.join("diary");
        fs::create_dir_all(&folder).expect("a folder can be made in a test's own folder");
        Self::at(folder)
    }

    /// That which this process was told to write.
    pub(super) fn of_this_process() -> Self {
        Self::at(std::env::var_os(FOLDER).expect("COUNTER_DIARY names a folder").into())
    }

    fn at(folder: PathBuf) -> Self {
        let lines = OpenOptions::new().create(true).append(true).open(folder.join(LINES));
        let variable = |name| std::env::var(name).unwrap_or_default();
        let (session, boot) = (variable("CARIBOU_SESSION"), variable("CARIBOU_BOOT"));
        Self { lines: lines.expect("the diary's folder can be written to"), folder, session, boot }
    }

    /// The entry of `mcpServers` for a counter that writes here.
    pub fn entry(&self, bearing: Bearing) -> Value {
        self.entry_that_beats(bearing, 20)
    }

    /// The same with another distance between two stamps, in milliseconds: for hundreds at a time.
    pub fn entry_that_beats(&self, bearing: Bearing, every_ms: u64) -> Value {
        let (name, value) = bearing.variable();
        let env = json!({ FOLDER: self.folder, name: value, "COUNTER_BEAT_MS": every_ms.to_string() });
        json!({ "command": binary("counter-mcp"), "env": env })
    }

    /// Adds one line, in one piece.
    pub(super) fn write(&self, event: &str, life: &str, members: &Value) {
        let mut line = json!({
            "ns": boot_clock_ns(), "event": event, "life": life, "pid": std::process::id(),
            "session": self.session, "boot": self.boot,
        });
        if let (Some(line), Some(members)) = (line.as_object_mut(), members.as_object()) {
            line.extend(members.clone());
        }
        // A folder that is gone belongs to a test that is over.
        let _ = (&self.lines).write_all(format!("{line}\n").as_bytes());
    }

    /// Keeps every other life of this session from being there as well, as long as what is answered is kept; whether
    /// one is there now. The kernel gives it back with the last breath, so no overlap is too short to be seen.
    /// The catalogue's own sessions are one for each replica.
    pub(super) fn hold_session(&self) -> (Option<File>, bool) {
        if self.session.ends_with("/:") {
            return (None, false);
        }
        let name: String = self.session.bytes().map(|byte| format!("{byte:02x}")).collect();
        let file =
            File::create(self.folder.join(format!("{name}.lock"))).expect("the diary's folder can be written to");
        let met = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        (Some(file), met)
    }

    /// Where `life` notes that it lasts.
    pub(super) fn stamp(&self, life: &str) -> Stamp {
        Stamp(File::create(self.folder.join(format!("{life}.stamp"))).ok())
    }

    /// Everything that was written so far.
    pub fn lives(&self) -> Lives {
        let lines = fs::read_to_string(self.folder.join(LINES)).unwrap_or_default();
        Lives::read(&lines, |life| last_stamp(&self.folder, life))
    }

    /// The processes of it that are still alive. What only has a number of theirs does not count.
    pub fn alive(&self) -> Vec<u32> {
        let mark = format!("{FOLDER}={}", self.folder.display());
        let is_ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let pids = self.lives().everyone().map(|life| life.pid).collect::<Vec<_>>();
        pids.into_iter().filter(|pid| process::is_alive(*pid) && is_ours(pid)).collect()
    }
}

fn last_stamp(folder: &Path, life: &str) -> Option<u64> {
    let bytes = fs::read(folder.join(format!("{life}.stamp"))).ok()?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// The last moment at which a life is known to have lasted.
pub(super) struct Stamp(Option<File>);

impl Stamp {
    pub(super) fn set(&self, ns: u64) {
        if let Some(file) = &self.0 {
            let _ = file.write_all_at(&ns.to_le_bytes(), 0);
        }
    }
}
