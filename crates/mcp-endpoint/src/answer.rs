//! The HTTP answer to one request: JSON, or an event stream once there is something to tell before the result.
//!
//! The head is held until the first notice or the result, so that failures keep their status and most answers are plain
//! JSON; a request that is silent for long gets a stream all the same, whose comments keep proxies from cutting it
//! (mcp.md §13, 12). A modern client cancels by going away; a legacy one does not, and its request goes on without it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caribou_core::era::Era;
use futures::stream;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::fault::Fault;
use crate::message::response;
use crate::work::Work;

/// What became of a request; `None` = its client cancelled it and waits for nothing.
pub(crate) type Outcome = Option<Result<String, Fault>>;

/// A request under way.
struct Running {
    task: JoinHandle<Outcome>,
    ends_with_its_client: bool,
}

impl Future for Running {
    type Output = Result<Outcome, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ends_with_its_client {
            self.task.abort();
        }
    }
}

/// Does the request and answers it.
pub(crate) async fn answer(work: Work, takes_events: bool) -> Response {
    let (era, id, request_id) = (work.client.era, work.id.clone(), work.request_id());
    let keep_alive = work.endpoint.options.keep_alive;
    let (notices, mut queue) = work.notices();
    if !takes_events {
        // Nobody will read it: whoever would ask the client is told at once.
        queue.close();
    }
    let entered = work.client.session.as_ref().map(|session| work.endpoint.in_flight.enter(session, id.get()));
    let task = tokio::spawn(async move {
        let Some(entered) = entered else { return Some(work.run(notices).await) };
        tokio::select! {
            done = work.run(notices) => Some(done),
            () = entered.cancelled.cancelled() => None,
        }
    });
    let mut running = Running { task, ends_with_its_client: era == Era::Modern };
    tokio::select! {
        biased;
        Some(first) = queue.recv(), if takes_events => {
            events(Events { first: Some(first), queue, running: Some(running), id, keep_alive, era })
        }
        done = &mut running => match settled(done, &request_id) {
            Some(Ok(result)) => json(response(&id, &result)),
            Some(Err(fault)) => fault.respond(status(era, &fault), Some(&id)),
            None => StatusCode::ACCEPTED.into_response(),
        },
        () = tokio::time::sleep(keep_alive / 3), if takes_events => {
            events(Events { first: None, queue, running: Some(running), id, keep_alive, era })
        }
    }
}

/// A request that meets a panic takes nothing else along.
pub(crate) fn settled(done: Result<Outcome, JoinError>, request_id: &caribou_core::ids::RequestId) -> Outcome {
    done.unwrap_or_else(|_| {
        tracing::error!(%request_id, "a request met a panic");
        Some(Err(Fault::bug()))
    })
}

/// The legacy era tells failures of methods in the body alone.
fn status(era: Era, fault: &Fault) -> StatusCode {
    if era == Era::Modern || fault.is_envelopes { fault.status } else { StatusCode::OK }
}

fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

struct Events {
    first: Option<String>,
    queue: mpsc::Receiver<String>,
    running: Option<Running>,
    id: Box<RawValue>,
    keep_alive: Duration,
    era: Era,
}

impl Events {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(event(&first).into()), self));
        }
        let running = self.running.as_mut()?;
        let text = tokio::select! {
            biased;
            Some(notice) = self.queue.recv() => event(&notice),
            done = running => {
                self.running = None;
                self.last(done)
            }
            () = tokio::time::sleep(self.keep_alive) => COMMENT.to_owned(),
        };
        Some((Ok(text.into()), self))
    }

    /// What was told meanwhile, then the answer.
    fn last(&mut self, done: Result<Outcome, JoinError>) -> String {
        let mut text = String::new();
        while let Ok(notice) = self.queue.try_recv() {
            text.push_str(&event(&notice));
        }
        match done.unwrap_or_else(|_| Some(Err(Fault::bug()))) {
            Some(Ok(result)) => text.push_str(&event(&response(&self.id, &result))),
            Some(Err(fault)) => text.push_str(&event(&fault.answer(Some(&self.id)))),
            None => {}
        }
        text
    }
}

fn events(events: Events) -> Response {
    tracing::trace!(era = %events.era, "a request is answered by an event stream");
    event_stream(stream::unfold(events, Events::next))
}

/// Fills silence; clients skip it.
pub(crate) const COMMENT: &str = ": still here\n\n";

/// One event that holds `message`.
pub(crate) fn event(message: &str) -> String {
    let mut text = String::with_capacity(message.len() + 32);
    text.push_str("event: message\n");
    // Servers may write a result over many lines: between JSON tokens a line end is a blank.
    for line in message.split(['\n', '\r']) {
        for part in ["data: ", line, "\n"] {
            text.push_str(part);
        }
    }
    text.push('\n');
    text
}

/// The answer whose body is this stream of events. Nothing on the way may keep it back.
pub(crate) fn event_stream(
    events: impl futures::Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(events)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_many_lines_is_one_event() {
        assert_eq!(event("{}"), "event: message\ndata: {}\n\n");
        assert_eq!(event("{\r\n \"a\":1}"), "event: message\ndata: {\ndata: \ndata:  \"a\":1}\n\n");
    }
}
