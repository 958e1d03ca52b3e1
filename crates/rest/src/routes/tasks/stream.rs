//! The events of one task as server-sent events, until it has ended.
//!
//! The record is read again on a timer: an event is told by whichever replica the caller asks, and none is missed or
//! told twice on one stream, since each is asked for by its number. Streams are bounded in number and in age (invariant
//! B1); a client that comes back with `Last-Event-ID` misses nothing. What fails meanwhile ends the stream with one
//! event `error`.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use caribou_core::bounds::{TASK_EVENTS_LOOK, TASK_STREAM_AGE};
use caribou_core::failure::Code;
use caribou_core::ids::RequestId;
use caribou_runtime::{StoredEvent, VerbError};
use futures::{Stream, stream};
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::events::USUAL;
use super::named::NamedTask;
use crate::problem::Problem;
use crate::router::Replica;

/// One stream.
struct Following {
    replica: Arc<Replica>,
    request_id: RequestId,
    named: NamedTask,
    /// The number of the last event that was read.
    after: i64,
    /// Read, and not told yet.
    waiting: VecDeque<StoredEvent>,
    /// Whether nothing follows what is waiting.
    has_ended: bool,
    until: Instant,
    /// Held while the stream lives.
    _place: OwnedSemaphorePermit,
}

/// The events of a task after `after`, those that come included; 204 when none can come.
pub(super) async fn respond(
    replica: Arc<Replica>,
    request_id: RequestId,
    named: NamedTask,
    after: i64,
) -> Result<Response, Problem> {
    let full = |_| Problem::from(VerbError::new(Code::Busy, "too many event streams are open on this replica"));
    let place = replica.event_streams.clone().try_acquire_owned().map_err(full)?;
    let until = Instant::now() + TASK_STREAM_AGE;
    let keep_alive = KeepAlive::new().interval(replica.options.keep_alive);
    let waiting = VecDeque::new();
    let mut following =
        Following { replica, request_id, named, after, waiting, has_ended: false, until, _place: place };
    following.read().await?;
    if following.waiting.is_empty() && following.is_over().await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let events = Sse::new(following.events()).keep_alive(keep_alive);
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

impl Following {
    fn events(self) -> impl Stream<Item = Result<Event, axum::Error>> {
        stream::unfold(self, |mut following| async move {
            let event = following.next().await?;
            Some((event, following))
        })
    }

    async fn next(&mut self) -> Option<Result<Event, axum::Error>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(told(&event));
            }
            if self.has_ended || Instant::now() >= self.until {
                return None;
            }
            tokio::time::sleep(TASK_EVENTS_LOOK).await;
            if let Err(problem) = self.read().await {
                self.has_ended = true;
                return Some(Event::default().event("error").json_data(problem.body(&self.request_id)));
            }
        }
    }

    /// Reads what came since.
    async fn read(&mut self) -> Result<(), Problem> {
        let NamedTask { caller, scope, task } = &self.named;
        let events = self.replica.runtime.task_events(caller, scope, task, self.after, USUAL).await?;
        if let Some(last) = events.last() {
            self.after = last.seq;
            self.has_ended = last.status.is_terminal();
        }
        self.waiting.extend(events);
        Ok(())
    }

    /// Whether the task has ended with the last event that was seen.
    async fn is_over(&self) -> Result<bool, Problem> {
        let NamedTask { caller, scope, task } = &self.named;
        let task = self.replica.runtime.read_task(caller, scope, task).await?;
        Ok(task.snapshot.status.is_terminal() && task.version <= self.after)
    }
}

fn told(event: &StoredEvent) -> Result<Event, axum::Error> {
    let body = serde_json::from_str::<&RawValue>(&event.body).map_err(axum::Error::new)?;
    Event::default().id(event.seq.to_string()).event("task").json_data(body)
}
