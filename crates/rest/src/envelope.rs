//! What all requests have in common: foreign web sites kept out, a request id in and out, problems written as
//! bodies, panics answered.
//!
//! The only layer around the routes. A route that panics takes nothing else along: its caller reads 500, the log
//! names the request.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caribou_core::ids::RequestId;
use futures::FutureExt;
use uuid::Uuid;

use crate::problem::Problem;
use crate::router::Replica;
use crate::site;

/// The header that names a request, in both directions.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A longer id of a caller is replaced: ids are copied into every log line and span.
const LONGEST_ID: usize = 128;

/// Runs one request inside its envelope. Routes find the [`RequestId`] among the request's extensions.
pub(crate) async fn envelope(State(replica): State<Arc<Replica>>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let mut response = match site::refusal(request.headers(), &replica.options.allowed_hosts) {
        Some(refused) => refused.into_response(),
        None => {
            request.extensions_mut().insert(id.clone());
            let ran = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            ran.unwrap_or_else(|_| panicked(&id).into_response())
        }
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        problem.write(&id, &mut response);
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
}

/// Notes that the request `id` met a panic. The payload is not repeated: it may hold anything.
pub(crate) fn panicked(id: &RequestId) -> Problem {
    tracing::error!(request_id = %id, "a request met a panic");
    Problem::bug()
}

/// The caller's own id if it is fit to be printed, else a new one that sorts by time.
fn request_id(headers: &HeaderMap) -> RequestId {
    let given = headers.get(X_REQUEST_ID).map(HeaderValue::as_bytes);
    given
        .filter(|id| (1..=LONGEST_ID).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic))
        .and_then(|id| std::str::from_utf8(id).ok())
        .map_or_else(|| RequestId::new(Uuid::now_v7().to_string()), RequestId::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(given: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
        request_id(&headers).as_str().to_owned()
    }

    #[test]
    fn a_sane_id_of_the_caller_is_kept() {
        assert_eq!(answered(b"req-1/ABC"), "req-1/ABC");
        assert_eq!(answered(&[b'x'; LONGEST_ID]).len(), LONGEST_ID);
    }

    #[test]
    fn any_other_id_is_replaced_by_a_fresh_one() {
        for odd in [&b""[..], b"two words", "gr\u{fc}n".as_bytes(), &[b'x'; LONGEST_ID + 1]] {
            assert_eq!(Uuid::parse_str(&answered(odd)).unwrap().get_version_num(), 7);
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
