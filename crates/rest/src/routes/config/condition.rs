//! The header `If-Match`: what a writer believes is stored (RFC 9110 §13.1.1).
//!
//! Only reads it; whether it holds is judged inside the write. One that is not understood holds for nothing, so that
//! a stale write never passes by mistake.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use caribou_core::config::IfMatch;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::{IntoParams, PartialSchema};

/// What must be stored for a write to go on; without the header, anything may be.
pub(crate) struct Condition(pub(crate) IfMatch);

impl<S: Sync> FromRequestParts<S> for Condition {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let lines = parts.headers.get_all(header::IF_MATCH).iter().map(|line| line.to_str().unwrap_or_default());
        Ok(Self(match lines.collect::<Vec<_>>() {
            lines if lines.is_empty() => IfMatch::Unconditional,
            lines => IfMatch::parse(&lines.join(",")),
        }))
    }
}

impl IntoParams for Condition {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "The `ETag` of what was read; the change is refused with 409 when something else is stored \
                           by now. Without it the last writer wins";
        let parameter = ParameterBuilder::new().name("If-Match").parameter_in(ParameterIn::Header);
        let parameter = parameter.required(Required::False).description(Some(description));
        vec![parameter.schema(Some(<String as PartialSchema>::schema())).build()]
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use caribou_core::config::ETag;

    use super::*;

    async fn read(lines: &[&str]) -> IfMatch {
        let request = lines.iter().fold(Request::builder(), |request, line| request.header("if-match", *line));
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let Ok(Condition(condition)) = Condition::from_request_parts(&mut parts, &()).await;
        condition
    }

    #[tokio::test]
    async fn several_lines_are_one_list_and_nonsense_holds_for_nothing() {
        let (a, b) = (ETag::of(b"a"), ETag::of(b"b"));
        assert_eq!(read(&[]).await, IfMatch::Unconditional);
        assert_eq!(read(&["*"]).await, IfMatch::Exists);
        assert_eq!(read(&[&a.to_string(), &b.to_string()]).await, IfMatch::OneOf(vec![a, b]));
        assert_eq!(read(&["soon"]).await, IfMatch::OneOf(vec![]));
    }
}
