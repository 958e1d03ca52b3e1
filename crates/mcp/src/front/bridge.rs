//! What one front holds while it runs: the way to its server, the session, and the requests that wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use caribou_core::bounds::CALL_MAX;
use caribou_core::failure::Code;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::value::RawValue;
use tokio::sync::{Mutex as Turn, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::out::Out;
use crate::era::handshake::INITIALIZED;
use crate::transport::http::link::{Link, Reached};
use crate::transport::http::live::{Live, session_id};
use crate::transport::http::mirrors::Mirrors;
use crate::transport::http::notices::{Notice, Notices};
use crate::wire::envelope;

/// Requests of one client at once; more are refused.
pub(super) const MAX_IN_FLIGHT: usize = 256;

/// How long a server may say nothing of a request: the longest that a call may take at all.
pub(super) const SILENCE: Duration = CALL_MAX.saturating_add(Duration::from_secs(30));

/// One front.
pub(super) struct Bridge {
    pub(super) link: Arc<Link>,
    pub(super) out: Out,
    /// Bound of one message.
    pub(super) limit: usize,
    pub(super) notices: Arc<Notices>,
    pub(super) mirrors: Mirrors,
    pub(super) room: Arc<Semaphore>,
    /// Cancelled when the client is gone.
    pub(super) over: CancellationToken,
    live: RwLock<Arc<Live>>,
    /// How the client opened its session, for one that has to be opened again.
    opening: Mutex<Option<Opening>>,
    reopening: Turn<()>,
    in_flight: Mutex<HashMap<String, InFlight>>,
    pub(super) listening: Mutex<CancellationToken>,
}

/// What the client sent to open its session.
#[derive(Clone)]
struct Opening {
    id: Box<RawValue>,
    body: Bytes,
}

/// One request that waits.
#[derive(Clone)]
pub(super) struct InFlight {
    /// Ends it.
    pub(super) cancel: CancellationToken,
    /// Whether closing its stream cancels it, rather than a notice.
    pub(super) is_modern: bool,
}

impl Bridge {
    pub(super) fn new(link: Arc<Link>, out: Out, limit: usize) -> Self {
        let live = Live::new(&link, link.url().clone(), None, None, 0);
        Self {
            notices: Notices::new(Arc::clone(&link)),
            link,
            out,
            limit,
            mirrors: Mirrors::default(),
            room: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            over: CancellationToken::new(),
            live: RwLock::new(Arc::new(live)),
            opening: Mutex::default(),
            reopening: Turn::default(),
            in_flight: Mutex::default(),
            listening: Mutex::default(),
        }
    }

    /// The session as it is now.
    pub(super) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// None yet: what opens one.
    pub(super) fn unopened(&self) -> Live {
        let live = self.live();
        Live::new(&self.link, live.url.clone(), None, None, live.generation)
    }

    /// The requests that wait, by their ids as they are written.
    pub(super) fn in_flight(&self) -> MutexGuard<'_, HashMap<String, InFlight>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what opens the session of the client.
    pub(super) fn opens(&self, id: &RawValue, body: Bytes) {
        let opening = Opening { id: id.to_owned(), body };
        *self.opening.lock().unwrap_or_else(PoisonError::into_inner) = Some(opening);
    }

    /// The session is the one that this answer to `initialize` opened.
    pub(super) fn opened(&self, headers: &HeaderMap, version: Option<&str>) {
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let generation = live.generation + 1;
        *live = Arc::new(Live::new(&self.link, live.url.clone(), session_id(headers), version, generation));
    }

    /// Sends one request, and waits for the head of its answer.
    pub(super) async fn post(&self, live: &Live, headers: HeaderMap, body: Bytes) -> Result<reqwest::Response, Fault> {
        let sent = self.link.send(Method::POST, &live.url, headers, Some(body));
        let sent = timeout(SILENCE, sent).await.map_err(|_| Fault::late(&self.link.name()))?;
        let Reached { response, moved_to } = sent?;
        if let Some(url) = moved_to {
            let mut current = self.live.write().unwrap_or_else(PoisonError::into_inner);
            if current.generation == live.generation {
                *current = Arc::new(current.moved_to(&self.link, url));
            }
        }
        Ok(response)
    }

    /// Sends a message that has no answer and waits until it is taken. That one is not taken is for the log: nobody
    /// waits for it.
    pub(super) async fn send(&self, what: &'static str, headers: HeaderMap, body: Vec<u8>) {
        let notice = Notice { what, url: self.live().url.clone(), headers, body };
        if let Err(failure) = self.notices.send(notice).await {
            let why = failure.into_call_error(&self.link.name(), what);
            tracing::warn!("a message of the client was not taken: {why}");
        }
    }

    /// Opens the session again that the server has forgotten, as the client opened it. One of many that find it lost
    /// does so, and the others go on with the new one.
    pub(super) async fn reopen(self: &Arc<Self>, lost: &Live) -> Result<(), Fault> {
        let _turn = self.reopening.lock().await;
        if self.live().generation != lost.generation {
            return Ok(());
        }
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(Opening { id, body }) = opening else {
            return Err(Fault::new(Code::SessionEnded, "the session has ended: start this front again"));
        };
        let fresh = self.unopened();
        let response = self.post(&fresh, fresh.post.clone(), body).await?;
        if !response.status().is_success() {
            return Err(Fault::refused(&self.link.name(), response.status(), " when the session was opened again"));
        }
        self.read_reopened(response, &id).await?;
        self.send(INITIALIZED, self.live().post.clone(), envelope::notification(INITIALIZED, None)).await;
        self.listen();
        tracing::warn!("the server had forgotten the session, and it was opened again");
        Ok(())
    }
}
