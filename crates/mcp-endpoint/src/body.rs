//! Reads the body of a POST within a bound of bytes and of time (invariant B1).

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use caribou_core::failure::Code;
use caribou_runtime::VerbError;

use crate::fault::{Fault, INVALID_REQUEST};
use crate::options::EndpointOptions;

/// The whole body.
///
/// # Errors
/// It is not declared as JSON, too large, too slow, or broke off.
pub(crate) async fn read(headers: &HeaderMap, body: Body, options: &EndpointOptions) -> Result<Bytes, Fault> {
    demand_json(headers)?;
    let limit = options.max_body_bytes;
    let too_large = || {
        let why = format!("the body is larger than {limit} bytes");
        Fault::of_envelope(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, why)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(options.body_timeout, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(too_large()),
        Ok(Err(_)) => Err(Fault::of_envelope(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the body broke off")),
        Err(_) => {
            let late = Fault::from(VerbError::new(Code::Timeout, "the body did not arrive in time"));
            Err(Fault { status: StatusCode::REQUEST_TIMEOUT, is_envelopes: true, ..late })
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    // The limit's own error is the source of what axum wraps.
    std::error::Error::source(error).is_some_and(|source| source.to_string().contains("length limit"))
}

/// Refuses bodies that are not declared as JSON. A web page may send any other type to this machine without asking
/// first, and tools have effects.
fn demand_json(headers: &HeaderMap) -> Result<(), Fault> {
    let declared = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let why = "the body must be sent with `Content-Type: application/json`";
    Err(Fault::of_envelope(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST, why))
}
