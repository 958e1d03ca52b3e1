//! The events of one task as server-sent events, until it has ended. Which events, and for how long, the runtime says; a
//! client that comes back with `Last-Event-ID` misses nothing. What fails meanwhile ends the stream with one event
//! `error`.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use caribou_core::ids::RequestId;
use caribou_runtime::{FollowedTask, StoredEvent};
use futures::{Stream, stream};
use serde_json::value::RawValue;

use super::named::NamedTask;
use crate::problem::Problem;
use crate::router::Replica;

/// The events of a task after `after`, those that come included; 204 when none can come.
pub(super) async fn respond(
    replica: Arc<Replica>,
    request_id: RequestId,
    named: NamedTask,
    after: i64,
) -> Result<Response, Problem> {
    let NamedTask { caller, scope, task } = named;
    let followed = replica.runtime.follow_task(&caller, &scope, &task, after).await?;
    let Some(followed) = followed else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let keep_alive = KeepAlive::new().interval(replica.options.keep_alive);
    let events = Sse::new(events(followed, request_id)).keep_alive(keep_alive);
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

fn events(followed: FollowedTask, request_id: RequestId) -> impl Stream<Item = Result<Event, axum::Error>> {
    stream::unfold((followed, request_id), |(mut followed, request_id)| async move {
        let event = match followed.next().await? {
            Ok(event) => told(&event),
            Err(error) => Event::default().event("error").json_data(Problem::from(error).body(&request_id)),
        };
        Some((event, (followed, request_id)))
    })
}

fn told(event: &StoredEvent) -> Result<Event, axum::Error> {
    let body = serde_json::from_str::<&RawValue>(&event.body).map_err(axum::Error::new)?;
    Event::default().id(event.seq.to_string()).event("task").json_data(body)
}
