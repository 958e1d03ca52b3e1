//! One call answered as server-sent events: `progress` and `message` while it runs, then `result` or `error`.
//!
//! Headers go out at once and comments fill the silence, so that proxies neither buffer nor cut the stream. The
//! response body owns the call: a caller that goes away drops the body, hence the call, hence cancels it upstream. The
//! call is a task of its own, so that its bounds hold also when a caller stops reading. Reports queue up to a bound and
//! are dropped beyond it (B1); none follows the last event.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use caribou_core::bounds::PROGRESS_QUEUE;
use caribou_runtime::{CallTool, Progress};
use futures::{FutureExt, Stream, future, stream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, Span};

use crate::envelope::panicked;
use crate::router::Replica;
use crate::routes::tools::CallAnswer;

/// Whether the caller asks for events.
pub(crate) struct EventsWanted(pub(crate) bool);

impl<S: Sync> FromRequestParts<S> for EventsWanted {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(wanted(&parts.headers)))
    }
}

/// Whether `text/event-stream` is named among what is accepted. A wildcard does not count: JSON is simpler.
fn wanted(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"));
        let refused =
            |part: &str| matches!(part.split_once('='), Some(("q" | "Q", weight)) if weight.parse() == Ok(0.0));
        named && !parts.any(refused)
    })
}

/// Runs `call` and tells everything about it as events.
pub(crate) fn respond(replica: Arc<Replica>, call: CallTool) -> Response {
    let silence = KeepAlive::new().interval(replica.options.keep_alive);
    let events = Sse::new(events(replica, call)).keep_alive(silence);
    ([("x-accel-buffering", "no")], events).into_response()
}

fn events(replica: Arc<Replica>, mut call: CallTool) -> impl Stream<Item = Result<Event, axum::Error>> {
    let (reports, mut queue) = mpsc::channel(PROGRESS_QUEUE);
    call.progress = Some(Arc::new(move |report| {
        // A full queue drops the report: progress is a courtesy, and the session must not wait for a slow caller.
        let _ = reports.try_send(report);
    }));
    // The stream is read after the request has been answered.
    let span = Span::current();
    let mut last = Box::pin(future::maybe_done(last_event(replica, call).instrument(span)));
    let mut ended = false;
    stream::poll_fn(move |context| {
        if ended {
            return Poll::Ready(None);
        }
        let answered = last.as_mut().poll_unpin(context).is_ready();
        match queue.poll_recv(context) {
            Poll::Ready(Some(report)) => Poll::Ready(Some(report_event(&report))),
            _ if answered => {
                ended = true;
                Poll::Ready(last.as_mut().take_output())
            }
            _ => Poll::Pending,
        }
    })
}

fn report_event(report: &Progress) -> Result<Event, axum::Error> {
    match report {
        Progress::Progress(params) => Event::default().event("progress").json_data(params.as_ref()),
        Progress::Message(params) => Event::default().event("message").json_data(params.as_ref()),
    }
}

async fn last_event(replica: Arc<Replica>, call: CallTool) -> Result<Event, axum::Error> {
    let id = call.request_id.clone();
    let task =
        AbortOnDropHandle::new(tokio::spawn(async move { replica.runtime.call_tool(call).await }.in_current_span()));
    let problem = match task.await {
        Ok(Ok(called)) => return Event::default().event("result").json_data(CallAnswer::new(&called, &id)),
        Ok(Err(error)) => error.into(),
        Err(_) => panicked(&id),
    };
    Event::default().event("error").json_data(problem.body(&id))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn wanted_by(accept: &'static str) -> bool {
        wanted(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]))
    }

    #[test]
    fn events_are_wanted_by_name_only() {
        assert!(wanted_by("text/event-stream") && wanted_by("application/json, Text/Event-Stream; q=0.9"));
        assert!(!wanted_by("*/*") && !wanted_by("text/*") && !wanted_by("application/json"));
        assert!(!wanted_by("text/event-stream;q=0") && !wanted_by("text/event-stream; q=0.000"));
        assert!(!wanted(&HeaderMap::new()));
    }
}
