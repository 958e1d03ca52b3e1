//! What all requests have in common: foreign web sites kept out, the caller told, a request id in and out, problems
//! written as bodies, panics answered.
//!
//! The only layer around the routes. A route that panics takes nothing else along: its caller reads 500, the log
//! names the request.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caribou_core::ids::RequestId;
use caribou_runtime::Caller;
use futures::FutureExt;
use uuid::Uuid;

use crate::door_span::DoorSpan;
use crate::identity::identify;
use crate::problem::Problem;
use crate::router::Replica;
use crate::site;

/// The header that names a request, in both directions.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Runs one request inside its envelope. Routes find the [`RequestId`] and, but for the open ones, the caller among
/// the request's extensions.
pub(crate) async fn envelope(State(replica): State<Arc<Replica>>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let told_more = told_more(&replica, &request);
    let span = DoorSpan::begin(&request, &id);
    let answering = async {
        match caller(&replica, request.uri().path(), request.headers()).await {
            Err(refused) => refused.into_response(),
            Ok(caller) => {
                request.extensions_mut().insert(id.clone());
                if let Some(caller) = caller {
                    request.extensions_mut().insert(Caller { request_id: Some(id.clone()), ..caller });
                }
                let ran = AssertUnwindSafe(next.run(request)).catch_unwind().await;
                ran.unwrap_or_else(|_| panicked(&id).into_response())
            }
        }
    };
    let mut response = span.within(answering).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        problem.write(&id, &mut response);
    }
    span.answered(response.status());
    if let Some(challenge) = response.headers_mut().get_mut(header::WWW_AUTHENTICATE)
        && let Some(more) = told_more
        && let Ok(text) = challenge.to_str()
        && let Ok(more) = HeaderValue::from_str(&format!("{text}{}{more}", if text.contains(' ') { ", " } else { " " }))
    {
        *challenge = more;
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
}

/// What a refusal of this request tells beside its challenge.
fn told_more(replica: &Replica, request: &Request) -> Option<String> {
    replica.options.challenge_more.as_ref()?(request.headers(), request.uri().path())
}

/// Who asks; `None` = the route asks for nobody.
async fn caller(replica: &Replica, path: &str, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
    let runtime = &replica.runtime;
    site::admit(headers, &replica.options.allowed_hosts, runtime.tells_callers_apart())?;
    identify(runtime, path, headers).await
}

/// Notes that the request `id` met a panic. The payload is not repeated: it may hold anything.
pub(crate) fn panicked(id: &RequestId) -> Problem {
    tracing::error!(request_id = %id, "a request met a panic");
    Problem::bug()
}

/// The caller's own id if it is fit to be printed, else a new one that sorts by time.
fn request_id(headers: &HeaderMap) -> RequestId {
    let given = headers.get(X_REQUEST_ID).and_then(|id| RequestId::from_caller(id.as_bytes()));
    given.unwrap_or_else(|| RequestId::new(Uuid::now_v7().to_string()))
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
    }

    #[test]
    fn any_other_id_is_replaced_by_a_fresh_one() {
        for odd in [&b""[..], b"two words"] {
            assert_eq!(Uuid::parse_str(&answered(odd)).unwrap().get_version_num(), 7);
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
