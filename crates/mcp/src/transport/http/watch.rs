//! The standing stream on which a server tells that its lists changed, or resources, and on which it may ask.
//!
//! Owns its re-opening: a GET in the legacy era, `subscriptions/listen` in the modern one (mcp.md §3.3, §5). Events
//! that were missed while it was broken are made up for by one notice after it is open again. A server that does not
//! offer it is left alone; one that keeps breaking it is asked ever more rarely (B1). No call depends on it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::era::Era;
use caribou_ports::mcp::{CallError, LISTEN};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exchange::{Asked, Exchange, is_event_stream};
use super::live::Live;
use crate::era::stateless::{Announced, listen_params};
use crate::transport::event_stream::EventStream;
use crate::wire::envelope;
use crate::wire::headers::{LAST_EVENT_ID, METHOD};

/// The pause before the first reconnect, doubled while nothing is heard.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause: a server that came back is heard again within two minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// How long a call waits for the head of the stream: a round trip to a server far away. Some servers send it with the
/// first message only.
const FIRST_HEAD: Duration = Duration::from_secs(1);

/// How long the head of the stream may take.
const HEAD: Duration = Duration::from_secs(30);

/// How an attempt to listen came out.
enum Heard {
    /// The server does not offer such a stream.
    NotOffered,
    /// It broke, or was never opened; whether anything was heard on it, and the pause the server wants.
    Broken { anything: bool, retry: Option<Duration> },
}

/// Where listening goes on.
#[derive(Default)]
struct Place {
    /// Whether the stream was open before: what was told since then may have been missed.
    was_open: bool,
    /// The last event id of the legacy era, by which the server can tell what was missed.
    last_id: Option<HeaderValue>,
    /// The session that the id belongs to.
    generation: u64,
}

/// The standing stream of one session: one at most, since a message goes on one stream only.
#[derive(Default)]
pub(crate) struct Watch {
    is_started: AtomicBool,
    /// Set when it is known whether the server offers it.
    tried: CancellationToken,
}

impl Watch {
    /// Listens in the background until `closed`, to changes of these lists where it must be said which.
    pub(crate) fn start(&self, exchange: &Arc<Exchange>, closed: &CancellationToken, lists: Announced) {
        if self.is_started.swap(true, Ordering::AcqRel) {
            return;
        }
        let (exchange, closed, tried) = (Arc::clone(exchange), closed.clone(), self.tried.clone());
        tokio::spawn(async move { closed.run_until_cancelled(keep_listening(&exchange, lists, &tried)).await });
    }

    /// Waits until the server said whether it offers the stream, but not for long.
    pub(crate) async fn tried(&self) {
        let _ = timeout(FIRST_HEAD, self.tried.cancelled()).await;
    }
}

async fn keep_listening(exchange: &Exchange, lists: Announced, tried: &CancellationToken) {
    let mut pause = FIRST_PAUSE;
    let mut place = Place::default();
    while let Heard::Broken { anything, retry } = listen(exchange, lists, &mut place, tried).await {
        pause = if anything { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        // Spread: all replicas may have lost the same server at once.
        let pause = pause.max(retry.unwrap_or_default().min(LONGEST_PAUSE));
        tokio::time::sleep(pause.mul_f64(1.0 + chance() / 4.0)).await;
    }
    tracing::debug!(server = %exchange.link.server().name, "the server offers no standing stream for list changes");
}

async fn listen(exchange: &Exchange, lists: Announced, place: &mut Place, tried: &CancellationToken) -> Heard {
    let nothing = Heard::Broken { anything: false, retry: None };
    let live = exchange.live();
    let asked = (exchange.era == Era::Modern).then(|| exchange.asked(LISTEN, None));
    let opened = match &asked {
        Some(asked) => timeout(HEAD, subscribe(exchange, asked, lists)).await,
        None => {
            let mut headers = live.get(&exchange.link);
            let known = place.last_id.clone().filter(|_| place.generation == live.generation);
            headers.extend(known.map(|id| (LAST_EVENT_ID, id)));
            timeout(HEAD, get(exchange, headers)).await
        }
    };
    tried.cancel();
    let Ok(Ok(response)) = opened else { return nothing };
    match response.status() {
        status if status.is_success() && is_event_stream(response.headers()) => {}
        // The session is lost, the server is in trouble, or asks for patience: all pass.
        StatusCode::NOT_FOUND if live.session.is_some() => return nothing,
        StatusCode::BAD_REQUEST if live.session.is_some() && place.was_open => return nothing,
        StatusCode::TOO_MANY_REQUESTS => return nothing,
        status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => return nothing,
        _ => return Heard::NotOffered,
    }
    let is_resumed = place.last_id.is_some() && place.generation == live.generation;
    if std::mem::replace(&mut place.was_open, true) && !is_resumed {
        exchange.asks.missed(lists);
    }
    let mut stream = exchange.stream(response);
    let heard = read(exchange, &live, asked.as_ref(), &mut stream).await;
    place.last_id = stream.last_id().filter(|_| asked.is_none()).and_then(|id| HeaderValue::from_str(id).ok());
    place.generation = live.generation;
    heard
}

/// Reads until the stream breaks; a refused subscription is one that is not offered.
async fn read(exchange: &Exchange, live: &Live, asked: Option<&Asked<'_>>, stream: &mut EventStream) -> Heard {
    let mut anything = false;
    while let Ok(Some(event)) = stream.next().await {
        anything = true;
        if !event.is_message() {
            continue;
        }
        match exchange.take(live, asked, &event.data) {
            Some(Err(CallError::Rpc { .. })) => return Heard::NotOffered,
            // The server ended the subscription in good order (mcp.md §5).
            Some(_) => break,
            None => {}
        }
    }
    Heard::Broken { anything, retry: stream.retry() }
}

/// Somewhere from 0 to 1, another number each time; nothing depends on it being hard to guess.
fn chance() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

async fn get(exchange: &Exchange, headers: HeaderMap) -> Result<reqwest::Response, CallError> {
    let live = exchange.live();
    Ok(exchange.link.send(Method::GET, &live.url, headers, None).await?.response)
}

async fn subscribe(exchange: &Exchange, asked: &Asked<'_>, lists: Announced) -> Result<reqwest::Response, CallError> {
    let live = exchange.live();
    let params = listen_params(exchange.link.server(), lists)?;
    let mut headers = live.post.clone();
    headers.insert(METHOD, HeaderValue::from_static(LISTEN));
    let body = envelope::request(asked.id, LISTEN, Some(&params)).into();
    Ok(exchange.post(&live, headers, body).await?.0)
}
