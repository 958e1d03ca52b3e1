//! Messages that have no answer: notifications of ours and answers to what a server asks.
//!
//! Owns their deadline and, for those that nobody waits for, their number (B1): one too many is dropped, as a server
//! that takes none of them would not miss it. None is sent twice.

use std::sync::Arc;
use std::time::Duration;

use caribou_ports::mcp::CallError;
use http::{HeaderMap, Method};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use super::exchange::is_event_stream;
use super::link::Link;
use super::refusal::{Failure, Refused};
use crate::tasks::questions::Reply;
use crate::wire::envelope;
use crate::wire::limits::{COURTESY_WRITE, COURTESY_WRITES};

/// The method of a cancel notice.
pub(crate) const CANCELLED: &str = "notifications/cancelled";

/// What an answer of ours to a request of the server is called in messages.
pub(crate) const ANSWER: &str = "an answer to it";

/// How long the rest of an answer that says nothing may take: opening another connection takes less.
const READ_OUT: Duration = Duration::from_millis(100);

/// Sends such messages to one server.
pub(crate) struct Notices {
    link: Arc<Link>,
    room: Arc<Semaphore>,
}

/// One message and where it goes.
pub(crate) struct Notice {
    /// Its method, or what it is, for messages.
    pub(crate) what: &'static str,
    /// Where it goes.
    pub(crate) url: Url,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// Its text.
    pub(crate) body: Vec<u8>,
}

impl Notices {
    /// For the server at the end of `link`.
    pub(crate) fn new(link: Arc<Link>) -> Arc<Self> {
        Arc::new(Self { link, room: Arc::new(Semaphore::new(COURTESY_WRITES)) })
    }

    /// Sends one and waits until it is accepted.
    ///
    /// # Errors
    /// It was refused, or not accepted in time.
    pub(crate) async fn send(&self, notice: Notice) -> Result<(), Failure> {
        let Notice { what, url, headers, body } = notice;
        let exchange = async {
            let response = self.link.send(Method::POST, &url, headers, Some(body.into())).await?.response;
            if !response.status().is_success() {
                return Err(Failure::Refused(Refused::read(response, &self.link.masker()).await));
            }
            read_out(response).await;
            Ok(())
        };
        timeout(COURTESY_WRITE, exchange).await.unwrap_or_else(|_| {
            Err(CallError::StreamEnded(format!("{} did not take `{what}` in time", self.link.name())).into())
        })
    }

    /// A way to answer a request of the server later, with the text as the body of `notice`.
    pub(crate) fn reply(self: &Arc<Self>, notice: Notice) -> Reply {
        let notices = Arc::clone(self);
        Box::new(move |body| {
            Box::pin(async move {
                let what = notice.what;
                let sent = notices.send(Notice { body, ..notice }).await;
                sent.map_err(|failure| failure.into_call_error(&notices.link.name(), what))
            })
        })
    }

    /// Sends one without anybody waiting for it.
    pub(crate) fn send_later(self: &Arc<Self>, notice: Notice) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else { return };
        let notices = Arc::clone(self);
        runtime.spawn(async move {
            let what = notice.what;
            if let Err(failure) = notices.send(notice).await {
                let why = failure.into_call_error(&notices.link.name(), what);
                tracing::debug!(%why, "a notice was not accepted");
            }
            drop(place);
        });
    }
}

/// Reads the rest of an answer that says nothing, so that its connection can be used again; one that does not end at
/// once, or is an event stream, is closed instead.
pub(crate) async fn read_out(mut response: reqwest::Response) {
    if response.content_length() != Some(0) && !is_event_stream(response.headers()) {
        let _ = timeout(READ_OUT, response.chunk()).await;
    }
}

/// Tells the server, when dropped, that nobody waits for a request any more; unless it was answered.
pub(crate) struct CancelOnDrop<'n, W: Fn(Vec<u8>) -> Notice> {
    notices: &'n Arc<Notices>,
    id: u64,
    notice: Option<W>,
}

impl<'n, W: Fn(Vec<u8>) -> Notice> CancelOnDrop<'n, W> {
    /// Watches over request `id`; `notice` addresses the text it is given, `None` says that none is due.
    pub(crate) fn new(notices: &'n Arc<Notices>, id: u64, notice: Option<W>) -> Self {
        Self { notices, id, notice }
    }

    /// The request came to an end by itself.
    pub(crate) fn disarm(&mut self) {
        self.notice = None;
    }
}

impl<W: Fn(Vec<u8>) -> Notice> Drop for CancelOnDrop<'_, W> {
    fn drop(&mut self) {
        let Some(notice) = self.notice.take() else { return };
        let params = format!(r#"{{"requestId":{},"reason":"the caller no longer waits"}}"#, self.id);
        let Ok(params) = RawValue::from_string(params) else { return };
        self.notices.send_later(notice(envelope::notification(CANCELLED, Some(&params))));
    }
}
