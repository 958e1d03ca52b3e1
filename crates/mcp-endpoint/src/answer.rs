//! The HTTP answer to one request: JSON, or an event stream once there is something to tell before the result.
//!
//! The head is held until the first notice or the result, so that failures keep their status and most answers are plain
//! JSON; a request that is silent for long gets a stream all the same, whose comments keep proxies from cutting it
//! (mcp.md §13, 12). A modern client cancels by going away; a legacy one does not, and its request goes on without it.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caribou_core::era::Era;
use futures::stream;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::fault::Fault;
use crate::message::response;
use crate::running::{Outcome, Running};
use crate::work::Work;

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
    let work = async move {
        let Some(entered) = entered else { return Some(work.run(notices).await) };
        tokio::select! {
            done = work.run(notices) => Some(done),
            () = entered.cancelled.cancelled() => None,
        }
    };
    let running = Running::new(work, request_id, era == Era::Modern);
    Answering { first: None, queue, running: Some(running), id, keep_alive, era }.begin(takes_events).await
}

/// The legacy era tells failures of methods in the body alone.
fn status(era: Era, fault: &Fault) -> StatusCode {
    if era == Era::Modern || fault.is_envelopes { fault.status } else { StatusCode::OK }
}

fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

/// A request whose answer is on its way.
struct Answering {
    /// What was told first, and is not written yet.
    first: Option<String>,
    queue: mpsc::Receiver<String>,
    running: Option<Running>,
    id: Box<RawValue>,
    keep_alive: Duration,
    era: Era,
}

impl Answering {
    /// The answer, once it is known of which kind it is.
    async fn begin(mut self, takes_events: bool) -> Response {
        let Some(mut running) = self.running.take() else { return StatusCode::ACCEPTED.into_response() };
        self.first = tokio::select! {
            biased;
            Some(first) = self.queue.recv(), if takes_events => Some(first),
            done = &mut running => return self.ended(done),
            () = tokio::time::sleep(self.keep_alive / 3), if takes_events => None,
        };
        self.running = Some(running.apart());
        tracing::trace!(era = %self.era, "a request is answered by an event stream");
        event_stream(stream::unfold(self, Self::next))
    }

    /// The whole answer.
    fn ended(mut self, done: Outcome) -> Response {
        // It may have told something in the same breath.
        if let Ok(first) = self.queue.try_recv() {
            let text = event(&first) + &self.last(done);
            return event_stream(stream::iter([Ok(text.into())]));
        }
        match done {
            Some(Ok(result)) => json(response(&self.id, &result)),
            Some(Err(fault)) => fault.respond(status(self.era, &fault), Some(&self.id)),
            None => StatusCode::ACCEPTED.into_response(),
        }
    }

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
    fn last(&mut self, done: Outcome) -> String {
        let mut text = String::new();
        while let Ok(notice) = self.queue.try_recv() {
            text.push_str(&event(&notice));
        }
        match done {
            Some(Ok(result)) => text.push_str(&event(&response(&self.id, &result))),
            Some(Err(fault)) => text.push_str(&event(&fault.answer(Some(&self.id)))),
            None => {}
        }
        text
    }
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
    use caribou_core::ids::RequestId;
    use serde_json::value::to_raw_value;

    use super::*;

    /// The body of the answer to a request that tells `told` and ends, all at once.
    async fn body(told: &'static [&'static str], takes_events: bool) -> String {
        let (notices, mut queue) = mpsc::channel(8);
        if !takes_events {
            queue.close();
        }
        let work = async move {
            for text in told {
                let _ = notices.try_send((*text).to_owned());
            }
            Some(Ok("{}".to_owned()))
        };
        let running = Some(Running::new(work, RequestId::from("r"), true));
        let (id, keep_alive) = (to_raw_value(&1).unwrap(), Duration::from_secs(60));
        let answering = Answering { first: None, queue, running, id, keep_alive, era: Era::Legacy };
        let body = answering.begin(takes_events).await.into_body();
        String::from_utf8(axum::body::to_bytes(body, 1_024).await.unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn what_is_told_in_one_breath_with_the_result_comes_before_it() {
        // mcp.md §17, S17.
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let events = [r#"{"a":1}"#, r#"{"b":2}"#, result].map(event).concat();
        assert_eq!(body(&[r#"{"a":1}"#, r#"{"b":2}"#], true).await, events);
        assert_eq!(body(&[], true).await, result);
        assert_eq!(body(&[r#"{"a":1}"#], false).await, result, "nobody reads events");
    }

    #[test]
    fn a_message_of_many_lines_is_one_event() {
        assert_eq!(event("{}"), "event: message\ndata: {}\n\n");
        assert_eq!(event("{\r\n \"a\":1}"), "event: message\ndata: {\ndata: \ndata:  \"a\":1}\n\n");
    }
}
