//! Does one request of a client, and has what comes of it told on its stream, in order.
//!
//! A client that goes away cancels nothing, as in the rest of the legacy era. What can be told to nobody ends the session,
//! so that its client, should it still be there, sees the stream end and waits for nothing.

use std::sync::Arc;

use axum::http::HeaderMap;
use caribou_ports::store::ClientSession;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::open::forget;
use super::post::Address;
use crate::fault::Fault;
use crate::in_flight::Entered;
use crate::legacy;
use crate::message::response;
use crate::router::{Asked, Endpoint};
use crate::running::settled;
use crate::sessions::away;
use crate::work::Work;

/// The way to a client's stream.
struct Stream {
    endpoint: Arc<Endpoint>,
    address: Address,
}

impl Stream {
    /// Has a message told; whether it will be.
    async fn tell(&self, message: String) -> bool {
        let Self { endpoint, address } = self;
        let session = address.session.clone();
        let told = match address.at == endpoint.runtime.boot().as_str() {
            true => endpoint.outboxes.put(&session, message),
            false => endpoint.runtime.tell_stream(&address.at, session, message).await,
        };
        if !told {
            tracing::debug!(session = address.session, "what a client was to be told reaches nobody");
            forget(endpoint, address.session.clone());
        }
        told
    }
}

/// Begins a request; it goes on by itself.
pub(super) fn begin(
    endpoint: Arc<Endpoint>,
    asked: Asked,
    headers: &HeaderMap,
    (address, session): (Address, ClientSession),
    (method, id, params): (&str, &RawValue, Option<&RawValue>),
) {
    let entered = endpoint.in_flight.enter(&session.id, id.get());
    let stream = Stream { endpoint: endpoint.clone(), address };
    if method == "initialize" {
        let (id, params) = (id.to_owned(), params.map(ToOwned::to_owned));
        tokio::spawn(async move {
            let agreed = agree(&endpoint, &asked, session.id, params.as_deref()).await;
            stream.tell(answer(&id, agreed)).await;
            drop(entered);
        });
        return;
    }
    let is_ready = !session.version.is_empty() || method == "ping";
    let work = match is_ready {
        true => legacy::work(endpoint, asked, (headers, true), session, (method, id, params)),
        false => Err(Fault::invalid_request("`initialize` comes first")),
    };
    match work {
        Ok(work) => {
            tokio::spawn(run(work, entered, stream));
        }
        Err(fault) => {
            let refusal = fault.answer(Some(id));
            tokio::spawn(async move {
                stream.tell(refusal).await;
                drop(entered);
            });
        }
    }
}

/// Agrees with a client, on record for every replica before it hears of it.
async fn agree(
    endpoint: &Endpoint,
    asked: &Asked,
    session: String,
    params: Option<&RawValue>,
) -> Result<String, Fault> {
    let (agreed, result) = legacy::agree(endpoint, asked, params).await?;
    let (version, capabilities) = (agreed.version.to_owned(), agreed.kept_capabilities().to_owned());
    let noted = endpoint.options.sessions.agree_with_client(session, version, capabilities);
    if noted.await.map_err(away)? { Ok(result) } else { Err(Fault::no_session()) }
}

/// Does `work`, telling all of it.
async fn run(work: Work, entered: Entered, stream: Stream) {
    let (id, request_id) = (work.id.clone(), work.request_id());
    let (notices, mut queue) = work.notices();
    let cancelled = entered.cancelled.clone();
    let mut task = tokio::spawn(async move {
        tokio::select! {
            done = work.run(notices) => Some(done),
            () = cancelled.cancelled() => None,
        }
    });
    let done = loop {
        tokio::select! {
            biased;
            Some(notice) = queue.recv() => {
                if !stream.tell(notice).await {
                    // Whoever would ask the client is told at once; the request itself goes on.
                    return;
                }
            }
            done = &mut task => break done,
        }
    };
    if tell_rest(&stream, &mut queue).await
        && let Some(outcome) = settled(done, &request_id)
    {
        stream.tell(answer(&id, outcome)).await;
    }
    // Not before: a replica that stops waits for what is to be told.
    drop(entered);
}

async fn tell_rest(stream: &Stream, queue: &mut mpsc::Receiver<String>) -> bool {
    while let Ok(notice) = queue.try_recv() {
        if !stream.tell(notice).await {
            return false;
        }
    }
    true
}

fn answer(id: &RawValue, outcome: Result<String, Fault>) -> String {
    match outcome {
        Ok(result) => response(id, &result),
        Err(fault) => fault.answer(Some(id)),
    }
}
