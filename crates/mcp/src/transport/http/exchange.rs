//! One message out, its answer in: a POST whose answer is JSON or an event stream (mcp.md §3.1, §3.3).
//!
//! Owns the reading of answers: the one that is ours is returned, what the server asks or tells beside it goes to
//! `server_asks`, answers to other ids are dropped. A stream that ends before the answer is resumed in the legacy era,
//! if its events had ids; otherwise the call fails at once. Keeps S2 (nothing is sent twice), B1 (answers are bounded,
//! resumes are counted) and W1 (the result is copied once, as it came).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use caribou_core::era::{Era, MODERN_VERSION};
use caribou_ports::mcp::{CallError, Oddity};
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::value::RawValue;
use tokio::time::timeout;
use url::Url;

use super::link::{Link, Reached};
use super::live::Live;
use super::notices::{ANSWER, Notice, Notices};
use super::refusal::{Failure, Refused, content_type};
use crate::channel::Opening;
use crate::parked::Asker;
use crate::server_asks::{Listeners, ServerAsks};
use crate::transport::event_stream::EventStream;
use crate::wire::envelope::{Message, each_message};
use crate::wire::excerpt::excerpt;
use crate::wire::headers::LAST_EVENT_ID;
use crate::wire::ids::{Pending, ResponseId};
use crate::wire::limits::ENVELOPE_BYTES;
use crate::wire::progress::ProgressRoute;

/// Resumes in a row that bring no message before the answer counts as lost. Their pauses double, so that a server that
/// lets us poll for its answer has a minute for it at the usual pause, and one that ends every stream is asked rarely.
const MAX_FRUITLESS_RESUMES: u32 = 6;

/// Resumes of one answer, whatever they bring: one in seven seconds for the longest call.
const MAX_RESUMES: u32 = 500;

/// The pause before a resume when the server names none.
const RESUME_PAUSE: Duration = Duration::from_secs(1);

/// The shortest pause: a server that ends every stream at once must not keep a core busy.
const MIN_RESUME_PAUSE: Duration = Duration::from_millis(20);

/// A server that wants a longer pause than this will not have the answer either.
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(60);

/// How long the head of a resumed stream may take.
const RESUME_HEAD: Duration = Duration::from_secs(10);

/// One server, asked over HTTP.
pub(crate) struct Exchange {
    pub(crate) link: Arc<Link>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) asks: Arc<ServerAsks>,
    /// The requests of a legacy session that run: what comes on its standing stream may belong to one of them.
    pub(crate) running: Arc<Pending>,
    /// The era in use; only the legacy one resumes streams.
    pub(crate) era: Era,
    /// Bound of one answer, envelope included.
    max_message_bytes: usize,
    live: RwLock<Arc<Live>>,
    last_id: AtomicU64,
}

/// One request, as far as its answer is concerned.
pub(crate) struct Asked<'m> {
    /// Its id.
    pub(crate) id: u64,
    /// Its method, for messages.
    pub(crate) method: &'m str,
    /// Where progress goes.
    pub(crate) progress: Option<ProgressRoute>,
    /// Whether the server may ask something in the middle of it, and whom.
    pub(crate) asker: Asker,
}

type Outcome = Result<Box<RawValue>, CallError>;

/// How often one answer was resumed.
#[derive(Default)]
struct Resumes {
    /// In a row, without a message.
    fruitless: u32,
    all: u32,
}

impl Resumes {
    /// Counts one more: how many times the usual pause comes before it. `None` when it is one too many.
    fn next(&mut self) -> Option<u32> {
        if self.fruitless >= MAX_FRUITLESS_RESUMES || self.all >= MAX_RESUMES {
            return None;
        }
        self.fruitless += 1;
        self.all += 1;
        Some(1 << (self.fruitless - 1))
    }
}

impl Exchange {
    /// Begins without a session; in the modern era there is none to come.
    pub(crate) fn new(link: Arc<Link>, opening: &Opening, era: Era) -> Self {
        let version = (era == Era::Modern).then(|| HeaderValue::from_static(MODERN_VERSION));
        let live = Live::new(&link, link.url().clone(), None, version, 0);
        Self {
            notices: Notices::new(Arc::clone(&link)),
            link,
            asks: Arc::clone(&opening.asks),
            running: opening.asks.pending(),
            era,
            max_message_bytes: opening.max_message_bytes,
            live: RwLock::new(Arc::new(live)),
            last_id: AtomicU64::new(0),
        }
    }

    /// The session as it is now.
    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the session.
    pub(crate) fn set_live(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }

    /// A request with a fresh id.
    pub(crate) fn asked<'m>(&self, method: &'m str, progress: Option<ProgressRoute>) -> Asked<'m> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        Asked { id, method, progress, asker: Asker::None }
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn ask(
        &self,
        live: &Live,
        asked: &Asked<'_>,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Box<RawValue>, Failure> {
        let (response, _) = self.post(live, headers, body).await?;
        self.read_answer(live, asked, response).await
    }

    /// Sends one message and waits for the head of its answer; the URL is where redirects led.
    pub(crate) async fn post(
        &self,
        live: &Live,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(reqwest::Response, Option<Url>), CallError> {
        let Reached { response, moved_to } = self.link.send(Method::POST, &live.url, headers, Some(body)).await?;
        if let Some(url) = &moved_to {
            let mut current = self.live.write().unwrap_or_else(PoisonError::into_inner);
            if current.generation == live.generation {
                *current = Arc::new(current.moved_to(&self.link, url.clone()));
            }
        }
        Ok((response, moved_to))
    }

    /// Reads the answer to a request.
    pub(crate) async fn read_answer(
        &self,
        live: &Live,
        asked: &Asked<'_>,
        response: reqwest::Response,
    ) -> Result<Box<RawValue>, Failure> {
        if !response.status().is_success() {
            return Err(Failure::Refused(Refused::read(response, &self.link.masker()).await));
        }
        let answered = if is_event_stream(response.headers()) {
            self.read_stream(live, asked, self.stream(response)).await
        } else {
            self.read_body(live, asked, response).await
        };
        answered.map_err(|error| match error {
            // Callers know the bound of a result, not that of a message.
            CallError::TooLarge { limit } => CallError::TooLarge { limit: limit.saturating_sub(ENVELOPE_BYTES) }.into(),
            error => error.into(),
        })
    }

    /// The events of `response`.
    pub(crate) fn stream(&self, response: reqwest::Response) -> EventStream {
        EventStream::new(response, self.max_message_bytes)
    }

    /// Sends a message that has no answer.
    ///
    /// # Errors
    /// It was refused, or not accepted in time.
    pub(crate) async fn deliver(&self, live: &Live, what: &'static str, body: Vec<u8>) -> Result<(), Failure> {
        self.notices.send(self.notice(live, what, body)).await
    }

    /// A message that has no answer, ready to be sent.
    pub(crate) fn notice(&self, live: &Live, what: &'static str, body: Vec<u8>) -> Notice {
        Notice { what, url: live.url.clone(), headers: live.post.clone(), body }
    }

    async fn read_body(&self, live: &Live, asked: &Asked<'_>, mut response: reqwest::Response) -> Outcome {
        let body = self.collect(&mut response).await?;
        if let Some(outcome) = self.take(live, Some(asked), &body) {
            return outcome;
        }
        let (status, masker) = (response.status(), self.link.masker());
        let (kind, shown) = (content_type(response.headers(), &masker), excerpt(&body, &masker));
        let (server, method) = (self.link.name(), asked.method);
        Err(CallError::Malformed(format!(
            "{server} answered `{method}` with HTTP {status} and no answer in it ({kind}): {shown}"
        )))
    }

    /// The whole body; one that comes in one piece is not copied.
    async fn collect(&self, response: &mut reqwest::Response) -> Result<Bytes, CallError> {
        let limit = self.max_message_bytes;
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let mut first = Bytes::new();
        let mut whole = Vec::new();
        loop {
            let next = response.chunk().await.map_err(|error| self.link.broke_off(&error))?;
            let Some(chunk) = next else { break };
            let held = whole.len().max(first.len());
            if held + chunk.len() > limit || announced > limit {
                return Err(CallError::TooLarge { limit });
            }
            if held == 0 {
                first = chunk;
                continue;
            }
            if whole.is_empty() {
                whole.reserve(announced.max(held + chunk.len()));
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(if whole.is_empty() { first } else { whole.into() })
    }

    async fn read_stream(&self, live: &Live, asked: &Asked<'_>, mut stream: EventStream) -> Outcome {
        let mut resumes = Resumes::default();
        loop {
            match stream.next().await {
                Ok(Some(event)) if event.is_message() => {
                    resumes.fruitless = 0;
                    if let Some(outcome) = self.take(live, Some(asked), &event.data) {
                        return outcome;
                    }
                }
                // A priming event brings a place to resume from and nothing else: a server may send one each time.
                Ok(Some(_)) => {}
                Ok(None) => self.resume(live, asked, &mut stream, &mut resumes, "").await?,
                Err(CallError::StreamEnded(why)) => {
                    self.resume(live, asked, &mut stream, &mut resumes, &why).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens the rest of a stream that ended too early, or says that the answer is lost.
    async fn resume(
        &self,
        live: &Live,
        asked: &Asked<'_>,
        stream: &mut EventStream,
        resumes: &mut Resumes,
        why: &str,
    ) -> Result<(), CallError> {
        let lost = || {
            let (server, method, blank) = (self.link.name(), asked.method, if why.is_empty() { "" } else { ": " });
            CallError::StreamEnded(format!(
                "{server} ended its answer to `{method}` before the result{blank}{why}; whether it took effect is unknown"
            ))
        };
        let pause = stream.retry().unwrap_or(RESUME_PAUSE).max(MIN_RESUME_PAUSE);
        let place = stream.last_id().and_then(|id| HeaderValue::from_str(id).ok());
        let Some(place) = place.filter(|_| self.era == Era::Legacy && pause <= MAX_RESUME_PAUSE) else {
            return Err(lost());
        };
        while let Some(factor) = resumes.next() {
            tokio::time::sleep(pause.saturating_mul(factor).min(MAX_RESUME_PAUSE)).await;
            let mut headers = live.get(&self.link);
            headers.insert(LAST_EVENT_ID, place.clone());
            let opened = timeout(RESUME_HEAD, self.link.send(Method::GET, &live.url, headers, None)).await;
            let Ok(Ok(Reached { response, .. })) = opened else { continue };
            if !response.status().is_success() || !is_event_stream(response.headers()) {
                break;
            }
            stream.go_on_with(response);
            return Ok(());
        }
        Err(lost())
    }

    /// Whom what comes on the stream of a request is for, or on the standing stream.
    fn listeners<'a>(&'a self, asked: Option<&'a Asked<'_>>) -> Listeners<'a> {
        match asked {
            Some(asked) => Listeners::Own { progress: asked.progress.as_ref(), asker: &asked.asker },
            None => Listeners::Shared(&self.running),
        }
    }

    /// Takes what arrived apart; `Some` once it holds the answer to `asked`. What the server asks is answered.
    pub(crate) fn take(&self, live: &Live, asked: Option<&Asked<'_>>, text: &[u8]) -> Option<Outcome> {
        let mut answer = None;
        each_message(text, |message| match message {
            Message::Response { id, outcome } => match asked.filter(|asked| asked.is_meant(id, outcome.is_err())) {
                Some(_) if answer.is_none() => {
                    if matches!(id, ResponseId::OursAsText(_)) {
                        self.asks.odd(Oddity::TextId);
                    }
                    answer = Some(outcome.map(RawValue::to_owned));
                }
                Some(_) => self.asks.odd(Oddity::LateAnswer),
                None => self.asks.odd(Oddity::UnknownAnswer),
            },
            Message::Request { id, method, params } => {
                let later = || self.notices.reply(self.notice(live, ANSWER, Vec::new()));
                if let Some(answer) = self.asks.answer(id, &method, params, self.listeners(asked), later) {
                    self.notices.send_later(self.notice(live, ANSWER, answer));
                }
            }
            Message::Notification { method, params } => {
                self.asks.notice(&method, params, self.listeners(asked));
            }
            Message::Noise(noise) => {
                self.asks.odd(Oddity::NotAMessage);
                let shown = excerpt(noise, &self.link.masker());
                tracing::debug!(server = %self.link.server().name, shown, "not a message; skipped");
            }
        });
        answer
    }
}

impl Asked<'_> {
    /// Whether an answer with this id is to this request, the only one of its stream: also an error without id.
    fn is_meant(&self, id: ResponseId, is_error: bool) -> bool {
        match id {
            ResponseId::Ours(id) | ResponseId::OursAsText(id) => id == self.id,
            ResponseId::Null => is_error,
            ResponseId::Foreign => false,
        }
    }
}

/// Whether an answer is an event stream, whatever parameters its media type has.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let essence = kind.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"text/event-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumes_are_bounded_in_a_row_and_in_all() {
        let mut resumes = Resumes::default();
        let pauses: Vec<u32> = std::iter::from_fn(|| resumes.next()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32]);
        let mut resumes = Resumes::default();
        let fruitful = std::iter::from_fn(|| {
            resumes.fruitless = 0;
            resumes.next()
        });
        assert_eq!(fruitful.take(10_000).count(), 500);
    }
}
