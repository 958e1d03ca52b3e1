//! An HTTP answer that is an event stream, read event by event.
//!
//! Owns the reading; `wire::sse` owns the format, whoever reads decides what an end means. Dropping it closes the
//! stream, and on HTTP/1 its connection. Keeps B1: one event is capped.

use std::time::Duration;

use caribou_ports::mcp::CallError;

use super::http::client::describe;
use crate::wire::sse::{Event, EventTooLarge, SseParser};

/// An open event stream.
pub(crate) struct EventStream {
    response: reqwest::Response,
    parser: SseParser,
    /// Told after the events that were complete before it.
    too_large: Option<EventTooLarge>,
}

impl EventStream {
    /// Reads `response`, refusing events of more than `limit` bytes.
    pub(crate) fn new(response: reqwest::Response, limit: usize) -> Self {
        Self { response, parser: SseParser::new(limit), too_large: None }
    }

    /// The next event; `None` when the stream ended. Cancel-safe.
    ///
    /// # Errors
    /// `TooLarge`, or `StreamEnded` when the connection broke.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            if let Some(EventTooLarge { limit }) = self.too_large {
                return Err(CallError::TooLarge { limit });
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.too_large = self.parser.push(&chunk).err(),
                Ok(None) => return Ok(None),
                Err(error) => return Err(CallError::StreamEnded(describe(&error))),
            }
        }
    }

    /// Goes on with the rest of the same stream, which the server sends in another answer.
    pub(crate) fn go_on_with(&mut self, response: reqwest::Response) {
        self.response = response;
        self.parser.restart();
    }

    /// What a resumed stream would name as the last event received.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.parser.last_id()
    }

    /// How long the server wants to be left alone before a reconnect.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }
}
