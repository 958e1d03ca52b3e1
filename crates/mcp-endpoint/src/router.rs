//! The routes, and what they share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Extension, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use caribou_core::ids::{RequestId, ServerName};
use caribou_runtime::{Caller, Door, Runtime};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::asking::Answers;
use crate::body;
use crate::era;
use crate::fault::Fault;
use crate::fresh::Fresh;
use crate::http_sse::{self, Outboxes};
use crate::in_flight::InFlight;
use crate::legacy;
use crate::message::Message;
use crate::modern;
use crate::options::EndpointOptions;
use crate::place::Place;
use crate::protected;
use crate::words::open_ears;

/// What every request may use.
pub(crate) struct Endpoint {
    pub(crate) runtime: Runtime,
    pub(crate) options: EndpointOptions,
    pub(crate) in_flight: InFlight,
    /// What clients are being asked.
    pub(crate) answers: Answers,
    /// What sessions were just subscribed to.
    pub(crate) fresh: Fresh,
    /// What waits for clients of HTTP+SSE whose streams are here.
    pub(crate) outboxes: Outboxes,
    /// The standing stream of each session that has one here.
    pub(crate) streams: Mutex<HashMap<String, CancellationToken>>,
    /// Places for standing streams.
    pub(crate) stream_places: Arc<Semaphore>,
}

/// Who asks, and for what.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    pub(crate) request_id: RequestId,
    pub(crate) place: Place,
}

/// The routes of the endpoint. Whoever serves them puts the [`Caller`] and the [`RequestId`] of each request among its
/// extensions before.
pub fn router(runtime: Runtime, options: EndpointOptions) -> Router {
    let stream_places = Arc::new(Semaphore::new(options.max_streams));
    let endpoint = Arc::new(Endpoint {
        runtime,
        options,
        in_flight: InFlight::default(),
        answers: Answers::default(),
        fresh: Fresh::default(),
        outboxes: Outboxes::default(),
        streams: Mutex::default(),
        stream_places,
    });
    open_ears(&endpoint);
    let mut routes = Router::new()
        .route("/mcp", routing::any(answer))
        .route("/mcp/{server}", routing::any(answer))
        .merge(protected::routes("/mcp"));
    if endpoint.options.http_sse {
        routes = routes.merge(http_sse::routes()).merge(protected::routes("/sse"));
    }
    routes.merge(protected::root()).with_state(endpoint)
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Response;

    /// At which place is said by the path: the endpoint of one server ends with its name.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let caller = Extension::<Caller>::from_request_parts(parts, state).await;
        let request_id = Extension::<RequestId>::from_request_parts(parts, state).await;
        let server = Option::<Path<String>>::from_request_parts(parts, state).await;
        let Extension(caller) = caller.map_err(IntoResponse::into_response)?;
        let Extension(request_id) = request_id.map_err(IntoResponse::into_response)?;
        let server = server.map_err(IntoResponse::into_response)?;
        let place = server.map_or(Place::All, |Path(server)| Place::One(ServerName::new(server)));
        Ok(Self { caller: Caller { door: Door::Mcp, ..caller }, request_id, place })
    }
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, asked: Asked, request: Request) -> Response {
    let answered = match *request.method() {
        Method::POST => post(endpoint, asked, request).await,
        Method::GET => legacy::listen(&endpoint, &asked, request.headers()).await,
        Method::DELETE => legacy::end(&endpoint, &asked, request.headers()).await,
        _ => Ok(not_taken()),
    };
    answered.unwrap_or_else(|fault| fault.respond(fault.status, None))
}

async fn post(endpoint: Arc<Endpoint>, asked: Asked, request: Request) -> Result<Response, Fault> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, &endpoint.options).await?;
    let message = Message::read(&body)?;
    let id = message.id;
    let answered = match era::of(&parts.headers, &message) {
        caribou_core::era::Era::Modern => modern::post(endpoint, asked, &parts.headers, &message).await,
        caribou_core::era::Era::Legacy => legacy::post(endpoint, asked, &parts.headers, &message).await,
    };
    Ok(answered.unwrap_or_else(|fault| fault.respond(fault.status, id.filter(|_| message.method.is_some()))))
}

/// A method of HTTP that means nothing here.
pub(crate) fn not_taken() -> Response {
    let allow = (header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    (StatusCode::METHOD_NOT_ALLOWED, [allow]).into_response()
}

/// Whether an event stream is taken as an answer. A wildcard does not count: JSON is simpler.
pub(crate) fn takes_events(headers: &axum::http::HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .any(|range| range.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("text/event-stream")))
}
