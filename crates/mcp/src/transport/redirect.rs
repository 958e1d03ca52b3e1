//! Which redirect of an upstream is followed (architecture.md §9).
//!
//! Owns the decision alone: pure, no I/O. A redirect keeps method, body and headers or is not followed at all; one
//! that would change the method, leave the origin unasked or never end is refused with a sentence that names where it
//! led, so that a person can mend the URL. Keeps O3: queries, which may hold credentials, are not repeated.

use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

/// Redirects followed for one request; more is a loop.
pub(crate) const MAX_REDIRECTS: usize = 3;

/// Where one request goes on, or why not.
///
/// `Ok(None)` means that the answer is no redirect.
///
/// # Errors
/// The redirect must not be followed; the message names its target without query.
pub(crate) fn next_hop(
    method: &Method,
    from: &Url,
    status: StatusCode,
    headers: &HeaderMap,
    allowed_origins: &[String],
) -> Result<Option<Url>, String> {
    let keeps_method = match status.as_u16() {
        307 | 308 => true,
        // A GET stays a GET under these; for everything else clients disagree on what they mean.
        301..=303 => method == Method::GET,
        _ => return Ok(None),
    };
    let Some(location) = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()) else {
        return Err(format!("it answered HTTP {status} without a usable `Location`"));
    };
    let Ok(to) = from.join(location) else {
        return Err(format!("it answered HTTP {status} with a `Location` that is no URL"));
    };
    let target = without_query(&to);
    if !keeps_method {
        return Err(format!(
            "it answered {method} with HTTP {status} to {target}, which would lose the request; \
             if that is the server's address, configure it as `url`"
        ));
    }
    if !same_origin(from, &to) && !allowed_origins.iter().any(|origin| is_origin(&to, origin)) {
        return Err(format!(
            "it redirects to another origin, {target}; \
             configure that address as `url`, or list its origin in `allowed_redirect_origins`"
        ));
    }
    Ok(Some(to))
}

/// Whether both have scheme, host and port in common (RFC 6454).
pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Scheme, host, port and path of `url`: what may be shown.
pub(crate) fn without_query(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn is_origin(url: &Url, origin: &str) -> bool {
    Url::parse(origin).is_ok_and(|origin| same_origin(&origin, url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(
        method: Method,
        from: &str,
        status: u16,
        location: &str,
        allowed: &[&str],
    ) -> Result<Option<String>, String> {
        let headers = HeaderMap::from_iter([(header::LOCATION, location.parse().unwrap())]);
        let allowed: Vec<String> = allowed.iter().map(|&origin| origin.to_owned()).collect();
        let status = StatusCode::from_u16(status).unwrap();
        next_hop(&method, &Url::parse(from).unwrap(), status, &headers, &allowed).map(|to| to.map(String::from))
    }

    #[test]
    fn within_one_origin_307_and_308_are_followed() {
        for status in [307, 308] {
            let to = hop(Method::POST, "http://h:1/mcp?k=1", status, "/mcp/", &[]);
            assert_eq!(to, Ok(Some("http://h:1/mcp/".to_owned())));
        }
    }

    #[test]
    fn a_redirect_that_loses_the_request_is_refused_and_names_its_target() {
        for status in [301, 302, 303] {
            let refused = hop(Method::POST, "http://h/mcp", status, "/mcp/?token=hunter22", &[]).unwrap_err();
            assert!(refused.contains("http://h/mcp/") && !refused.contains("hunter22"), "{refused}");
        }
        assert_eq!(hop(Method::GET, "http://h/sse", 301, "/sse/", &[]), Ok(Some("http://h/sse/".to_owned())));
    }

    #[test]
    fn another_origin_is_refused_unless_listed() {
        for to in ["http://other/mcp", "http://h:81/mcp", "//other/mcp"] {
            assert!(hop(Method::POST, "http://h/mcp", 307, to, &[]).is_err());
        }
        assert!(hop(Method::POST, "https://h/mcp", 307, "http://h/mcp", &[]).is_err());
        let listed = hop(Method::POST, "http://h/mcp", 307, "http://other:80/mcp", &["http://other/"]);
        assert_eq!(listed, Ok(Some("http://other/mcp".to_owned())));
    }

    #[test]
    fn other_answers_are_no_redirects_and_a_missing_target_is_told() {
        assert_eq!(hop(Method::POST, "http://h/mcp", 200, "/x", &[]), Ok(None));
        assert_eq!(hop(Method::POST, "http://h/mcp", 304, "/x", &[]), Ok(None));
        let none = next_hop(
            &Method::POST,
            &Url::parse("http://h/").unwrap(),
            StatusCode::TEMPORARY_REDIRECT,
            &HeaderMap::new(),
            &[],
        );
        assert!(none.unwrap_err().contains("Location"));
    }
}
