//! Who calls: the bearer credential of a request (RFC 6750 §2.1), before any route sees it.
//!
//! Every route asks for a caller but those of [`OPEN`] and the files of the console. Who a credential belongs to is the runtime's to say; what its
//! holder may do, the verbs'. A refusal never repeats the credential (O3).

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use caribou_core::bounds::MAX_BEARER_BYTES;
use caribou_core::config::Secret;
use caribou_core::failure::Code;
use caribou_runtime::{Caller, Door, NotAdmitted, Runtime, Unauthenticated};

use crate::console::is_file;
use crate::problem::{Challenge, Problem};

/// Routes that ask for nobody: orchestrators and scrapers have no credential, and a client reads the document to learn
/// how to send one. None of them tells anything of users, arguments or secrets; `/metrics` names servers and tools.
pub(crate) const OPEN: [&str; 4] = ["/healthz", "/readyz", "/metrics", "/openapi.json"];

/// Where a client learns who makes the tokens it has none of yet (RFC 9728 §3.1); the path of what it asked for follows.
const OF_TOKENS: &str = "/.well-known/oauth-protected-resource";

/// The caller of a request to `path` with these headers; `None` = the route asks for nobody.
pub(crate) async fn identify(runtime: &Runtime, path: &str, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
    if OPEN.contains(&path) || path.starts_with(OF_TOKENS) || is_file(path) {
        return Ok(None);
    }
    let presented = if runtime.tells_callers_apart() { bearer(headers)? } else { None };
    match runtime.admit(presented).await {
        Ok(principal) => Ok(Some(Caller { principal, door: Door::Rest, request_id: None })),
        Err(refused) => Err(problem(refused)),
    }
}

/// The credential that the headers hold. The scheme is written in any case (RFC 9110 §11.1).
fn bearer(headers: &HeaderMap) -> Result<Option<Secret>, Problem> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let malformed = || challenged(Challenge::Other, "`Authorization` must be one header of the form `Bearer ...`");
    let text = line.to_str().ok().filter(|text| text.len() <= MAX_BEARER_BYTES).ok_or_else(malformed)?;
    let (scheme, credential) = text.split_once(' ').ok_or_else(malformed)?;
    let credential = credential.trim_matches(' ');
    if lines.next().is_some() || !scheme.eq_ignore_ascii_case("bearer") || credential.is_empty() {
        return Err(malformed());
    }
    Ok(Some(Secret::new(credential)))
}

fn problem(refused: NotAdmitted) -> Problem {
    match refused {
        NotAdmitted::Unauthenticated(why @ Unauthenticated::Missing) => {
            challenged(Challenge::Credential, why.to_string())
        }
        NotAdmitted::Unauthenticated(why @ Unauthenticated::Refused(_)) => {
            challenged(Challenge::Other, why.to_string())
        }
        NotAdmitted::Unauthenticated(why @ Unauthenticated::Unavailable(_)) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, why.to_string())
        }
        NotAdmitted::Limited { retry_after } => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, Code::Busy, refused.to_string()).retry_after(retry_after)
        }
    }
}

fn challenged(challenge: Challenge, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, Code::Denied, detail).challenge(challenge)
}

/// The caller of this request.
pub(crate) struct Identified(pub(crate) Caller);

impl<S: Sync> FromRequestParts<S> for Identified {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // Absent only when a route that asks for nobody asks for its caller.
        parts.extensions.get::<Caller>().cloned().map(Self).ok_or_else(Problem::bug)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(lines: &[&'static str]) -> Result<Option<String>, Problem> {
        let lines = lines.iter().map(|line| (header::AUTHORIZATION, HeaderValue::from_static(line)));
        let mut headers = HeaderMap::new();
        lines.for_each(|(name, value)| {
            headers.append(name, value);
        });
        bearer(&headers).map(|found| found.map(|secret| secret.expose().to_owned()))
    }

    #[test]
    fn a_credential_is_read_whatever_the_case_of_its_scheme() {
        assert_eq!(read(&[]).unwrap(), None);
        for line in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(read(&[line]).unwrap().as_deref(), Some("abc"), "{line}");
        }
    }

    #[test]
    fn what_is_no_single_bearer_credential_is_refused_without_being_repeated() {
        for lines in [&["Basic hunter2"][..], &["hunter2"], &["Bearer "], &["Bearer hunter2", "Bearer b"]] {
            let refused = read(lines).unwrap_err();
            assert!(!format!("{refused:?}").contains("hunter2"), "{lines:?}");
        }
    }
}
