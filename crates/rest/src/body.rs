//! Reads JSON bodies, and says what is wrong with one without repeating any of it.
//!
//! A body is read within a bound of bytes and of time (B1) and parsed once; only one that does not fit is parsed
//! again, to name the place. Messages hold positions and member names of ours, never text of the caller, which may
//! be a misplaced secret (O3).

use std::sync::Arc;

use axum::body::{Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use caribou_core::failure::Code;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::options::RestOptions;
use crate::problem::Problem;
use crate::router::Replica;

/// A JSON body of this shape.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Replica>> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, replica: &Arc<Replica>) -> Result<Self, Problem> {
        demand_json(request.headers())?;
        parse(&read(request, &replica.options).await?).map(Self)
    }
}

/// A JSON body of this shape, or none at all.
pub(crate) struct OptionalJsonBody<T>(pub(crate) Option<T>);

impl<T: DeserializeOwned> FromRequest<Arc<Replica>> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, replica: &Arc<Replica>) -> Result<Self, Problem> {
        if request.body().is_end_stream() {
            return Ok(Self(None));
        }
        JsonBody::from_request(request, replica).await.map(|JsonBody(body)| Self(Some(body)))
    }
}

/// Refuses bodies that are not declared as JSON. A web page may send any other type to this machine without asking
/// first (a "simple" cross-origin request), and tools have effects.
fn demand_json(headers: &HeaderMap) -> Result<(), Problem> {
    let declared = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "the body must be sent with `Content-Type: application/json`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::Invalid, detail))
}

async fn read(mut request: Request, options: &RestOptions) -> Result<Bytes, Problem> {
    let limit = options.max_body_bytes;
    if request.body().size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    DefaultBodyLimit::max(limit).apply(&mut request);
    match tokio::time::timeout(options.body_timeout, Bytes::from_request(request, &())).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(too_large(limit)),
        Ok(Err(_)) => Err(Problem::new(StatusCode::BAD_REQUEST, Code::Invalid, "the body broke off")),
        Err(_) => {
            let detail = format!("the body did not arrive within {} s", options.body_timeout.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, Code::Timeout, detail))
        }
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Code::Invalid, format!("the body is larger than {limit} bytes"))
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(text).map_err(|error| match error.classify() {
        Category::Data => Problem::invalid(misfit::<T>(text)),
        // Messages of this kind are fixed phrases and a position.
        Category::Syntax | Category::Eof | Category::Io => {
            Problem::new(StatusCode::BAD_REQUEST, Code::Invalid, format!("the body is not JSON: {error}"))
        }
    })
}

/// Which member does not fit, what stands there in a body that does, and where.
fn misfit<T: DeserializeOwned>(text: &[u8]) -> String {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return "the body does not fit".to_owned();
    };
    let member = match error.path().to_string().as_str() {
        "." => "the body".to_owned(),
        path => format!("`{path}`"),
    };
    let error = error.into_inner();
    let place = format!("(line {}, column {})", error.line(), error.column());
    format!("{member}: {} {place}", fault(&error.to_string()))
}

/// The part of a message of serde that is made of our own words: what it found is the caller's text.
fn fault(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    if let Some((_, expected)) = message.rsplit_once(", expected ") {
        let expected = if expected == "f64" { "a number" } else { expected };
        return format!("must be {expected}");
    }
    match message.starts_with("missing field ") || message.starts_with("duplicate field ") {
        true => message.replace(" field ", " member "),
        false => "does not fit".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(expecting = "an object")]
    struct Sample {
        #[expect(dead_code)]
        name: String,
        #[expect(dead_code)]
        timeout: Option<f64>,
    }

    fn refused(text: &str) -> (StatusCode, String) {
        use axum::response::IntoResponse;
        let problem = parse::<Sample>(text.as_bytes()).unwrap_err();
        let id = caribou_core::ids::RequestId::new("r");
        let body: serde_json::Value = serde_json::to_value(problem.body(&id)).unwrap();
        (problem.into_response().status(), body["detail"].as_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_no_json_names_the_place_and_none_of_the_text() {
        let (status, detail) = refused("{\"name\":\n \"hunter2\" oops");
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(detail, "the body is not JSON: expected `,` or `}` at line 2 column 12");
    }

    #[test]
    fn what_has_the_wrong_type_names_the_member_and_none_of_the_value() {
        let misfits = [
            (r#"{"name":"n","timeout":"hunter2, expected"}"#, "`timeout`: must be a number (line 1, column 41)"),
            (r#"{"name":{"hunter2":1}}"#, "`name`: must be a string (line 1, column 8)"),
            (r#"{"timeout":1}"#, "the body: missing member `name` (line 1, column 13)"),
            (r#"{"name":"a","name":"hunter2"}"#, "the body: duplicate member `name` (line 1, column 18)"),
            (r#""hunter2""#, "the body: must be an object (line 1, column 9)"),
        ];
        for (text, expected) in misfits {
            let (status, detail) = refused(text);
            assert_eq!((status, detail.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, expected), "{text}");
        }
    }

    #[test]
    fn only_json_is_taken_whatever_its_parameters() {
        let declared = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, header::HeaderValue::from_static(value))]);
            demand_json(&headers).is_ok()
        };
        assert!(declared("application/json") && declared("Application/JSON; charset=utf-8"));
        assert!(!declared("text/plain") && !declared("application/jsonp") && demand_json(&HeaderMap::new()).is_err());
    }
}
