//! What a fake saw and did, for tests to read back.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that happened at a fake.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// What: `start`, `recv`, `called`, `finished`, `cancelled`, `gone`, `opened`, `closed`, `encrypted`,
    /// `distrusted`, `eof`, `term`.
    pub event: String,
    /// Milliseconds since the machine was started.
    pub at_ms: u64,
    /// The fake's process.
    pub pid: u32,
    /// The message or id it is about.
    pub raw: String,
    /// The HTTP method.
    pub method: String,
    /// The HTTP path with its query.
    pub path: String,
    /// The HTTP headers, names in lower case; several of one name are joined by `, `.
    pub headers: BTreeMap<String, String>,
    /// How many calls of the tool were under way, this one counted, when it was `called`.
    pub overlap: u32,
}

impl Seen {
    /// The message as JSON; null when it is none.
    pub fn message(&self) -> Value {
        serde_json::from_str(&self.raw).unwrap_or_default()
    }

    /// The MCP method of the message, empty when there is none.
    pub fn mcp_method(&self) -> String {
        self.message()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// Where a fake writes and a test reads.
#[derive(Clone, Debug)]
pub enum Log {
    /// Nowhere.
    Nowhere,
    /// JSON lines in a file, of any number of processes.
    File(PathBuf),
    /// The memory of this process.
    Memory(Arc<Mutex<Vec<Seen>>>),
}

impl Log {
    /// Adds a record about `raw`.
    pub fn add(&self, event: &str, raw: &str) {
        self.add_full(Seen { event: event.to_owned(), raw: raw.to_owned(), ..Seen::default() });
    }

    /// Adds a record; time and process are filled in.
    pub fn add_full(&self, seen: Seen) {
        let seen = Seen { at_ms: uptime_ms(), pid: std::process::id(), ..seen };
        match self {
            Self::Nowhere => {}
            Self::Memory(records) => records.lock().unwrap_or_else(PoisonError::into_inner).push(seen),
            Self::File(path) => {
                let line = serde_json::to_string(&seen).expect("a record is plain data") + "\n";
                let file = OpenOptions::new().append(true).create(true).open(path);
                // One write per line: lines of several processes do not mix.
                file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the log can be written");
            }
        }
    }

    /// All records so far.
    pub fn all(&self) -> Vec<Seen> {
        match self {
            Self::Nowhere => Vec::new(),
            Self::Memory(records) => records.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Self::File(path) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
            }
        }
    }

    /// The records of one event.
    pub fn events(&self, event: &str) -> Vec<Seen> {
        self.all().into_iter().filter(|seen| seen.event == event).collect()
    }

    /// The messages received with this MCP method.
    pub fn received(&self, method: &str) -> Vec<Seen> {
        self.events("recv").into_iter().filter(|seen| seen.mcp_method() == method).collect()
    }

    /// The calls of a tool, by its raw name, as they were received.
    pub fn calls(&self, tool: &str) -> Vec<Seen> {
        let is_of = |seen: &Seen| seen.message()["params"]["name"] == tool;
        self.received("tools/call").into_iter().filter(is_of).collect()
    }

    /// The most calls of a tool that were under way at once.
    pub fn overlap(&self, tool: &str) -> u32 {
        self.events("called").iter().filter(|seen| seen.raw == tool).map(|seen| seen.overlap).max().unwrap_or(0)
    }

    /// The processes that started.
    pub fn pids(&self) -> Vec<u32> {
        self.events("start").iter().map(|seen| seen.pid).collect()
    }
}

fn uptime_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds: f64 = text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or_default();
    std::time::Duration::from_secs_f64(seconds).as_millis().try_into().unwrap_or(u64::MAX)
}
