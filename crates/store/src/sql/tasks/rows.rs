//! Tasks as they are stored, and what they mean.

use caribou_core::holding::Token;
use caribou_core::ids::{BootId, Scope, ServerName, ThreadId, UserId};
use caribou_core::notification::{Notified, Phase};
use caribou_core::task::poison::FAIL_AFTER;
use caribou_core::task::{Artifact, Duty, Fingerprint, Lane, Snapshot, SnapshotFingerprint, Status, TaskId};
use caribou_ports::store::{ClaimedTask, StoreError, StoredTask, TaskClaim};
use uuid::Uuid;

use crate::sql::row::row;

row! {
    /// A claimed row with its task.
    ClaimedRow {
        due_lane: i16,
        due_us: i64,
        task_id: Uuid,
        lane: i16,
        claim_seq: i64,
        abandons: i16,
        poll_errors: i32,
        attempts: i32,
        user_id: String,
        thread_id: String,
        server: String,
        driver: String,
        task_name: String,
        remote_id: Option<String>,
        driver_data: String,
        session_id: Option<String>,
        is_pinned: bool,
        is_lost: bool,
        configuration: i64,
        run_id: Option<String>,
        is_cancel_requested: bool,
        waiting_answers: i32,
        fingerprint: Option<Vec<u8>>,
        status: i16,
        result: Option<String>,
        preview: Option<String>,
        is_truncated: bool,
        artifact_uri: Option<String>,
        artifact_mime: Option<String>,
        error: Option<String>,
        input_required: Option<String>,
    }
}

/// The columns of [`ClaimedRow`] from its third on, of `w` (work) and `t` (task).
macro_rules! claimed_columns {
    () => {
        "w.task_id, w.lane, w.claim_seq, w.abandons, w.poll_errors, w.attempts, t.user_id, t.thread_id, t.server,
         t.driver, t.task_name, t.remote_id, t.driver_data, t.session_id, t.is_pinned,
         w.pinned_to IS NOT NULL
         AND COALESCE((SELECT life.state FROM replica AS life WHERE life.boot_id = w.pinned_to), 3) = 3,
         t.configuration, t.run_id,
         t.cancel_at IS NOT NULL, t.waiting_answers, t.fingerprint, t.status, t.result, t.preview, t.is_truncated,
         t.artifact_uri, t.artifact_mime, t.error, t.input_required"
    };
}

pub(super) use claimed_columns;

row! {
    /// A task for whoever looks at it.
    TaskRow {
        task_id: Uuid,
        user_id: String,
        thread_id: String,
        server: String,
        task_name: String,
        driver: String,
        ver: i64,
        created_us: i64,
        updated_us: i64,
        ended_us: Option<i64>,
        last_polled_us: Option<i64>,
        poll_errors: i32,
        last_poll_error: Option<String>,
        is_cancel_requested: bool,
        cancel_attempts: i32,
        last_cancel_error: Option<String>,
        waiting_answers: i32,
        last_answer_error: Option<String>,
        phase: Option<i16>,
        failures: Option<i32>,
        delivery_error: Option<String>,
        was_told: bool,
        status: i16,
        result: Option<String>,
        preview: Option<String>,
        is_truncated: bool,
        artifact_uri: Option<String>,
        artifact_mime: Option<String>,
        error: Option<String>,
        input_required: Option<String>,
        rpc_error: Option<String>,
    }
}

/// What stands in a column is nothing that this version writes.
pub(in crate::sql) fn strange(column: &str) -> StoreError {
    StoreError::Mismatch(format!("what stands in column {column}"))
}

pub(in crate::sql) fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

pub(in crate::sql) fn scope(user: String, thread: String) -> Scope {
    Scope { user: UserId::new(user), thread: ThreadId::new(thread) }
}

impl ClaimedRow {
    /// The claimed task; `None` = it went to quarantine instead.
    pub(super) fn claimed(self, owner: &BootId) -> Result<Option<ClaimedTask>, StoreError> {
        if self.lane != self.due_lane {
            return Ok(None);
        }
        let lane = Lane::from_number(self.lane).ok_or_else(|| strange("lane"))?;
        let status = Status::from_number(self.status).ok_or_else(|| strange("status"))?;
        let waiting = count(self.waiting_answers);
        let told = self.fingerprint.map(|bytes| bytes.try_into().map(Fingerprint)).transpose();
        let abandons = u32::try_from(self.abandons).unwrap_or(0);
        Ok(Some(ClaimedTask {
            claim: TaskClaim {
                task: TaskId(self.task_id.into_bytes()),
                token: Token { seq: self.claim_seq, owner: owner.clone() },
            },
            duty: Duty::of(status, self.is_cancel_requested, waiting),
            is_poisoned: lane.duty() == Duty::Quarantine && abandons >= FAIL_AFTER,
            poll_errors: count(self.poll_errors),
            attempts: count(self.attempts),
            scope: scope(self.user_id, self.thread_id),
            server: ServerName::new(self.server),
            driver: self.driver,
            task_name: self.task_name,
            remote_id: self.remote_id,
            driver_data: self.driver_data,
            session_id: self.session_id,
            is_pinned: self.is_pinned,
            is_lost: self.is_lost,
            configuration: SnapshotFingerprint(self.configuration),
            run_id: self.run_id,
            snapshot: Snapshot {
                status,
                result: self.result,
                preview: self.preview,
                is_truncated: self.is_truncated,
                artifact: artifact(self.artifact_uri, self.artifact_mime),
                error: self.error,
                // One that is worked on has not ended.
                rpc_error: None,
                input_required: self.input_required,
            },
            told: told.map_err(|_| strange("fingerprint"))?,
        }))
    }
}

fn artifact(uri: Option<String>, mime_type: Option<String>) -> Option<Artifact> {
    Some(Artifact { uri: uri?, mime_type: mime_type? })
}

impl TaskRow {
    /// The task.
    pub(super) fn stored(self) -> Result<StoredTask, StoreError> {
        let phase = self.phase.map(|number| Phase::from_number(number).ok_or_else(|| strange("phase"))).transpose()?;
        Ok(StoredTask {
            task: TaskId(self.task_id.into_bytes()),
            scope: scope(self.user_id, self.thread_id),
            server: ServerName::new(self.server),
            task_name: self.task_name,
            driver: self.driver,
            snapshot: Snapshot {
                status: Status::from_number(self.status).ok_or_else(|| strange("status"))?,
                result: self.result,
                preview: self.preview,
                is_truncated: self.is_truncated,
                artifact: artifact(self.artifact_uri, self.artifact_mime),
                error: self.error,
                rpc_error: self.rpc_error,
                input_required: self.input_required,
            },
            version: self.ver,
            created_us: self.created_us,
            updated_us: self.updated_us,
            ended_us: self.ended_us,
            last_polled_us: self.last_polled_us,
            poll_errors: count(self.poll_errors),
            last_poll_error: self.last_poll_error,
            is_cancel_requested: self.is_cancel_requested,
            cancel_attempts: count(self.cancel_attempts),
            last_cancel_error: self.last_cancel_error,
            waiting_answers: count(self.waiting_answers),
            last_answer_error: self.last_answer_error,
            notified: Notified::of(phase, self.was_told),
            notification_failures: self.failures.map_or(0, count),
            notification_error: self.delivery_error,
        })
    }
}
