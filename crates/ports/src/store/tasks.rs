//! Durable tasks: their record, and the work that is still to be done for each (durability.md 1.4, 1.5).
//!
//! A task that has not ended has exactly one row of work, due at some time (invariant T4). Work is claimed; whatever is
//! written about a claimed task names the claim, and is answered with [`Settled::Fenced`] and changes nothing when the
//! claim is no longer the newest or has expired (invariant C1). Waits are counted by the store's clock from the moment
//! of the write; no replica ever sends a time.

use std::time::Duration;

use caribou_core::holding::Token;
use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_core::notification::Sink;
use caribou_core::task::{Duty, Event, Fingerprint, Lane, Pin, Shard, Snapshot, SnapshotFingerprint, Status, TaskId};

use super::{PageKey, StoreError, StoredTask, TaskFilter};
use crate::BoxFuture;

/// The tasks of all users.
pub trait Tasks: Send + Sync + 'static {
    /// Stores that a remote is about to be asked, and claims the work (invariant T1). The same `submit_key` again
    /// stores nothing.
    fn note_intent(&self, intent: TaskIntent) -> BoxFuture<'_, Result<Noted, StoreError>>;

    /// Deletes an intent of which surely nothing came.
    fn withdraw(&self, claim: TaskClaim) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// Stores the remote's handle: from now on the task is followed. A handle that another task of the same user with
    /// the same server has is refused, and the intent is deleted (contract 6.4).
    fn record(&self, claim: TaskClaim, handle: Handle) -> BoxFuture<'_, Result<Recorded, StoreError>>;

    /// Ends an intent of which nobody can tell whether something came. `change` must be to [`Status::Unknown`].
    fn mark_unknown(&self, claim: TaskClaim, change: Change) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// Claims work that is due, the longest due first in each shard. A row whose claim expired counts as abandoned;
    /// abandoned too often it goes to [`Duty::Quarantine`] instead of being given out (durability.md 1.5, poison). What
    /// is pinned to another replica ([`caribou_core::task::Pin`]) is left to it for as long as that one has not ended.
    fn claim_due(&self, wanted: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>>;

    /// Puts off claims that run long. The ones that are lost.
    fn renew(&self, claims: Vec<TaskClaim>, lease: Duration) -> BoxFuture<'_, Result<Vec<TaskClaim>, StoreError>>;

    /// Notes, under the claim, in which session a pinned task lives from now on; the claim goes on.
    fn move_pin(&self, claim: TaskClaim, pin: Pin) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// Gives claims back untouched: counters and schedule stay, nothing counts as abandoned. Due again after `again`;
    /// fenced ones are left alone.
    fn release(&self, claims: Vec<TaskClaim>, again: Duration) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Settles polls that brought nothing new, in one statement. Only for tasks whose poll before was no error: what an
    /// error left is cleared by [`Tasks::apply`]. The ones that are lost.
    fn keep(&self, unchanged: Vec<Unchanged>) -> BoxFuture<'_, Result<Vec<TaskClaim>, StoreError>>;

    /// Settles a poll or a cancel that brought a state: status and event in one commit (invariant T3), errors cleared.
    /// An end removes the work (invariant T2); otherwise the task is polled again after `again`, or goes on with its
    /// answers or its cancellation.
    fn apply(&self, claim: TaskClaim, change: Change, again: Duration) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// Settles an attempt that failed and is made again.
    fn put_off(&self, claim: TaskClaim, failed: AttemptFailed) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// Stores that a task is to be cancelled, and fences a poll or answer in flight (invariant C2). Never waits for a
    /// remote. `of` = only if it is this user's, in this thread; `None` = anybody's.
    fn request_cancel(&self, task: TaskId, of: Option<Scope>) -> BoxFuture<'_, Result<CancelRequested, StoreError>>;

    /// Stores an answer to what the task asks, by the rule of [`caribou_core::task::input::answer`], and makes bringing
    /// it to the remote due. A poll in flight is fenced.
    fn answer(
        &self,
        task: TaskId,
        of: Option<Scope>,
        answer: NewAnswer,
    ) -> BoxFuture<'_, Result<AnswerStored, StoreError>>;

    /// The answers that wait to be brought to the remote, in the order in which they were given.
    fn waiting_answers(&self, task: TaskId) -> BoxFuture<'_, Result<Vec<NewAnswer>, StoreError>>;

    /// The names of all answers that were stored, whatever became of them.
    fn answered(&self, task: TaskId) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Settles answers that were brought, or refused by the remote for good. Others go on waiting; without any, the
    /// task is polled again after `again`.
    fn settle_answers(
        &self,
        claim: TaskClaim,
        brought: Vec<BroughtAnswer>,
        again: Duration,
    ) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// One task. Intents are never shown (invariant T1). `of` as for [`Tasks::request_cancel`].
    fn read_task(&self, task: TaskId, of: Option<Scope>) -> BoxFuture<'_, Result<Option<StoredTask>, StoreError>>;

    /// The newest tasks that match, those after `before` only; at most `limit`.
    fn list_tasks(
        &self,
        filter: TaskFilter,
        before: Option<PageKey>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredTask>, StoreError>>;

    /// How many match.
    fn count_tasks(&self, filter: TaskFilter) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// How long until something is due in these lanes; zero = something is, `None` = they are empty.
    fn next_due(&self, lanes: Vec<Lane>) -> BoxFuture<'_, Result<Option<Duration>, StoreError>>;

    /// Makes due at once what a replica holds that was declared dead, up to `within` ahead: its longest lease; and the
    /// pinned tasks that were left to it. How many.
    fn take_back(&self, dead: BootId, within: Duration) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Deletes tasks that ended longer ago than `age`, with their events, and that have nothing left to tell: at most
    /// [`FORGET_BATCH`]. How many.
    fn forget_tasks(&self, age: Duration) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// Tasks, or lives of replicas, that are deleted in one commit (durability.md 1.4, retention).
pub const FORGET_BATCH: u32 = 1_000;

/// The most that is claimed at once.
pub const MAX_CLAIMED: u32 = 256;

/// The caller's own name of one submit, made before the remote is asked: a repeat finds the task of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubmitKey(pub [u8; 16]);

/// That a remote is about to be asked for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskIntent {
    /// Its local name.
    pub task: TaskId,
    /// Names the submit.
    pub submit_key: SubmitKey,
    /// Whose it is, in which thread.
    pub scope: Scope,
    /// The server.
    pub server: ServerName,
    /// Who speaks to the server about it.
    pub driver: String,
    /// The name of its toolset.
    pub task_name: String,
    /// The configuration of the server.
    pub snapshot: SnapshotFingerprint,
    /// Whether it lives and dies with one session of the server (architecture.md §10, pinned tasks).
    pub is_pinned: bool,
    /// The run of an agent that asks for it.
    pub run_id: Option<String>,
    /// The model's id of the call.
    pub tool_call_id: Option<String>,
    /// The replica that asks.
    pub owner: BootId,
    /// Longer than the remote may take to accept.
    pub lease: Duration,
    /// How many unfinished tasks a user may have.
    pub at_most: u32,
}

/// What became of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// It is stored and claimed: the remote may be asked, once.
    Intended(TaskClaim),
    /// It was stored before: the remote must not be asked.
    Existing {
        /// The task of the first.
        task: TaskId,
        /// Where it stands.
        status: Status,
    },
    /// The user has as many unfinished tasks as allowed.
    Full,
}

/// The claim of one task's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskClaim {
    /// The task.
    pub task: TaskId,
    /// Proves it.
    pub token: Token,
}

/// The remote has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The remote's name of the task.
    pub remote_id: String,
    /// What the driver wants to remember: a JSON object.
    pub driver_data: String,
    /// The session of the server that the task belongs to, so that another process may resume it.
    pub session_id: Option<String>,
    /// To [`Status::Submitted`]; what the remote says already is found by the first poll.
    pub change: Change,
    /// Until the first poll.
    pub again: Duration,
}

/// Whether a handle was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It was; the caller may hear of the task.
    Recorded,
    /// Another task has it: the remote is left alone.
    Duplicate,
    /// The intent is no longer ours: the remote's task is to be cancelled.
    Fenced,
}

/// Whether something was written under a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was.
    Settled,
    /// The claim is lost, and nothing was changed: what was found out is dropped.
    Fenced,
}

/// A new state of a task, and what is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The state; replaces all of the one before.
    pub snapshot: Snapshot,
    /// The event, if there is one to record.
    pub event: Option<Event>,
    /// Where it goes if it asks for attention.
    pub sinks: Vec<Sink>,
}

/// Which work is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTasks {
    /// Who claims.
    pub owner: BootId,
    /// Of which duty.
    pub duty: Duty,
    /// Of which shards, in this order.
    pub shards: Vec<Shard>,
    /// As many as are worked on at once now; a claim that waits its turn expires. At most [`MAX_CLAIMED`]; fewer may
    /// come although more are due: claim again.
    pub at_most: u32,
    /// How long the claims hold: at least twice the deadline of the call they are made for.
    pub lease: Duration,
    /// Only what has been due for this long, or is pinned to whoever claims. Zero for one's own shards.
    pub overdue: Duration,
    /// Work of these configurations is left to others ([`SnapshotFingerprint::left_to_others`]).
    pub not_of: Vec<SnapshotFingerprint>,
}

/// Work that was claimed, and all that is needed to do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedTask {
    /// The claim.
    pub claim: TaskClaim,
    /// What is to be done, also for one in quarantine.
    pub duty: Duty,
    /// Whether it was abandoned too often, the last times alone: it is to be failed, not worked on.
    pub is_poisoned: bool,
    /// Poll errors in a row so far.
    pub poll_errors: u32,
    /// Attempts of a duty other than polling, this one counted.
    pub attempts: u32,
    /// Whose it is.
    pub scope: Scope,
    /// The server.
    pub server: ServerName,
    /// Who speaks to the server about it.
    pub driver: String,
    /// The name of its toolset.
    pub task_name: String,
    /// The remote's name of it; `None` only for [`Duty::Submit`].
    pub remote_id: Option<String>,
    /// What the driver remembers.
    pub driver_data: String,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// Whether it lives and dies with one session.
    pub is_pinned: bool,
    /// Whether the replica that it is pinned to has ended, and that session with it.
    pub is_lost: bool,
    /// The configuration of the server it was accepted under.
    pub configuration: SnapshotFingerprint,
    /// The run of an agent that asked for it.
    pub run_id: Option<String>,
    /// Its state.
    pub snapshot: Snapshot,
    /// What its last delivered event said.
    pub told: Option<Fingerprint>,
}

/// A poll that brought nothing new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchanged {
    /// The claim.
    pub claim: TaskClaim,
    /// Until the next poll.
    pub again: Duration,
}

/// An attempt that failed and is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFailed {
    /// What was attempted: polling counts an error, the others have counted their attempt when they were claimed.
    pub duty: Duty,
    /// Why, cut to what is stored ([`caribou_core::task::limits::MAX_ERROR_CHARS`]).
    pub error: String,
    /// Until the next attempt.
    pub again: Duration,
    /// That the task has become hard to follow.
    pub event: Option<Event>,
    /// Where that goes.
    pub sinks: Vec<Sink>,
}

/// What a request to cancel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelRequested {
    /// It is stored.
    Requested,
    /// It was stored before; an attempt under way goes on.
    Already,
    /// The task has ended.
    Ended,
    /// There is no such task, or it is another's.
    NotFound,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAnswer {
    /// Its name.
    pub input_id: String,
    /// The answer as it was given: JSON.
    pub body: String,
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerStored {
    /// What the rule says; anything but `Store` and `Same` stored nothing.
    Judged(caribou_core::task::input::Answer),
    /// There is no such task, or it is another's.
    NotFound,
}

/// An answer that needs not be brought again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtAnswer {
    /// Its name.
    pub input_id: String,
    /// Why the remote does not want it; `None` = it took it.
    pub refused: Option<String>,
}
