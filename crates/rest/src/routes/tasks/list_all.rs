//! GET /api/mcp-tasks

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use caribou_core::ids::{ServerName, ThreadId, UserId};
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
    let before = which.cursor.as_deref().map(|text| PageKey::parse(text).ok_or_else(unreadable)).transpose()?;
    let filter = TaskFilter {
        user: which.user_id.map(UserId::new),
        thread: which.thread_id.map(ThreadId::new),
        server: which.server.map(ServerName::new),
        is_active: which.active,
    };
    let tasks = replica.runtime.list_all_tasks(&caller, filter, before, limit).await?;
    let is_full = u32::try_from(tasks.len()).is_ok_and(|count| count == limit);
    let next = tasks.last().filter(|_| is_full).map(|task| task.page_key().to_string());
    let tasks = tasks.iter().map(|task| Whole::new(&replica, task)).collect();
    Ok(Json(TaskPage { tasks, next }).into_response())
}
