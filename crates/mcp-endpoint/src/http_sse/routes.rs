//! The addresses: of the stream, and with a session of the POSTs.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};

use super::{open, post};
use crate::router::{Asked, Endpoint};

/// The routes.
pub(crate) fn routes() -> Router<Arc<Endpoint>> {
    Router::new().route("/sse", routing::any(answer)).route("/sse/{server}", routing::any(answer))
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, asked: Asked, request: Request) -> Response {
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
