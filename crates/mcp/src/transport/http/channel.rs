//! Streamable HTTP as a channel, in both eras (mcp.md §3.1, §3.3).
//!
//! Owns what a request becomes in each era, the legacy session and its one replacement when the server forgot it.
//! A refusal of the session that a request named means "not processed": only then, and only once, is a request sent
//! again; likewise a modern call that was refused for its headers. Everything else is reported, never repeated (S2).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use caribou_core::bounds::SESSION_INIT;
use caribou_core::config::Secret;
use caribou_core::era::Era;
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Disconnect, SessionFacts, ToolListing};
use http::{HeaderValue, Method};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Mutex as Turn, OnceCell};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exchange::{Asked, Exchange};
use super::kept::{self, Kept};
use super::link::Link;
use super::live::{Live, session_id};
use super::mirrors::Mirrors;
use super::notices::{CANCELLED, CancelOnDrop};
use super::refusal::{Failure, Refused};
use super::watch::Watch;
use crate::channel::{Channel, Opening, RequestExtras};
use crate::era::Greeting;
use crate::era::handshake::{self, INITIALIZE, INITIALIZED};
use crate::era::memory::EraMemory;
use crate::era::stateless::{Announced, protocol_meta};
use crate::error::masked;
use crate::listing;
use crate::parked::Asker;
use crate::wire::envelope;
use crate::wire::errors::HEADER_MISMATCH;
use crate::wire::meta::Meta;

/// How long a server may take to end a session that is closed; it is asked, not waited for.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long a server may take to say whether it still keeps a session.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// What a sign of life is asked for by.
const PING: &str = "ping";

/// One session over streamable HTTP.
pub(crate) struct HttpChannel {
    exchange: Arc<Exchange>,
    mirrors: Arc<Mirrors>,
    /// The `initialize` parameters that were accepted, for a session that must be opened again.
    initialize: Mutex<Option<Box<RawValue>>>,
    /// Why the last `initialize` was refused, for whoever looks for the era.
    refusal: Mutex<Option<Refused>>,
    /// Whose turn it is to open the session again.
    reopening: Turn<()>,
    /// Set when the server turns out to be of the other era; `ended` tells of it.
    outdated: Arc<OnceLock<Disconnect>>,
    ended: CancellationToken,
    eras: Arc<EraMemory>,
    closed: CancellationToken,
    goodbye: Arc<OnceCell<()>>,
    watch: Watch,
}

impl HttpChannel {
    /// A channel of `era` on which nothing was sent yet.
    pub(crate) fn new(link: Arc<Link>, opening: &Opening, era: Era, mirrors: Arc<Mirrors>) -> Self {
        Self {
            exchange: Arc::new(Exchange::new(link, opening, era)),
            mirrors,
            initialize: Mutex::default(),
            refusal: Mutex::default(),
            reopening: Turn::default(),
            outdated: Arc::default(),
            ended: CancellationToken::new(),
            eras: Arc::clone(&opening.eras),
            closed: CancellationToken::new(),
            goodbye: Arc::default(),
            watch: Watch::default(),
        }
    }

    /// How the last `initialize` was refused.
    pub(crate) fn take_refusal(&self) -> Option<Refused> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the server keeps a session for us.
    pub(crate) fn has_session(&self) -> bool {
        self.exchange.live().session.is_some()
    }

    /// Keeps a standing stream for changes of these lists until the channel is closed.
    pub(crate) fn watch_lists(&self, lists: Announced) {
        self.watch.start(&self.exchange, &self.closed, lists);
    }

    /// Opens the standing stream before a call of somebody who can be asked: a server may ask on it, and what it asks
    /// where nobody listens is lost (mcp.md §3.3). It may have none, or say nothing on it for long.
    async fn hear_questions(&self, asker: &Asker) {
        if self.exchange.era == Era::Legacy && self.has_session() && asker.can_be_asked() {
            self.watch_lists(Announced::default());
            self.watch.tried().await;
        }
    }

    /// Sends one request with the headers of its era.
    pub(crate) async fn ask(
        &self,
        live: &Live,
        asked: &Asked<'_>,
        extras: &RequestExtras,
        params: Option<&RawValue>,
        body: Bytes,
    ) -> Result<Box<RawValue>, Failure> {
        let mut headers = live.post.clone();
        self.exchange.link.add_call_headers(&mut headers, &live.url, &extras.headers)?;
        if self.exchange.era == Era::Modern {
            self.mirrors.add(&mut headers, asked.method, extras.name.as_deref(), params);
        }
        self.exchange.ask(live, asked, headers, body).await
    }

    /// Sends one request outside any session, as the probe for the era does.
    pub(crate) async fn probe(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, Failure> {
        let asked = self.exchange.asked(method, None);
        let body = envelope::request(asked.id, method, Some(params)).into();
        self.ask(&self.exchange.live(), &asked, &RequestExtras::opening(), Some(params), body).await
    }

    async fn call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        extras: RequestExtras,
    ) -> Result<Box<RawValue>, CallError> {
        let mut asked = self.exchange.asked(method, extras.progress.clone());
        asked.asker = extras.asker.clone();
        self.hear_questions(&asked.asker).await;
        // Registered for what comes on the standing stream; its own answer comes on its own. The table has no end.
        let _running = self.exchange.running.register_call(extras.progress.clone(), asked.asker.clone());
        let body = Bytes::from(envelope::request(asked.id, method, params));
        // In the modern era closing the stream, which dropping does, is the notice.
        let is_told = self.exchange.era == Era::Legacy && extras.cancellable;
        let told = is_told.then_some(|body| self.exchange.notice(&self.exchange.live(), CANCELLED, body));
        let mut cancel = CancelOnDrop::new(&self.exchange.notices, asked.id, told);

        let live = self.exchange.live();
        let mut outcome = self.ask(&live, &asked, &extras, params, body.clone()).await;
        if self.is_lost_session(&live, &outcome) {
            let live = self.reopen(&live).await.inspect_err(|_| cancel.disarm())?;
            outcome = self.ask(&live, &asked, &extras, params, body).await;
        } else if self.is_header_mismatch(method, &outcome) && self.relist().await {
            outcome = self.ask(&live, &asked, &extras, params, body).await;
        }
        cancel.disarm();
        let failure = match outcome {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        let is_outdated = failure.denies(self.exchange.era);
        let error = failure.into_call_error(&self.exchange.link.name(), method);
        let error = masked(error, &self.exchange.link.masker());
        Err(if is_outdated { self.outdated(&error) } else { error })
    }

    /// The server was replaced by one of the other era: this session is of no use any more, the next one asks again.
    fn outdated(&self, why: &CallError) -> CallError {
        self.eras.forget(self.exchange.link.server());
        let reason = format!("{} no longer speaks the {} era: {why}", self.exchange.link.name(), self.exchange.era);
        let disconnect = Disconnect { reason, exit: None, stderr: String::new() };
        let disconnect = self.outdated.get_or_init(|| disconnect).clone();
        self.ended.cancel();
        CallError::Disconnected { disconnect, sent: false }
    }

    fn is_lost_session(&self, live: &Live, outcome: &Result<Box<RawValue>, Failure>) -> bool {
        let is_forgotten = matches!(outcome, Err(Failure::Refused(refused)) if refused.forgot_session());
        live.session.is_some() && is_forgotten
    }

    fn is_header_mismatch(&self, method: &str, outcome: &Result<Box<RawValue>, Failure>) -> bool {
        let code = outcome.as_ref().err().and_then(Failure::rpc_code);
        self.exchange.era == Era::Modern && method == "tools/call" && code == Some(HEADER_MISMATCH)
    }

    /// Reads the tool list again; whether that worked.
    async fn relist(&self) -> bool {
        let protocol = protocol_meta(self.exchange.link.server());
        // Boxed: a listing sends requests over this channel, and this is one of its requests.
        let meta = Meta { protocol: &protocol, ..Meta::default() };
        let listed: BoxFuture<'_, _> = Box::pin(listing::list_tools(self, meta));
        listed.await.is_ok()
    }

    /// Opens the session, with the first answer still to be followed by `notifications/initialized`.
    async fn initialize(&self, params: &RawValue, generation: u64) -> Result<(Box<RawValue>, Live), Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Agreed {
            protocol_version: String,
        }
        let link = &self.exchange.link;
        let opening = Live::new(link, link.url().clone(), None, None, generation);
        let asked = self.exchange.asked(INITIALIZE, None);
        let body = envelope::request(asked.id, INITIALIZE, Some(params)).into();
        let (response, url) = self.exchange.post(&opening, opening.post.clone(), body).await?;
        let session = session_id(response.headers());
        let result = self.exchange.read_answer(&opening, &asked, response).await?;
        let agreed = serde_json::from_str::<Agreed>(result.get()).ok();
        let version = agreed.and_then(|agreed| HeaderValue::from_str(&agreed.protocol_version).ok());
        let live = Live::new(link, url.unwrap_or(opening.url), session, version, generation);
        Ok((result, live))
    }

    /// The first opening, as the handshake asks for it.
    async fn open(&self, params: Option<&RawValue>) -> Result<Box<RawValue>, CallError> {
        let Some(params) = params else {
            return Err(CallError::NotSent("`initialize` needs parameters".to_owned()));
        };
        match self.initialize(params, 0).await {
            Ok((result, live)) => {
                self.exchange.set_live(live);
                *self.initialize.lock().unwrap_or_else(PoisonError::into_inner) = Some(params.to_owned());
                Ok(result)
            }
            Err(Failure::Refused(refused)) => {
                let error = refused.to_call_error(&self.exchange.link.name(), INITIALIZE);
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
                Err(error)
            }
            Err(Failure::Call(error)) => Err(error),
        }
    }

    /// Replaces the session `lost`, once for all who found it lost.
    async fn reopen(&self, lost: &Live) -> Result<Arc<Live>, CallError> {
        let _turn = self.reopening.lock().await;
        let live = self.exchange.live();
        if live.generation != lost.generation {
            return Ok(live);
        }
        let server = self.exchange.link.name();
        let failed = |why: String| {
            CallError::NotSent(format!("{server} forgot the session, and a new one could not be opened: {why}"))
        };
        let params = self.initialize.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(params) = params else { return Err(failed("it was never opened".to_owned())) };
        let bound = self.exchange.link.server().session_init_timeout.unwrap_or(SESSION_INIT);
        let opened = timeout(bound, async {
            let (_, live) = self.initialize(&params, lost.generation + 1).await?;
            self.exchange.deliver(&live, INITIALIZED, envelope::notification(INITIALIZED, None)).await?;
            Ok::<_, Failure>(live)
        });
        match opened.await {
            Ok(Ok(live)) => self.exchange.set_live(live),
            Ok(Err(failure)) => return Err(failed(failure.into_call_error(&server, INITIALIZE).to_string())),
            Err(_) => return Err(failed(format!("no answer within {bound:?}"))),
        }
        tracing::info!(server = %self.exchange.link.server().name, "the server forgot the session; a new one was opened");
        self.exchange.asks.reopened();
        Ok(self.exchange.live())
    }

    /// Goes on with a session that the server may still keep: what it said of itself then. `None` = it does not, or that
    /// cannot be told; nothing was asked of it but a sign of life.
    pub(crate) async fn resume(&self, kept: &Secret) -> Option<Greeting> {
        let kept = Kept::read(kept)?;
        let link = &self.exchange.link;
        let live = Live::new(link, link.url().clone(), Some(kept.session()?), Some(kept.version()?), 0);
        let asked = self.exchange.asked(PING, None);
        let body = envelope::request(asked.id, PING, None).into();
        let extras = RequestExtras::opening();
        let answered = self.ask(&live, &asked, &extras, None, body);
        match timeout(SIGN_OF_LIFE, answered).await.ok()? {
            // A server may not know the question; it answered in the session.
            Ok(_) | Err(Failure::Call(CallError::Rpc { .. })) => {}
            Err(_) => return None,
        }
        let params = handshake::params(link.server(), &kept.greeting.version).ok()?;
        *self.initialize.lock().unwrap_or_else(PoisonError::into_inner) = Some(params);
        self.exchange.set_live(live);
        Some(kept.greeting)
    }

    fn disconnected(sent: bool) -> CallError {
        let disconnect = Disconnect { reason: "the session was closed".to_owned(), exit: None, stderr: String::new() };
        CallError::Disconnected { disconnect, sent }
    }
}

impl Channel for HttpChannel {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
        extras: RequestExtras,
    ) -> BoxFuture<'a, Result<Box<RawValue>, CallError>> {
        Box::pin(async move {
            if self.closed.is_cancelled() {
                return Err(Self::disconnected(false));
            }
            let asked = async {
                match method {
                    INITIALIZE => self.open(params.as_deref()).await,
                    _ => self.call(method, params.as_deref(), extras).await,
                }
            };
            self.closed.run_until_cancelled(asked).await.unwrap_or_else(|| Err(Self::disconnected(true)))
        })
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<Box<RawValue>>) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let body = envelope::notification(method, params.as_deref());
            let delivered = self.exchange.deliver(&self.exchange.live(), "a notification", body).await;
            delivered.map_err(|failure| failure.into_call_error(&self.exchange.link.name(), method))
        })
    }

    fn inspect(&self, listing: &mut ToolListing) {
        if self.exchange.era == Era::Modern {
            self.mirrors.learn(listing);
        }
    }

    fn keep_stream(&self) {
        if self.exchange.era == Era::Legacy {
            self.watch_lists(Announced::default());
        }
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.closed.cancel();
        let (exchange, goodbye) = (Arc::clone(&self.exchange), Arc::clone(&self.goodbye));
        Box::pin(async move { *goodbye.get_or_init(|| say_goodbye(exchange)).await })
    }

    fn resumption(&self, facts: &SessionFacts) -> Option<Secret> {
        let live = self.exchange.live();
        kept::written(live.session.as_ref()?, facts)
    }

    fn leave(&self) -> BoxFuture<'static, ()> {
        // As if it had been said.
        let _ = self.goodbye.set(());
        self.closed.cancel();
        Box::pin(std::future::ready(()))
    }

    /// A session over HTTP has no end of its own, beside that of its era: the next request finds out.
    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        let (ended, outdated) = (self.ended.clone(), Arc::clone(&self.outdated));
        Box::pin(async move {
            ended.cancelled().await;
            match outdated.get() {
                Some(disconnect) => disconnect.clone(),
                None => std::future::pending().await,
            }
        })
    }
}

impl Drop for HttpChannel {
    /// A bring-up that was given up leaves no session behind.
    fn drop(&mut self) {
        if self.closed.is_cancelled() || !self.has_session() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(self.close());
        }
    }
}

/// Asks the server to end the session. That it does not allow this (405) is its right.
async fn say_goodbye(exchange: Arc<Exchange>) {
    let live = exchange.live();
    if live.session.is_none() {
        return;
    }
    let asked = exchange.link.send(Method::DELETE, &live.url, live.get(&exchange.link), None);
    if !matches!(timeout(GOODBYE, asked).await, Ok(Ok(_))) {
        tracing::debug!(server = %exchange.link.server().name, "the server was not told that its session ended");
    }
}
