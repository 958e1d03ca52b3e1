//! Event streams of the fake: answers, standing streams, resumed ones, and the two endpoints of HTTP+SSE.

use std::io;
use std::sync::{Arc, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response};
use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::{broadcast, mpsc};

use super::http::{Front, header, status};
use super::outlet::{Out, Outlet, mangled};
use super::replies::Incoming;
use super::server::Context;

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn body(chunks: BoxStream<'static, io::Result<Bytes>>) -> Response<Body> {
    let response = Response::builder().header("content-type", "text/event-stream").header("x-accel-buffering", "no");
    response.body(Body::from_stream(chunks)).expect("plain headers")
}

/// The answer to one request as a stream that begins with `first`.
pub(super) fn response(front: &Arc<Front>, first: Option<Out>, rest: mpsc::Receiver<Out>) -> Response<Body> {
    let state = (Arc::clone(front), first, Some(rest));
    let chunks = stream::unfold(state, |(front, first, rest)| async move {
        let mut rest = rest?;
        let out = match first {
            Some(out) => out,
            None => rest.recv().await?,
        };
        let text = match out {
            Out::Message(message) => event("message", &mangled(&front.server.script.framing, &message)),
            Out::Bytes(text) => text,
            Out::Resumable(id) => {
                let parked = front.resumable.lock();
                parked.unwrap_or_else(PoisonError::into_inner).insert(id.clone(), rest);
                return Some((Ok(format!("id: {id}\nretry: 20\ndata:\n\n")), (front, None, None)));
            }
            Out::Reset => {
                // Once asked in vain, the server writes out what it holds; only then does it meet the error.
                tokio::task::yield_now().await;
                return Some((Err(io::Error::other("broken off")), (front, None, None)));
            }
            Out::End | Out::Status(_) => return None,
        };
        Some((Ok(text), (front, None, Some(rest))))
    });
    let size = front.server.script.framing.chunk;
    body(chunks.flat_map(move |chunk| stream::iter(split(chunk, size))).boxed())
}

/// One write, or many small ones.
fn split(chunk: io::Result<String>, size: usize) -> Vec<io::Result<Bytes>> {
    match chunk {
        Ok(text) if size > 0 => text.as_bytes().chunks(size).map(|part| Ok(Bytes::copy_from_slice(part))).collect(),
        Ok(text) => vec![Ok(Bytes::from(text))],
        Err(error) => vec![Err(error)],
    }
}

/// `GET` of the endpoint: a resumed answer, a standing stream, or a refusal.
pub(super) fn standing(front: &Arc<Front>, headers: &HeaderMap) -> Response<Body> {
    let last = header(headers, "last-event-id");
    let parked = front.resumable.lock().unwrap_or_else(PoisonError::into_inner).remove(last);
    if let Some(rest) = parked {
        return response(front, None, rest);
    }
    if !front.server.script.http.stream {
        return status(405, &[("allow", "POST")], "");
    }
    body(subscribed(front).map(|text| Ok(Bytes::from(text))).boxed())
}

/// Notes in the log when the client has gone.
struct Closing(Arc<Front>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.server.log.add("closed", "");
    }
}

/// Everything pushed from now on, as events.
fn subscribed(front: &Arc<Front>) -> BoxStream<'static, String> {
    front.server.log.add("opened", "");
    let state = (front.standing.subscribe(), Closing(Arc::clone(front)));
    stream::unfold(state, |(mut messages, closing)| async move {
        loop {
            match messages.recv().await {
                Ok(message) => return Some((event("message", &message), (messages, closing))),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    })
    .boxed()
}

/// `GET /sse` of HTTP+SSE: the `endpoint` event, then whatever the posts bring.
pub(super) fn open(front: &Arc<Front>) -> Response<Body> {
    let endpoint = front.server.script.http.endpoint.as_deref();
    // Without an endpoint only a comment comes, so that the client sees an open stream.
    let first = endpoint.map_or(": waiting\n\n".to_owned(), |endpoint| event("endpoint", endpoint));
    let all = stream::once(async { first }).chain(subscribed(front));
    body(all.map(|text| Ok(Bytes::from(text))).boxed())
}

/// `POST` of HTTP+SSE: accepted at once, answered on the stream.
pub(super) async fn message(front: &Arc<Front>, raw: &str) -> Response<Body> {
    let Ok(incoming) = serde_json::from_str::<Incoming>(raw) else { return status(400, &[], "not JSON") };
    let (sender, mut outs) = mpsc::channel(16);
    tokio::spawn(front.server.accept(incoming, Outlet::Http(sender), Context::default()));
    let front = Arc::clone(front);
    tokio::spawn(async move {
        while let Some(out) = outs.recv().await {
            if let Out::Message(message) = out {
                // No stream, no answer.
                let _ = front.standing.send(mangled(&front.server.script.framing, &message));
            }
        }
    });
    status(202, &[], "Accepted")
}
