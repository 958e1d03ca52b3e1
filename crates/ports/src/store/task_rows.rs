//! Tasks as they are on record, for whoever lists and shows them (contract 2.3).
//!
//! Everything that is never shown to callers (the remote's name, the driver's data, the server's configuration) is left
//! out; the server and the user are for administrators.

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
