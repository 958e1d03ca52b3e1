//! The addresses: of the stream, and with a session of the POSTs.

use std::sync::Arc;

use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use caribou_core::ids::{RequestId, ServerName};
use caribou_runtime::{Caller, Door};

use super::{open, post};
use crate::place::Place;
use crate::router::{Asked, Endpoint};

/// The routes.
pub(crate) fn routes() -> Router<Arc<Endpoint>> {
    Router::new().route("/sse", routing::any(of_all)).route("/sse/{server}", routing::any(of_one))
}

async fn of_all(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(caller): Extension<Caller>,
    Extension(request_id): Extension<RequestId>,
    request: Request,
) -> Response {
    let caller = Caller { door: Door::Mcp, ..caller };
    answer(endpoint, Asked { caller, request_id, place: Place::All }, request).await
}

async fn of_one(
    State(endpoint): State<Arc<Endpoint>>,
    Path(server): Path<String>,
    Extension(caller): Extension<Caller>,
    Extension(request_id): Extension<RequestId>,
    request: Request,
) -> Response {
    let caller = Caller { door: Door::Mcp, ..caller };
    let place = Place::One(ServerName::new(server));
    answer(endpoint, Asked { caller, request_id, place }, request).await
}

async fn answer(endpoint: Arc<Endpoint>, asked: Asked, request: Request) -> Response {
    let answered = match *request.method() {
        Method::GET => open::open(&endpoint, &asked, request.uri().path(), request.headers()).await,
        Method::POST => post::post(endpoint, asked, request).await,
        _ => {
            let allow = (header::ALLOW, HeaderValue::from_static("GET, POST"));
            Ok((StatusCode::METHOD_NOT_ALLOWED, [allow]).into_response())
        }
    };
    answered.unwrap_or_else(|fault| fault.respond(fault.status, None))
}
