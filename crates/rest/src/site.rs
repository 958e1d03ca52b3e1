//! Which web sites may talk to a replica.
//!
//! A browser sends requests to this machine for any page that asks, and a page can point its own host name at
//! 127.0.0.1 (DNS rebinding). So `Origin`, which browsers send and programs do not, must name loopback or a host the
//! operator listed; and so must `Host` while callers are not told apart. Once they are, a page has no credential to
//! send, whatever its name points at, and a replica is reached by names that it does not know. Says nothing about who
//! the caller is.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use caribou_core::failure::Code;

use crate::problem::Problem;

/// Lets a request with these headers in; with `any_host`, whatever host it was sent to.
///
/// # Errors
/// 403, naming the header.
pub(crate) fn admit(headers: &HeaderMap, allowed_hosts: &[String], any_host: bool) -> Result<(), Problem> {
    let allowed = |host: &str| is_loopback(host) || allowed_hosts.iter().any(|name| name.eq_ignore_ascii_case(host));
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
    let host = any_host || text(header::HOST).is_none_or(|host| host_of(host).is_some_and(|host| allowed(&host)));
    let origin = text(header::ORIGIN).is_none_or(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.and_then(host_of).is_some_and(|host| allowed(&host))
    });
    if host && origin {
        return Ok(());
    }
    let which = if host { "Origin" } else { "Host" };
    let detail = format!(
        "the header `{which}` names another host than this machine's loopback; list that host in \
         `rest.allowed_hosts` if it is yours"
    );
    Err(Problem::new(StatusCode::FORBIDDEN, Code::Denied, detail))
}

fn host_of(authority: &str) -> Option<String> {
    authority.parse::<Authority>().ok().map(|authority| authority.host().to_owned())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_by(any_host: bool, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        admit(&headers, &["caribou.internal".to_owned()], any_host).is_err()
    }

    fn refused(host: &str, origin: Option<&str>) -> bool {
        refused_by(false, host, origin)
    }

    #[test]
    fn loopback_and_listed_hosts_are_served() {
        for host in ["127.0.0.1:8750", "localhost", "LOCALHOST:1", "[::1]:8750", "127.9.9.9", "caribou.internal:80"] {
            assert!(!refused(host, None), "{host}");
        }
        assert!(!refused("localhost", Some("http://localhost:3000")));
    }

    #[test]
    fn other_hosts_and_foreign_origins_are_refused() {
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", ""] {
            assert!(refused(host, None), "{host}");
        }
        for origin in ["https://evil.example", "null", "http://127.0.0.1.evil.example"] {
            assert!(refused("localhost", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn a_request_without_host_is_no_browsers() {
        assert!(admit(&HeaderMap::new(), &[], false).is_ok());
    }

    #[test]
    fn once_callers_are_told_apart_any_host_is_served_and_foreign_origins_still_are_not() {
        assert!(!refused_by(true, "10.0.0.1:8750", None) && !refused_by(true, "caribou.example", None));
        assert!(refused_by(true, "caribou.example", Some("https://evil.example")));
        assert!(!refused_by(true, "caribou.example", Some("https://caribou.internal")));
    }
}
