//! HTTP+SSE of revision 2024-11-05 (mcp.md §3.4): one event stream carries everything the server says, each message of
//! ours is a POST to the URL that the stream names first.
//!
//! Owns the stream, which is the session: when it ends, so does the session, and every call in flight fails at once.
//! The named URL is resolved against the stream's (RFC 3986); one of another origin is refused, since credentials
//! would go there, unless the configuration names the message URL itself. No message is sent twice (S2).

use std::sync::Arc;

use caribou_core::config::Remote;
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Disconnect, Oddity, OpenError};
use http::{HeaderMap, Method};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::event_stream::EventStream;
use super::http::link::{Link, Reached};
use super::http::notices::{ANSWER, CANCELLED, CancelOnDrop, Notice, Notices, read_out};
use super::http::refusal::{Failure, Refused, content_type};
use super::http::{Remotes, facts, is_event_stream, shake_failed};
use super::redirect::{same_origin, without_query};
use crate::channel::{Channel, Opened, Opening, RequestExtras};
use crate::era::handshake::shake_hands;
use crate::error::masked;
use crate::server_asks::{Listeners, ServerAsks};
use crate::wire::envelope::{self, Message, each_message};
use crate::wire::excerpt::excerpt;
use crate::wire::ids::Pending;
use crate::wire::sse::Event;

/// The event that names the message URL.
const ENDPOINT: &str = "endpoint";

/// Opens a session with the server at `remote`.
///
/// # Errors
/// It cannot be reached, refuses the credential, names no acceptable message URL, or refuses the handshake.
pub(crate) async fn open(remotes: &Remotes, remote: &Remote, opening: &Opening) -> Result<Opened, OpenError> {
    let link =
        Link::new(remotes.client_for(&opening.server), Arc::clone(&opening.server), remote, &opening.credentials)?;
    open_over(Arc::new(link), opening).await
}

/// Opens a session with the server at the end of `link`.
///
/// # Errors
/// As [`open`].
pub(crate) async fn open_over(link: Arc<Link>, opening: &Opening) -> Result<Opened, OpenError> {
    opening.awaited.now("the `endpoint` event of its event stream");
    let (url, mut stream) = stream(&link, opening).await?;
    let endpoint = endpoint(&link, &mut stream).await?;
    let message_url = message_url(&link, &url, &endpoint)?;
    opening.awaited.now("its answer to `initialize`");
    let channel = Arc::new(SseChannel::start(link, opening, message_url, stream));
    let greeting = shake_hands(channel.as_ref(), &opening.server, None)
        .await
        .map_err(|error| shake_failed(opening.server.name.as_str(), error))?;
    Ok(Opened { channel, facts: facts(greeting, true), is_resumed: false })
}

/// The open event stream, and the URL it came from.
async fn stream(link: &Link, opening: &Opening) -> Result<(Url, EventStream), OpenError> {
    let headers = link.get_headers(link.url());
    let reached = link.send(Method::GET, link.url(), headers, None).await;
    let Reached { response, moved_to } = reached.map_err(|error| not_opened(link, error))?;
    if !response.status().is_success() {
        let in_trouble = response.status().is_server_error();
        let refused = Refused::read(response, &link.masker()).await;
        return Err(match refused.to_call_error(&link.name(), "GET") {
            CallError::Denied(why) => OpenError::Denied(why),
            error if in_trouble => OpenError::Unreachable(error.to_string()),
            error => OpenError::Protocol(error.to_string()),
        });
    }
    if !is_event_stream(response.headers()) {
        let kind = content_type(response.headers(), &link.masker());
        return Err(OpenError::Protocol(format!("{} answered GET with no event stream ({kind:.100})", link.name())));
    }
    let url = moved_to.unwrap_or_else(|| link.url().clone());
    Ok((url, EventStream::new(response, opening.max_message_bytes)))
}

/// Waits for the event that names the message URL; the bring-up's bound is the bound of this wait.
async fn endpoint(link: &Link, stream: &mut EventStream) -> Result<String, OpenError> {
    while let Some(event) = stream.next().await.map_err(|error| not_opened(link, error))? {
        if event.name == ENDPOINT {
            return String::from_utf8(event.data).map_err(|_| bad_endpoint(link, "is not UTF-8"));
        }
    }
    Err(OpenError::Protocol(format!("{} ended its event stream without the `endpoint` event", link.name())))
}

/// Where messages go.
fn message_url(link: &Link, stream: &Url, endpoint: &str) -> Result<Url, OpenError> {
    let named = stream.join(endpoint).map_err(|_| bad_endpoint(link, "is no URL"))?;
    if let Some(configured) = &link.server().message_url {
        let mut url = stream.join(configured).map_err(|_| {
            OpenError::NotStartable(format!("server `{}`: its `message_url` is no URL", link.server().name))
        })?;
        // The session is named in the query, which only the server knows.
        if url.query().is_none() {
            url.set_query(named.query());
        }
        return Ok(url);
    }
    if same_origin(&named, stream) {
        Ok(named)
    } else {
        Err(bad_endpoint(
            link,
            &format!("is of another origin, {}; if that is right, set `message_url`", without_query(&named)),
        ))
    }
}

fn bad_endpoint(link: &Link, what: &str) -> OpenError {
    OpenError::Protocol(format!("the message URL that {} names {}", link.name(), link.masker().mask(what)))
}

fn not_opened(link: &Link, error: CallError) -> OpenError {
    match error {
        CallError::NotSent(why) | CallError::StreamEnded(why) => OpenError::Unreachable(why),
        CallError::Denied(why) => OpenError::Denied(why),
        CallError::Malformed(why) => OpenError::Protocol(why),
        error => OpenError::Protocol(format!("{}: {error}", link.name())),
    }
}

/// One session over HTTP+SSE.
struct SseChannel {
    line: Arc<Line>,
    /// Asks the reader to stop.
    closed: CancellationToken,
    /// The reader has stopped and the stream is closed.
    gone: CancellationToken,
}

/// Both directions of one session.
struct Line {
    link: Arc<Link>,
    notices: Arc<Notices>,
    asks: Arc<ServerAsks>,
    pending: Arc<Pending>,
    message_url: Url,
    headers: HeaderMap,
}

impl SseChannel {
    fn start(link: Arc<Link>, opening: &Opening, message_url: Url, mut stream: EventStream) -> Self {
        let line = Arc::new(Line {
            notices: Notices::new(Arc::clone(&link)),
            asks: Arc::clone(&opening.asks),
            pending: opening.asks.pending(),
            headers: link.post_headers(&message_url),
            message_url,
            link,
        });
        let (closed, gone) = (CancellationToken::new(), CancellationToken::new());
        let channel = Self { line: Arc::clone(&line), closed: closed.clone(), gone: gone.clone() };
        tokio::spawn(async move {
            let _gone = gone.drop_guard();
            let read = closed.run_until_cancelled(line.read(&mut stream)).await;
            let reason = read.unwrap_or_else(|| "the session was closed".to_owned());
            line.pending.end(Disconnect { reason, exit: None, stderr: String::new() });
            drop(stream);
        });
        channel
    }
}

impl Line {
    async fn call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        extras: RequestExtras,
    ) -> Result<Box<RawValue>, CallError> {
        let mut headers = self.headers.clone();
        self.link.add_call_headers(&mut headers, &self.message_url, &extras.headers)?;
        let registered = self.pending.register_call(extras.progress, extras.asker);
        let mut ticket = registered.map_err(|disconnect| CallError::Disconnected { disconnect, sent: false })?;
        let body = envelope::request(ticket.id(), method, params);
        let told = extras.cancellable.then_some(|body| self.notice(CANCELLED, body));
        let mut cancel = CancelOnDrop::new(&self.notices, ticket.id(), told);
        let posted = self.post(headers, body);
        // An answer may come before the POST that asked for it is itself answered.
        let answer = tokio::select! {
            biased;
            posted = posted => match posted {
                Ok(()) => ticket.answer().await,
                Err(failure) => Some(Err(failure.into_call_error(&self.link.name(), method))),
            },
            answer = ticket.answer() => answer,
        };
        cancel.disarm();
        let answer = answer.map(|answer| answer.map_err(|error| masked(error, &self.link.masker())));
        answer.unwrap_or_else(|| {
            let disconnect = self.pending.ended().unwrap_or_else(|| Disconnect {
                reason: "the event stream ended".to_owned(),
                exit: None,
                stderr: String::new(),
            });
            Err(CallError::Disconnected { disconnect, sent: true })
        })
    }

    /// A message that has no answer, ready to be sent.
    fn notice(&self, what: &'static str, body: Vec<u8>) -> Notice {
        Notice { what, url: self.message_url.clone(), headers: self.headers.clone(), body }
    }

    /// Sends one message; any 2xx accepts it.
    async fn post(&self, headers: HeaderMap, body: Vec<u8>) -> Result<(), Failure> {
        let sent = self.link.send(Method::POST, &self.message_url, headers, Some(body.into())).await?;
        let response = sent.response;
        if !response.status().is_success() {
            return Err(Failure::Refused(Refused::read(response, &self.link.masker()).await));
        }
        read_out(response).await;
        Ok(())
    }

    /// Reads until the stream ends; says how.
    async fn read(&self, stream: &mut EventStream) -> String {
        loop {
            match stream.next().await {
                Ok(Some(event)) => self.take(&event),
                Ok(None) => return format!("{} ended its event stream", self.link.name()),
                Err(error) => return format!("the event stream of {} broke off: {error}", self.link.name()),
            }
        }
    }

    fn take(&self, event: &Event) {
        if !event.is_message() {
            return;
        }
        each_message(&event.data, |message| match message {
            Message::Response { id, outcome } => self.pending.settle(id, outcome),
            Message::Request { id, method, params } => {
                let later = || self.notices.reply(self.notice(ANSWER, Vec::new()));
                if let Some(answer) = self.asks.answer(id, &method, params, Listeners::Shared(&self.pending), later) {
                    self.notices.send_later(self.notice(ANSWER, answer));
                }
            }
            Message::Notification { method, params } => {
                self.asks.notice(&method, params, Listeners::Shared(&self.pending));
            }
            Message::Noise(noise) => {
                self.asks.odd(Oddity::NotAMessage);
                let shown = excerpt(noise, &self.link.masker());
                tracing::debug!(server = %self.link.server().name, shown, "not a message; skipped");
            }
        });
    }
}

impl Channel for SseChannel {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
        extras: RequestExtras,
    ) -> BoxFuture<'a, Result<Box<RawValue>, CallError>> {
        Box::pin(async move { self.line.call(method, params.as_deref(), extras).await })
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<Box<RawValue>>) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let body = envelope::notification(method, params.as_deref());
            let sent = self.line.notices.send(self.line.notice("a notification", body)).await;
            sent.map_err(|failure| failure.into_call_error(&self.line.link.name(), method))
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.closed.cancel();
        let gone = self.gone.clone();
        Box::pin(async move { gone.cancelled().await })
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        let (closed, gone, pending) = (self.closed.clone(), self.gone.clone(), Arc::clone(&self.line.pending));
        Box::pin(async move {
            gone.cancelled().await;
            match pending.ended() {
                Some(disconnect) if !closed.is_cancelled() => disconnect,
                _ => std::future::pending().await,
            }
        })
    }
}

impl Drop for SseChannel {
    /// The stream is the session: it does not outlive whoever uses it.
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
