//! GET /api/threads/{thread_id}/mcp-tasks/{task_id}/events

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use caribou_core::ids::RequestId;
use caribou_core::instant::rfc3339_micros;
use caribou_core::task::Status;
use caribou_runtime::StoredEvent;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::answer::{OneTaskProblems, TaskProblems};
use super::named::NamedTask;
use super::stream;
use crate::event_stream::EventsWanted;
use crate::openapi::ParameterProblems;
use crate::problem::Problem;
use crate::router::Replica;

/// Events of a page when nothing is said, and the most.
pub(super) const USUAL: u32 = 100;
const MOST: u32 = 1_000;

/// What a client of an event stream says after its connection broke (HTML, server-sent events).
const LAST_EVENT_ID: &str = "last-event-id";

/// Which events. Any other parameter is refused.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only events after this one; absent: from the first.
    #[param(minimum = 0)]
    after: Option<i64>,
    /// The most events, up to 1000; absent: 100. A stream has no end but that of the task.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The user whose thread it is; absent or empty: the caller's own.
    #[param(max_length = 256, example = "ann")]
    #[serde(rename = "user_id")]
    _user_id: Option<String>,
}

/// What happened to a task, the oldest first.
#[derive(Serialize, ToSchema)]
struct TaskEvents {
    /// The events.
    events: Vec<TaskEvent>,
    /// What `after` is for the next page; null when this was the last for now.
    #[schema(required = true)]
    next: Option<i64>,
}

/// One change of a task.
#[derive(Serialize, ToSchema)]
struct TaskEvent {
    /// Its number, from 1, without gaps.
    seq: i64,
    /// What the task was from then on.
    #[schema(value_type = String)]
    status: Status,
    /// When it was recorded.
    #[schema(format = DateTime)]
    at: String,
    /// All that was told of it.
    #[schema(value_type = Object)]
    event: Option<Box<RawValue>>,
}

impl From<StoredEvent> for TaskEvent {
    fn from(event: StoredEvent) -> Self {
        let StoredEvent { seq, status, body, at_us } = event;
        Self { seq, status, at: rfc3339_micros(at_us), event: RawValue::from_string(body).ok() }
    }
}

/// Lists what happened to a task, or follows it to its end.
///
/// With `Accept: text/event-stream` the answer is a stream: one event `task` for each change, with its number as id and
/// what is told as data, until the task has ended. A stream goes on after `Last-Event-ID`, or `after`; 204 says that
/// nothing can follow any more.
#[utoipa::path(
    get,
    path = "/api/threads/{thread_id}/mcp-tasks/{task_id}/events",
    tag = "tasks",
    params(
        ("thread_id" = String, Path, description = "The thread", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "thread-1"),
        ("task_id" = String, Path, description = "The task", example = "mcp-task-0a0102030405060708090a0b0c0d0eff"),
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that arrived"),
        Which,
    ),
    responses(
        (status = 200, description = "The events", content(
            (TaskEvents = "application/json"),
            (String = "text/event-stream", example = "id: 2\nevent: task\ndata: {\"status\":\"working\"}\n\n"),
        )),
        (status = 204, description = "The task has ended, and all of it was told"),
        ParameterProblems,
        OneTaskProblems,
        TaskProblems,
    ),
)]
pub(crate) async fn task_events(
    State(replica): State<Arc<Replica>>,
    EventsWanted(streamed): EventsWanted,
    Extension(request_id): Extension<RequestId>,
    which: Result<Query<Which>, QueryRejection>,
    headers: HeaderMap,
    named: NamedTask,
) -> Result<Response, Problem> {
    let wrong = || {
        Problem::invalid(format!(
            "the query may hold the numbers `after`, from 0, and `limit`, from 1 to {MOST}, and `user_id`, each once"
        ))
    };
    let Query(which) = which.map_err(|_| wrong())?;
    let (after, limit) = (which.after.unwrap_or(0), which.limit.unwrap_or(USUAL));
    if after < 0 || !(1..=MOST).contains(&limit) {
        return Err(wrong());
    }
    if streamed {
        return stream::respond(replica, request_id, named, last_seen(&headers)?.unwrap_or(after)).await;
    }
    let NamedTask { caller, scope, task } = named;
    let events = replica.runtime.task_events(&caller, &scope, &task, after, limit).await?;
    let is_full = u32::try_from(events.len()).is_ok_and(|count| count == limit);
    let next = events.last().filter(|_| is_full).map(|event| event.seq);
    Ok(Json(TaskEvents { events: events.into_iter().map(TaskEvent::from).collect(), next }).into_response())
}

/// The number of the last event that a client of a stream has seen.
fn last_seen(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse::<i64>().ok()).filter(|number| *number >= 0);
    number.map(Some).ok_or_else(|| Problem::invalid("`Last-Event-ID` must be the id of an event of this task"))
}
