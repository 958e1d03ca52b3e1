//! Tasks as they are on record, for whoever lists and shows them (contract 2.3).
//!
//! Everything that is never shown to callers (the remote's name, the driver's data, the server's configuration) is left
//! out; the server and the user are for administrators.

use std::fmt;

use caribou_core::ids::{Scope, ServerName, ThreadId, UserId};
use caribou_core::notification::Notified;
use caribou_core::task::{Snapshot, TaskId};

/// Which tasks; an absent member matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Of this user.
    pub user: Option<UserId>,
    /// In this thread.
    pub thread: Option<ThreadId>,
    /// Of this server.
    pub server: Option<ServerName>,
    /// `Some(true)` = only those that go on, `Some(false)` = only those that ended.
    pub is_active: Option<bool>,
}

/// The last task of a page: the next page begins after it. Newest first; of the same age the greater id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageKey {
    /// When it was created: [`StoredTask::created_us`].
    pub created_us: i64,
    /// Which.
    pub task: TaskId,
}

impl fmt::Display for PageKey {
    /// The cursor that callers hand back: its time and name in hexadecimal digits. Nothing to take apart for them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:032x}", self.created_us, u128::from_be_bytes(self.task.0))
    }
}

impl PageKey {
    /// The place that a cursor of ours names; `None` = it is none.
    pub fn parse(cursor: &str) -> Option<Self> {
        let is_ours = cursor.len() == 48 && cursor.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_ours {
            return None;
        }
        let (created, name) = cursor.split_at(16);
        let created_us = i64::from_str_radix(created, 16).ok()?;
        let task = TaskId(u128::from_str_radix(name, 16).ok()?.to_be_bytes());
        Some(Self { created_us, task })
    }
}

impl StoredTask {
    /// Where the page after one that ends with this task begins.
    pub fn page_key(&self) -> PageKey {
        PageKey { created_us: self.created_us, task: self.task }
    }
}

/// A task on record. Times are microseconds of the Unix epoch by the store's clock, for people and for paging only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// Its local name.
    pub task: TaskId,
    /// Whose it is, in which thread.
    pub scope: Scope,
    /// The server.
    pub server: ServerName,
    /// The name of its toolset.
    pub task_name: String,
    /// Who speaks to the server about it: what its result is. Not shown.
    pub driver: String,
    /// Its state; in lists without result, preview, artifact and question.
    pub snapshot: Snapshot,
    /// Changes recorded so far: the number of its newest event.
    pub version: i64,
    /// When it was created.
    pub created_us: i64,
    /// When its record changed last.
    pub updated_us: i64,
    /// When it ended.
    pub ended_us: Option<i64>,
    /// When a poll was last answered.
    pub last_polled_us: Option<i64>,
    /// Poll errors in a row.
    pub poll_errors: u32,
    /// Why the last poll failed; `None` = it did not.
    pub last_poll_error: Option<String>,
    /// Whether it was to be cancelled.
    pub is_cancel_requested: bool,
    /// Attempts to cancel it.
    pub cancel_attempts: u32,
    /// Why the last one failed.
    pub last_cancel_error: Option<String>,
    /// Answers that wait to be brought to the remote.
    pub waiting_answers: u32,
    /// Why the last attempt to bring one failed.
    pub last_answer_error: Option<String>,
    /// How far its newest event is on its way, to the first sink that has not heard it.
    pub notified: Notified,
    /// Failures of that delivery.
    pub notification_failures: u32,
    /// Why it failed last.
    pub notification_error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_the_place_it_was_made_at_and_nothing_else_does() {
        let name = "0a0102030405060708090a0b0c0d0eff";
        let text = format!("{:016x}{name}", 1_790_000_000_000_001_i64);
        let read = PageKey::parse(&text).unwrap();
        assert_eq!(read.created_us, 1_790_000_000_000_001);
        assert_eq!(read.task.to_string(), format!("mcp-task-{name}"));
        assert_eq!(read.to_string(), text);
        for wrong in ["", "7", &"f".repeat(48), &"0".repeat(47), &"A".repeat(48), &"é".repeat(24)] {
            assert_eq!(PageKey::parse(wrong), None, "{wrong}");
        }
    }
}
