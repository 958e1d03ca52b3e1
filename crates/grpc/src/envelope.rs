//! What all requests have in common: a request id in and out, a message that must arrive in time, panics answered.
//!
//! The only layer around the services. A method that panics takes nothing else along: its caller reads `INTERNAL`, the
//! log names the request. Foreign web sites are no danger here: a browser sends `application/grpc` to another origin
//! only after asking, and is never answered.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use caribou_core::ids::RequestId;
use futures::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tower::{Service, ServiceExt};
use uuid::Uuid;

use crate::door_span::DoorSpan;
use crate::patient::Patient;
use crate::server::is_conversation;
use crate::status;

/// The metadatum that names a request, in both directions.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What answers requests in their envelopes.
pub(crate) trait Answers:
    Service<Request<Patient<Incoming>>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> Answers for S where
    S: Service<Request<Patient<Incoming>>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Runs one request inside its envelope. Methods find the [`RequestId`] among the request's extensions, at a public door.
pub(crate) async fn envelope(
    services: impl Answers,
    (patience, is_public): (Duration, bool),
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let id = is_public.then(|| request_id(request.headers()));
    if let Some(id) = &id {
        request.extensions_mut().insert(id.clone());
    }
    // What a watcher says may come hours later; keep-alives tell whether it lives.
    let patience = (!is_conversation(request.uri().path())).then_some(patience);
    let request = request.map(|body| Patient::new(body, patience));
    let span = DoorSpan::begin(&request);
    let ran = AssertUnwindSafe(span.within(services.oneshot(request))).catch_unwind().await;
    let mut response = match ran {
        Ok(answered) => answered?,
        Err(_) => status::panicked(&id.clone().unwrap_or_else(new_id)).into_http(),
    };
    span.answered(response.headers());
    if let Some(Ok(value)) = id.map(|id| HeaderValue::from_str(id.as_str())) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    Ok(response)
}

/// The caller's own id if it is fit to be printed, else a new one that sorts by time.
fn request_id(headers: &HeaderMap) -> RequestId {
    let given = headers.get(X_REQUEST_ID).and_then(|id| RequestId::from_caller(id.as_bytes()));
    given.unwrap_or_else(new_id)
}

fn new_id() -> RequestId {
    RequestId::new(Uuid::now_v7().to_string())
}
