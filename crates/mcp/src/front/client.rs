//! What the client writes: each line taken apart as far as it has to be, and sent on as it came.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caribou_core::era::MODERN_VERSION;
use http::{HeaderMap, HeaderValue};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::ask::Request;
use super::bridge::{Bridge, InFlight, MAX_IN_FLIGHT};
use super::fault::Fault;
use crate::era::handshake::{INITIALIZE, INITIALIZED};
use crate::transport::http::live::Live;
use crate::transport::http::notices::{ANSWER, CANCELLED};
use crate::wire::envelope::{Message, each_message};
use crate::wire::headers::PROTOCOL_VERSION;
use crate::wire::params::member;

/// Where a message of the modern era says its revision.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// How long the next line waits for the session that a client opens.
const OPENING: Duration = Duration::from_secs(10);

/// A notification of the client, in messages of ours.
const NOTIFICATION: &str = "a notification";

/// One message, owned.
enum Said {
    Request { id: Box<RawValue>, method: String, params: Option<Box<RawValue>> },
    Notification { method: String, params: Option<Box<RawValue>> },
    Answer,
    Noise,
}

impl Bridge {
    /// Takes one line. Messages without an answer are sent before the next line is taken, so that the server hears them
    /// in their order; requests wait for nobody.
    pub(super) async fn take(self: &Arc<Self>, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        // An array of messages, which one old revision has, is sent one by one.
        let messages = match text.starts_with('[') {
            true => serde_json::from_str::<Vec<&RawValue>>(&text).unwrap_or_default(),
            false => serde_json::from_str::<&RawValue>(&text).into_iter().collect(),
        };
        if messages.is_empty() || std::str::from_utf8(line).is_err() {
            self.out.line(&Fault::not_a_message().line(None)).await;
            return;
        }
        for message in messages {
            self.take_message(message.get()).await;
        }
    }

    async fn take_message(self: &Arc<Self>, text: &str) {
        match said(text) {
            Said::Request { id, method, params } => {
                let body = Bytes::copy_from_slice(text.as_bytes());
                self.begin(Request { id, method, params, body }).await;
            }
            Said::Notification { method, params } => self.tell(&method, params.as_deref(), text).await,
            Said::Answer => self.send(ANSWER, self.live().post.clone(), text.into()).await,
            Said::Noise => self.out.line(&Fault::not_a_message().line(None)).await,
        }
    }

    async fn begin(self: &Arc<Self>, request: Request) {
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            return self.out.line(&Fault::busy(MAX_IN_FLIGHT).line(Some(&request.id))).await;
        };
        let is_opening = request.method == INITIALIZE;
        if is_opening {
            self.opens(&request.id, request.body.clone());
        }
        let (id, cancel) = (request.id.get().to_owned(), self.over.child_token());
        let waits = InFlight { cancel: cancel.clone(), is_modern: request.version().is_some() };
        self.in_flight().insert(id.clone(), waits);
        let bridge = Arc::clone(self);
        let asking = tokio::spawn(async move {
            cancel.run_until_cancelled(bridge.ask(&request)).await;
            bridge.in_flight().remove(&id);
            drop(place);
        });
        // What comes next belongs into the session, even of a client that does not wait for it.
        if is_opening {
            let _ = timeout(OPENING, asking).await;
        }
    }

    async fn tell(self: &Arc<Self>, method: &str, params: Option<&RawValue>, text: &str) {
        let cancelled = (method == CANCELLED).then(|| params.and_then(|params| member(params, "requestId"))).flatten();
        let cancelled = cancelled.and_then(|id| self.in_flight().get(id.get()).cloned());
        // Over HTTP the modern era cancels by closing the stream, and has no such notice (mcp.md §2.4).
        let is_by_closing = cancelled.as_ref().is_some_and(|waits| waits.is_modern);
        // First of all: a server that hears of it may end the stream at once, and the client waits for no answer.
        if let Some(waits) = cancelled {
            waits.cancel.cancel();
        }
        if !is_by_closing {
            let live = self.live();
            let headers = match version_of(params) {
                Some(version) => self.modern_headers(&live, &version, method, None, params),
                None => live.post.clone(),
            };
            self.send(NOTIFICATION, headers, text.into()).await;
        }
        if method == INITIALIZED {
            self.listen();
        }
    }

    /// The headers of a message that says its revision itself: they mirror what stands in it (mcp.md §3.1).
    pub(super) fn modern_headers(
        &self,
        live: &Live,
        version: &str,
        method: &str,
        name: Option<&str>,
        params: Option<&RawValue>,
    ) -> HeaderMap {
        let mut headers = Live::new(&self.link, live.url.clone(), None, None, 0).post;
        let version = HeaderValue::from_str(version).unwrap_or(HeaderValue::from_static(MODERN_VERSION));
        headers.insert(PROTOCOL_VERSION, version);
        self.mirrors.add(&mut headers, method, name, params);
        headers
    }
}

/// The revision that a message of the modern era names; `None` = it is of the legacy era.
pub(super) fn version_of(params: Option<&RawValue>) -> Option<String> {
    let version = member(member(params?, "_meta")?, VERSION_KEY)?;
    serde_json::from_str(version.get()).ok()
}

fn said(text: &str) -> Said {
    let mut said = Said::Noise;
    each_message(text.as_bytes(), |message| {
        said = match message {
            Message::Request { id, method, params } => {
                Said::Request { id: id.to_owned(), method, params: params.map(RawValue::to_owned) }
            }
            Message::Notification { method, params } => {
                Said::Notification { method, params: params.map(RawValue::to_owned) }
            }
            Message::Response { .. } => Said::Answer,
            Message::Noise(_) => Said::Noise,
        };
    });
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_modern_era_says_its_revision_itself() {
        let version = |params: &str| version_of(Some(serde_json::from_str(params).unwrap()));
        let modern = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        assert_eq!(version(modern).as_deref(), Some("2026-07-28"));
        assert_eq!(version(r#"{"protocolVersion":"2025-11-25"}"#), None);
        assert_eq!(version_of(None), None);
    }

    #[test]
    fn requests_notices_and_answers_of_the_client_are_told_apart() {
        let ask = said(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
        assert!(matches!(ask, Said::Request { id, .. } if id.get() == "\"a\""));
        assert!(matches!(said(r#"{"jsonrpc":"2.0","method":"m"}"#), Said::Notification { .. }));
        assert!(matches!(said(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#), Said::Answer));
        assert!(matches!(said(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#), Said::Answer));
        assert!(matches!(said(r#"{"jsonrpc":"1.0","id":1}"#), Said::Noise));
    }
}
