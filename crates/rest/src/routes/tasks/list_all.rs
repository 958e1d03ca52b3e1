//! GET /api/mcp-tasks

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use caribou_core::ids::{ServerName, ThreadId, UserId};
use caribou_core::task::TaskId;
use caribou_runtime::{PageKey, StoredTask, TaskFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{TaskItem, TaskProblems};
use crate::identity::Identified;
use crate::openapi::ParameterProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// Tasks of a page when nothing is said, and the most.
const USUAL: u32 = 50;
const MOST: u32 = 100;

/// Which tasks. Any other parameter is refused: a misspelt one would show everything.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only of this user.
    #[param(example = "ann")]
    user_id: Option<String>,
    /// Only of this thread.
    #[param(example = "thread-1")]
    thread_id: Option<String>,
    /// Only of this server.
    #[param(example = "reports")]
    server: Option<String>,
    /// `true`: only those that go on; `false`: only those that ended; absent: both.
    active: Option<bool>,
    /// Only after the page before: its `next`.
    cursor: Option<String>,
    /// The most tasks, up to 100; absent: 50.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

/// A page of the tasks of everybody, the newest first.
#[derive(Serialize, ToSchema)]
struct TaskPage {
    /// The tasks.
    tasks: Vec<Whole>,
    /// What `cursor` is for the next page; null when there is none.
    #[schema(required = true)]
    next: Option<String>,
}

/// A task, as admins see it.
#[derive(Serialize, ToSchema)]
#[schema(as = AnybodysTask)]
pub(super) struct Whole {
    #[serde(flatten)]
    item: TaskItem,
    /// Whose it is.
    user_id: String,
    /// In which thread.
    thread_id: String,
    /// The server that works on it.
    server: String,
}

impl Whole {
    fn new(replica: &Replica, task: &StoredTask) -> Self {
        Self {
            item: TaskItem::new(replica, task),
            user_id: task.scope.user.as_str().to_owned(),
            thread_id: task.scope.thread.as_str().to_owned(),
            server: task.server.as_str().to_owned(),
        }
    }
}

/// Lists the tasks of all users. For admins.
#[utoipa::path(
    get,
    path = "/api/mcp-tasks",
    tag = "tasks",
    params(Which),
    responses(
        (status = 200, description = "The tasks", body = TaskPage),
        ParameterProblems,
        TaskProblems,
    ),
)]
pub(crate) async fn list_all_tasks(
    State(replica): State<Arc<Replica>>,
    Identified(caller): Identified,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(which) = which.map_err(|_| {
        Problem::invalid(
            "the query may hold `user_id`, `thread_id`, `server`, `active` (true or false), `cursor` and the number \
             `limit`, each at most once and percent-encoded",
        )
    })?;
    let limit = which.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` must be from 1 to {MOST}")));
    }
    let unreadable = || Problem::invalid("`cursor` must be the `next` of the page before, unchanged");
    let before = which.cursor.as_deref().map(|text| key(text).ok_or_else(unreadable)).transpose()?;
    let filter = TaskFilter {
        user: which.user_id.map(UserId::new),
        thread: which.thread_id.map(ThreadId::new),
        server: which.server.map(ServerName::new),
        is_active: which.active,
    };
    let tasks = replica.runtime.list_all_tasks(&caller, filter, before, limit).await?;
    let is_full = u32::try_from(tasks.len()).is_ok_and(|count| count == limit);
    let next = tasks.last().filter(|_| is_full).map(cursor);
    let tasks = tasks.iter().map(|task| Whole::new(&replica, task)).collect();
    Ok(Json(TaskPage { tasks, next }).into_response())
}

/// The cursor after `task`: its time and name in hexadecimal digits. Nothing to take apart for callers.
fn cursor(task: &StoredTask) -> String {
    let name = u128::from_be_bytes(task.task.0);
    format!("{:016x}{name:032x}", task.created_us)
}

/// The place that a cursor of ours names.
fn key(cursor: &str) -> Option<PageKey> {
    let is_ours = cursor.len() == 48 && cursor.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_ours {
        return None;
    }
    let (created, name) = cursor.split_at(16);
    let created_us = i64::from_str_radix(created, 16).ok()?;
    let task = TaskId(u128::from_str_radix(name, 16).ok()?.to_be_bytes());
    Some(PageKey { created_us, task })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_the_place_it_was_made_at_and_nothing_else_does() {
        let name = "0a0102030405060708090a0b0c0d0eff";
        let read = key(&format!("{:016x}{name}", 1_790_000_000_000_001_i64)).unwrap();
        assert_eq!(read.created_us, 1_790_000_000_000_001);
        assert_eq!(read.task.to_string(), format!("mcp-task-{name}"));
        for wrong in ["", "7", &"f".repeat(48), &"0".repeat(47), &"A".repeat(48), &"é".repeat(24)] {
            assert_eq!(key(wrong), None, "{wrong}");
        }
    }
}
