//! Answers to what tasks ask: stored once each, brought by whoever claims the task (architecture.md §10, `input_tool`).

use std::time::Duration;

use caribou_core::ids::Scope;
use caribou_core::task::input::{Answer, Asking, answer};
use caribou_core::task::{Duty, Lane, Shard, Status, TaskId};
use caribou_ports::store::{AnswerStored, BroughtAnswer, NewAnswer, Settled, StoreError, TaskClaim};
use serde_json::value::RawValue;
use sqlx::Connection as _;
use uuid::Uuid;

use super::cancel::{HOLD_WORK, belongs};
use super::rows::strange;
use crate::sql::SqlStore;
use crate::sql::pools::{change, read};
use crate::sql::replicas::{milliseconds, uuid};
use crate::sql::statement::{Statement, statement};

const FIND: Statement = statement!(
    "SELECT user_id, thread_id, status, input_required, cancel_at IS NOT NULL,
            (SELECT body FROM mcp_task_input WHERE task_id = $1 AND input_id = $2),
            (SELECT CAST(count(*) AS integer) FROM mcp_task_input WHERE task_id = $1)
     FROM mcp_task WHERE task_id = $1"
);

const STORE: Statement =
    statement!("INSERT INTO mcp_task_input (task_id, input_id, seq, body) VALUES ($1, $2, $3, $4)");

/// The same question after an answer is told again, so what was told is forgotten.
const COUNT: Statement = statement!(
    "UPDATE mcp_task SET waiting_answers = waiting_answers + 1, fingerprint = NULL, updated_at = " NOW "
     WHERE task_id = $1"
);

/// The grown number fences the claim of whoever polls. What is in quarantine stays alone.
const BRING_NOW: Statement = statement!(
    "UPDATE mcp_work SET lane = CASE WHEN lane / 256 = 3 THEN lane ELSE $2 END, due_at = " NOW ",
                         claim_seq = claim_seq + 1, claim_owner = NULL, attempts = 0
     WHERE task_id = $1"
);

const WAITING: Statement =
    statement!("SELECT input_id, body FROM mcp_task_input WHERE task_id = $1 AND state = 0 ORDER BY seq");

const NAMES: Statement = statement!("SELECT input_id FROM mcp_task_input WHERE task_id = $1 ORDER BY seq");

/// The condition is the fence of the claim (invariant C1).
const BROUGHT: Statement = statement!(
    "UPDATE mcp_work SET due_at = " (MS_LATER 4) ", claim_owner = NULL, abandons = 0, attempts = 0
     WHERE task_id = $1 AND claim_seq = $2 AND claim_owner = $3 AND due_at > " NOW
);

const MARK: Statement = statement!(
    "UPDATE mcp_task_input SET state = CASE WHEN $3 THEN 2 ELSE 1 END, error = $4
     WHERE task_id = $1 AND input_id = $2 AND state = 0"
);

const UNCOUNT: Statement = statement!(
    "UPDATE mcp_task SET waiting_answers = waiting_answers - $2, last_answer_error = $3, updated_at = " NOW "
     WHERE task_id = $1 RETURNING waiting_answers, status, cancel_at IS NOT NULL"
);

const MOVE: Statement = statement!(
    "UPDATE mcp_work SET lane = $2, due_at = CASE WHEN $3 THEN " NOW " ELSE due_at END WHERE task_id = $1"
);

type Found = (String, String, i16, Option<String>, bool, Option<String>, i32);

/// Stores an answer.
pub(super) async fn store(
    store: &SqlStore,
    task: TaskId,
    of: Option<Scope>,
    given: NewAnswer,
) -> Result<AnswerStored, StoreError> {
    let id = Uuid::from_bytes(task.0);
    let Ok(body) = serde_json::from_str::<Box<RawValue>>(&given.body) else {
        return Ok(AnswerStored::Judged(Answer::Invalid("the answer is not JSON".to_owned())));
    };
    let lane = Duty::Answer.lane(Shard::of(task)).number();
    let stored: Option<AnswerStored> = change!(store, |connection, word| {
        let mut storing = connection.begin().await?;
        let held: Option<(i16, bool)> = sqlx::query_as(word(HOLD_WORK)).bind(id).fetch_optional(&mut *storing).await?;
        let find = sqlx::query_as(word(FIND)).bind(id).bind(&given.input_id);
        let found: Option<Found> = find.fetch_optional(&mut *storing).await?;
        let found = found.filter(|(user, thread, ..)| belongs(of.as_ref(), user, thread));
        let Some((_, _, status, input_required, is_cancel_requested, before, count)) = found else {
            return Ok(Some(AnswerStored::NotFound));
        };
        let Some(status) = Status::from_number(status) else { return Ok(None) };
        if status == Status::Intended {
            return Ok(Some(AnswerStored::NotFound));
        }
        let asking = Asking {
            status,
            input_required: input_required.as_deref(),
            is_cancel_requested,
            stored: before.as_deref(),
            count: usize::try_from(count).unwrap_or(0),
        };
        let judged = answer(&asking, &given.input_id, &body);
        if judged == Answer::Store {
            let insert = sqlx::query(word(STORE)).bind(id).bind(&given.input_id).bind(count + 1).bind(body.get());
            insert.execute(&mut *storing).await?;
            sqlx::query(word(COUNT)).bind(id).execute(&mut *storing).await?;
            if !is_being_brought(held) {
                sqlx::query(word(BRING_NOW)).bind(id).bind(lane).execute(&mut *storing).await?;
            }
            storing.commit().await?;
        }
        Ok(Some(AnswerStored::Judged(judged)))
    })?;
    stored.ok_or_else(|| strange("status"))
}

/// Whether somebody brings earlier answers right now: this one is brought next.
fn is_being_brought(held: Option<(i16, bool)>) -> bool {
    let duty = |lane| Lane::from_number(lane).map(Lane::duty);
    held.is_some_and(|(lane, is_claimed)| is_claimed && duty(lane) == Some(Duty::Answer))
}

/// The answers that wait.
pub(super) async fn waiting(store: &SqlStore, task: TaskId) -> Result<Vec<NewAnswer>, StoreError> {
    let task = Uuid::from_bytes(task.0);
    let rows: Vec<(String, String)> =
        read!(store, |connection, word| sqlx::query_as(word(WAITING)).bind(task).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(input_id, body)| NewAnswer { input_id, body }).collect())
}

/// The names of all answers.
pub(super) async fn names(store: &SqlStore, task: TaskId) -> Result<Vec<String>, StoreError> {
    let task = Uuid::from_bytes(task.0);
    let rows: Vec<(String,)> =
        read!(store, |connection, word| sqlx::query_as(word(NAMES)).bind(task).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(input_id,)| input_id).collect())
}

/// Settles answers that were brought.
pub(super) async fn settle(
    store: &SqlStore,
    claim: TaskClaim,
    brought: Vec<BroughtAnswer>,
    again: Duration,
) -> Result<Settled, StoreError> {
    let (task, owner) = (Uuid::from_bytes(claim.task.0), uuid(&claim.token.owner)?);
    let last_error = brought.iter().rev().find_map(|answer| answer.refused.as_deref());
    let settled: Option<Settled> = change!(store, |connection, word| {
        let mut settling = connection.begin().await?;
        let hold = sqlx::query(word(BROUGHT)).bind(task).bind(claim.token.seq).bind(owner).bind(milliseconds(again));
        if hold.execute(&mut *settling).await?.rows_affected() == 0 {
            return Ok(Some(Settled::Fenced));
        }
        let mut fewer = 0_i32;
        for one in &brought {
            let mark = sqlx::query(word(MARK)).bind(task).bind(&one.input_id).bind(one.refused.is_some());
            let marked = mark.bind(&one.refused).execute(&mut *settling).await?.rows_affected();
            fewer += i32::from(marked > 0);
        }
        let uncount = sqlx::query_as(word(UNCOUNT)).bind(task).bind(fewer).bind(last_error);
        let (waiting, status, is_cancel_requested): (i32, i16, bool) = uncount.fetch_one(&mut *settling).await?;
        let Some(status) = Status::from_number(status) else { return Ok(None) };
        let duty = Duty::of(status, is_cancel_requested, u32::try_from(waiting).unwrap_or(0));
        let to = sqlx::query(word(MOVE)).bind(task).bind(duty.lane(Shard::of(claim.task)).number());
        to.bind(duty == Duty::Answer).execute(&mut *settling).await?;
        settling.commit().await.map(|()| Some(Settled::Settled))
    })?;
    settled.ok_or_else(|| strange("status"))
}
