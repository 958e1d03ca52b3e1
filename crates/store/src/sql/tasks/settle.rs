//! What an attempt brought is written under its claim: state, event and deliveries in one commit (invariants C1, T2, T3).

use caribou_core::notification::Sink;
use caribou_core::task::{Duty, Event, Lane, Shard, Status, TaskId};
use caribou_ports::store::{AttemptFailed, Change, Settled, StoreError, TaskClaim};
use sqlx::Connection as _;
use uuid::Uuid;

use crate::sql::SqlStore;
use crate::sql::pools::change;
use crate::sql::replicas::{milliseconds, uuid};
use crate::sql::statement::{Statement, statement};

/// The condition keeps what has ended as it is (invariant T2).
pub(super) const WRITE_STATE: Statement = statement!(
    "UPDATE mcp_task
     SET status = $2, result = $3, preview = $4, is_truncated = $5, artifact_uri = $6, artifact_mime = $7, error = $8,
         input_required = $9, fingerprint = COALESCE($10, fingerprint), ver = ver + $11, rpc_error = $12,
         last_poll_error = NULL, last_cancel_error = NULL, updated_at = " NOW ",
         ended_at = CASE WHEN $2 >= 10 THEN " NOW " ELSE NULL END
     WHERE task_id = $1 AND ended_at IS NULL
     RETURNING ver"
);

pub(super) const WRITE_EVENT: Statement =
    statement!("INSERT INTO mcp_event (task_id, seq, status, body, at) VALUES ($1, $2, $3, $4, " NOW ")");

/// The condition is the fence of the claim (invariant C1). A task that has answered harms nobody: it leaves quarantine.
const GO_ON: Statement = statement!(
    "UPDATE mcp_work SET due_at = " (MS_LATER 4) ", claim_owner = NULL, abandons = 0, poll_errors = 0,
                         last_polled_at = " NOW "
     WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW "
     RETURNING lane"
);

/// The condition is the fence of the claim (invariant C1).
const END: Statement = statement!(
    "DELETE FROM mcp_work WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW "
     RETURNING attempts"
);

/// What the row of work knew of an ended task.
const LEAVE_BEHIND: Statement = statement!(
    "UPDATE mcp_task
     SET cancel_attempts = CASE WHEN cancel_at IS NULL THEN 0 ELSE $2 END,
         last_polled_at = CASE WHEN status = 13 THEN NULL ELSE " NOW " END
     WHERE task_id = $1"
);

/// The condition is the fence of the claim (invariant C1).
const PUT_OFF: Statement = statement!(
    "UPDATE mcp_work SET due_at = " (MS_LATER 4) ", claim_owner = NULL, abandons = 0, poll_errors = poll_errors + $5
     WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW "
     RETURNING lane"
);

macro_rules! put_off {
    ($column:literal) => {
        statement!(
            "UPDATE mcp_task SET " $column " = $2, fingerprint = COALESCE($3, fingerprint), ver = ver + $4,
                                 updated_at = " NOW "
             WHERE task_id = $1 AND ended_at IS NULL
             RETURNING ver"
        )
    };
}

const POLL_FAILED: Statement = put_off!("last_poll_error");

const CANCEL_FAILED: Statement = put_off!("last_cancel_error");

const ANSWER_FAILED: Statement = put_off!("last_answer_error");

const WANTED: Statement =
    statement!("SELECT status, cancel_at IS NOT NULL, waiting_answers FROM mcp_task WHERE task_id = $1");

const MOVE: Statement = statement!("UPDATE mcp_work SET lane = $2 WHERE task_id = $1");

/// A state in the words of [`WRITE_STATE`].
pub(super) struct State {
    pub(super) status: i16,
    pub(super) is_terminal: bool,
    pub(super) artifact: (Option<String>, Option<String>),
    pub(super) fingerprint: Option<Vec<u8>>,
    pub(super) events: i64,
}

impl State {
    pub(super) fn of(change: &Change) -> Self {
        let status = change.snapshot.status;
        let artifact = change.snapshot.artifact.clone().map(|artifact| (artifact.uri, artifact.mime_type)).unzip();
        let (fingerprint, events) = event_columns(change.event.as_ref());
        Self { status: status.number(), is_terminal: status.is_terminal(), artifact, fingerprint, events }
    }
}

fn event_columns(event: Option<&Event>) -> (Option<Vec<u8>>, i64) {
    let fingerprint = event.and_then(|event| event.attention).map(|fingerprint| fingerprint.0.to_vec());
    (fingerprint, i64::from(event.is_some()))
}

/// Where an event goes.
pub(in crate::sql) fn sinks(event: &Event, sinks: &[Sink]) -> Vec<Sink> {
    if event.attention.is_some() { sinks.to_vec() } else { Vec::new() }
}

/// Writes a state with its event and deliveries into the transaction; the number of changes so far, or `None` when the
/// task has ended.
macro_rules! write_change {
    ($writing:ident, $word:ident, $task:ident, $state:ident, $change:expr) => {{
        use crate::sql::tasks::settle::WRITE_STATE;
        let change: &caribou_ports::store::Change = &$change;
        let snapshot = &change.snapshot;
        let write = sqlx::query_scalar($word(WRITE_STATE)).bind($task).bind($state.status).bind(&snapshot.result);
        let write = write.bind(&snapshot.preview).bind(snapshot.is_truncated).bind(&$state.artifact.0);
        let write = write.bind(&$state.artifact.1).bind(&snapshot.error).bind(&snapshot.input_required);
        let write = write.bind(&$state.fingerprint).bind($state.events).bind(&snapshot.rpc_error);
        let version: Option<i64> = write.fetch_optional(&mut *$writing).await?;
        if let (Some(version), Some(event)) = (version, &change.event) {
            crate::sql::tasks::settle::tell!($writing, $word, $task, version, event, change.sinks);
        }
        version
    }};
}

/// Writes an event and what it makes due.
macro_rules! tell {
    ($writing:ident, $word:ident, $task:ident, $version:ident, $event:ident, $sinks:expr) => {{
        use crate::sql::notifications::renew_delivery;
        use crate::sql::tasks::settle::WRITE_EVENT;
        let write = sqlx::query($word(WRITE_EVENT)).bind($task).bind($version).bind($event.status.number());
        write.bind(&$event.body).execute(&mut *$writing).await?;
        for sink in crate::sql::tasks::sinks($event, &$sinks) {
            renew_delivery!($writing, $word, $task, sink, $version);
        }
    }};
}

pub(super) use {tell, write_change};

/// Leads a row of work out of quarantine, to the lane of what is to be done.
macro_rules! leave_quarantine {
    ($writing:ident, $word:ident, $claim:ident, $lane:ident) => {{
        let task = Uuid::from_bytes($claim.task.0);
        if Lane::from_number($lane).is_some_and(|lane| lane.duty() == Duty::Quarantine) {
            let wanted: (i16, bool, i32) = sqlx::query_as($word(WANTED)).bind(task).fetch_one(&mut *$writing).await?;
            let lane = natural_lane($claim.task, wanted);
            sqlx::query($word(MOVE)).bind(task).bind(lane).execute(&mut *$writing).await?;
        }
    }};
}

fn natural_lane(task: TaskId, (status, is_cancel_requested, waiting): (i16, bool, i32)) -> i16 {
    let status = Status::from_number(status).unwrap_or(Status::Working);
    Duty::of(status, is_cancel_requested, u32::try_from(waiting).unwrap_or(0)).lane(Shard::of(task)).number()
}

/// Settles an attempt that brought a state.
pub(super) async fn apply(
    store: &SqlStore,
    claim: TaskClaim,
    wanted: Change,
    again: std::time::Duration,
) -> Result<Settled, StoreError> {
    let (task, owner) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?);
    let state = State::of(&wanted);
    change!(store, |connection, word| {
        let mut applying = connection.begin().await?;
        let mut left: Option<i32> = None;
        if state.is_terminal {
            let end = sqlx::query_scalar(word(END)).bind(task).bind(claim.token.seq).bind(owner);
            left = end.fetch_optional(&mut *applying).await?;
            if left.is_none() {
                return Ok(Settled::Fenced);
            }
        } else {
            let go_on = sqlx::query_scalar(word(GO_ON)).bind(task).bind(claim.token.seq).bind(owner);
            let lane: Option<i16> = go_on.bind(milliseconds(again)).fetch_optional(&mut *applying).await?;
            let Some(lane) = lane else { return Ok(Settled::Fenced) };
            leave_quarantine!(applying, word, claim, lane);
        }
        if write_change!(applying, word, task, state, wanted).is_none() {
            return Ok(Settled::Fenced);
        }
        if let Some(attempts) = left {
            sqlx::query(word(LEAVE_BEHIND)).bind(task).bind(attempts).execute(&mut *applying).await?;
        }
        applying.commit().await.map(|()| Settled::Settled)
    })
}

/// Settles an attempt that failed.
pub(super) async fn put_off(store: &SqlStore, claim: TaskClaim, failed: AttemptFailed) -> Result<Settled, StoreError> {
    let (task, owner) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?);
    let (failure, errors) = match failed.duty {
        Duty::Cancel => (CANCEL_FAILED, 0_i32),
        Duty::Answer => (ANSWER_FAILED, 0),
        Duty::Submit | Duty::Poll | Duty::Quarantine => (POLL_FAILED, 1),
    };
    let (fingerprint, events) = event_columns(failed.event.as_ref());
    change!(store, |connection, word| {
        let mut putting = connection.begin().await?;
        let put = sqlx::query_scalar(word(PUT_OFF)).bind(task).bind(claim.token.seq).bind(owner);
        let put = put.bind(milliseconds(failed.again)).bind(errors);
        let lane: Option<i16> = put.fetch_optional(&mut *putting).await?;
        let Some(lane) = lane else { return Ok(Settled::Fenced) };
        leave_quarantine!(putting, word, claim, lane);
        let write = sqlx::query_scalar(word(failure)).bind(task).bind(&failed.error).bind(&fingerprint).bind(events);
        let version: Option<i64> = write.fetch_optional(&mut *putting).await?;
        let Some(version) = version else { return Ok(Settled::Fenced) };
        if let Some(event) = &failed.event {
            tell!(putting, word, task, version, event, failed.sinks);
        }
        putting.commit().await.map(|()| Settled::Settled)
    })
}
