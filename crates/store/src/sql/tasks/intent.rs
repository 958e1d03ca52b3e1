//! From the intent to the handle (contract 6.4; invariant T1).

use caribou_core::holding::Token;
use caribou_core::task::{Duty, Pin, Shard, Status, TaskId};
use caribou_ports::store::{Handle, Noted, Recorded, Settled, StoreError, TaskClaim, TaskIntent};
use sqlx::Connection as _;
use uuid::Uuid;

use super::rows::strange;
use super::settle::{State, write_change};
use crate::sql::SqlStore;
use crate::sql::errors::is_duplicate;
use crate::sql::pools::change;
use crate::sql::replicas::{milliseconds, uuid};
use crate::sql::statement::{Statement, statement};

/// Neither a repeat nor one task too many is stored.
const NOTE: Statement = statement!(
    "INSERT INTO mcp_task (task_id, submit_key, user_id, thread_id, server, driver, task_name, configuration, is_pinned,
                           run_id, tool_call_id, status, created_at, updated_at)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, " NOW ", " NOW "
     WHERE (SELECT count(*) FROM mcp_task WHERE user_id = $3 AND ended_at IS NULL) < $12
     ON CONFLICT (submit_key) DO NOTHING"
);

const NOTE_WORK: Statement = statement!(
    "INSERT INTO mcp_work (task_id, lane, due_at, claim_seq, claim_owner, configuration)
     VALUES ($1, $2, " (MS_LATER 3) ", 1, $4, $5)"
);

const EXISTING: Statement = statement!("SELECT task_id, status FROM mcp_task WHERE submit_key = $1");

/// The condition is the fence of the claim (invariant C1).
const DROP_WORK: Statement = statement!(
    "DELETE FROM mcp_work WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW
);

/// Only of an intent: a task that somebody has heard of is never deleted but by its age.
const DROP: Statement = statement!("DELETE FROM mcp_task WHERE task_id = $1 AND status = 0");

/// The condition is the fence of the claim (invariant C1).
const FOLLOW: Statement = statement!(
    "UPDATE mcp_work SET lane = $4, due_at = " (MS_LATER 5) ", claim_owner = NULL, abandons = 0, poll_errors = 0,
                         attempts = 0, pinned_to = $6
     WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW
);

const RECORD: Statement = statement!(
    "UPDATE mcp_task SET remote_id = $2, driver_data = $3, session_id = $4 WHERE task_id = $1 AND status = 0"
);

/// Stores an intent.
pub(super) async fn note(store: &SqlStore, intent: TaskIntent) -> Result<Noted, StoreError> {
    let owner = uuid(&intent.owner)?;
    let task = Uuid::from_bytes(intent.task.0);
    let key = Uuid::from_bytes(intent.submit_key.0);
    let lane = Duty::Submit.lane(Shard::of(intent.task)).number();
    let existing: Option<Option<(Uuid, i16)>> = change!(store, |connection, word| {
        let mut noting = connection.begin().await?;
        let note = sqlx::query(word(NOTE)).bind(task).bind(key).bind(intent.scope.user.as_str());
        let note = note.bind(intent.scope.thread.as_str()).bind(intent.server.as_str()).bind(&intent.driver);
        let note = note.bind(&intent.task_name).bind(intent.snapshot.0).bind(intent.is_pinned).bind(&intent.run_id);
        let note = note.bind(&intent.tool_call_id).bind(i64::from(intent.at_most));
        if note.execute(&mut *noting).await?.rows_affected() == 0 {
            return sqlx::query_as(word(EXISTING)).bind(key).fetch_optional(&mut *noting).await.map(Some);
        }
        let work = sqlx::query(word(NOTE_WORK)).bind(task).bind(lane).bind(milliseconds(intent.lease)).bind(owner);
        work.bind(intent.snapshot.0).execute(&mut *noting).await?;
        noting.commit().await.map(|()| None)
    })?;
    Ok(match existing {
        None => Noted::Intended(TaskClaim { task: intent.task, token: Token { seq: 1, owner: intent.owner } }),
        Some(None) => Noted::Full,
        Some(Some((task, status))) => Noted::Existing {
            task: TaskId(task.into_bytes()),
            status: Status::from_number(status).ok_or_else(|| strange("status"))?,
        },
    })
}

/// Deletes an intent.
pub(super) async fn withdraw(store: &SqlStore, claim: TaskClaim) -> Result<Settled, StoreError> {
    let (task, owner) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?);
    change!(store, |connection, word| {
        let mut dropping = connection.begin().await?;
        let work = sqlx::query(word(DROP_WORK)).bind(task).bind(claim.token.seq).bind(owner);
        if work.execute(&mut *dropping).await?.rows_affected() == 0 {
            return Ok(Settled::Fenced);
        }
        if sqlx::query(word(DROP)).bind(task).execute(&mut *dropping).await?.rows_affected() == 0 {
            return Ok(Settled::Fenced);
        }
        dropping.commit().await.map(|()| Settled::Settled)
    })
}

/// Stores a handle. That another task has it is found by the index, whoever was first; the transaction is then undone.
pub(super) async fn record(store: &SqlStore, claim: TaskClaim, handle: Handle) -> Result<Recorded, StoreError> {
    let recorded = try_record(store, &claim, handle).await?;
    if recorded == Recorded::Duplicate && withdraw(store, claim).await? == Settled::Fenced {
        // Somebody else deals with the intent: it was given up before the handle came.
        return Ok(Recorded::Duplicate);
    }
    Ok(recorded)
}

async fn try_record(store: &SqlStore, claim: &TaskClaim, handle: Handle) -> Result<Recorded, StoreError> {
    let (task, owner) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?);
    let lane = Duty::Poll.lane(Shard::of(claim.task)).number();
    let state = State::of(&handle.change);
    let pin = handle.session_id.as_deref().and_then(Pin::parse);
    let pinned_to = pin.map(|pin| uuid(&pin.boot)).transpose()?;
    change!(store, |connection, word| {
        let mut recording = connection.begin().await?;
        let follow = sqlx::query(word(FOLLOW)).bind(task).bind(claim.token.seq).bind(owner).bind(lane);
        let follow = follow.bind(milliseconds(handle.again)).bind(pinned_to);
        if follow.execute(&mut *recording).await?.rows_affected() == 0 {
            return Ok(Recorded::Fenced);
        }
        let record = sqlx::query(word(RECORD)).bind(task).bind(&handle.remote_id).bind(&handle.driver_data);
        match record.bind(&handle.session_id).execute(&mut *recording).await {
            Ok(done) if done.rows_affected() > 0 => {}
            Ok(_) => return Ok(Recorded::Fenced),
            Err(error) if is_duplicate(&error) => return Ok(Recorded::Duplicate),
            Err(error) => return Err(error),
        }
        if write_change!(recording, word, task, state, handle.change).is_none() {
            return Ok(Recorded::Fenced);
        }
        recording.commit().await.map(|()| Recorded::Recorded)
    })
}
