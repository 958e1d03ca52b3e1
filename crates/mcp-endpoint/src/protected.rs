//! Where tokens for this endpoint come from (RFC 9728): told at well-known paths, and to whoever is refused.
//!
//! For deployments whose callers have tokens of an issuer. The address of this replica is a setting; without it, it is
//! what the client called it by.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use caribou_core::ids::ServerName;
use serde_json::json;

use crate::place::Place;
use crate::router::Endpoint;

/// Where clients look for it; a resource's own path follows.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What clients are told of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Who makes them.
    pub issuer: String,
    /// By what clients reach this replica, such as `https://caribou.example`; `None` = by whatever host they name.
    pub public_url: Option<String>,
    /// The scheme when no address is set.
    pub scheme: &'static str,
    /// Whether clients of HTTP+SSE are served.
    pub http_sse: bool,
}

impl Protected {
    fn base(&self, headers: &HeaderMap) -> Option<String> {
        if let Some(url) = &self.public_url {
            return Some(url.trim_end_matches('/').to_owned());
        }
        let host = headers.get(header::HOST)?.to_str().ok()?;
        // It is written into a quoted text.
        let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
        is_plain.then(|| format!("{}://{host}", self.scheme))
    }
}

/// What follows the challenge to a client that was refused at `path`; `None` = the path is none of this endpoint.
pub fn challenge(protected: &Protected, headers: &HeaderMap, path: &str) -> Option<String> {
    let is_below = |door: &str| path.strip_prefix(door).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_ours = is_below("/mcp") || (protected.http_sse && is_below("/sse"));
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    if !is_ours || !is_plain {
        return None;
    }
    Some(format!("resource_metadata=\"{}{WELL_KNOWN}{path}\"", protected.base(headers)?))
}

/// The metadata of the whole deployment, for clients that look nowhere else.
pub(crate) fn root() -> Router<Arc<Endpoint>> {
    Router::new().route(WELL_KNOWN, routing::get(|state, headers| of(state, headers, "/mcp", Place::All)))
}

/// The routes of the metadata of what is served at `door` and below it.
pub(crate) fn routes(door: &'static str) -> Router<Arc<Endpoint>> {
    let of_all = move |state, headers| of(state, headers, door, Place::All);
    let of_one =
        move |state, Path(server): Path<String>, headers| of(state, headers, door, Place::One(ServerName::new(server)));
    Router::new()
        .route(&format!("{WELL_KNOWN}{door}"), routing::get(of_all))
        .route(&format!("{WELL_KNOWN}{door}/{{server}}"), routing::get(of_one))
}

async fn of(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap, door: &str, place: Place) -> Response {
    let Some(protected) = &endpoint.options.protected else { return StatusCode::NOT_FOUND.into_response() };
    let Some(base) = protected.base(&headers) else { return StatusCode::BAD_REQUEST.into_response() };
    let path = place.server().map_or_else(|| door.to_owned(), |server| format!("{door}/{server}"));
    let mut metadata = json!({
        "resource": format!("{base}{path}"),
        "authorization_servers": [protected.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Caribou",
    });
    let scopes = endpoint.runtime.required_scopes(place.server()).await;
    if !scopes.is_empty() {
        metadata["scopes_supported"] = json!(scopes);
    }
    Json(metadata).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_refused_client_is_told_where_to_look() {
        // mcp.md §17, S22.
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("caribou.example:8750"));
        let of_host = Protected {
            issuer: "https://issuer.example".to_owned(),
            public_url: None,
            scheme: "https",
            http_sse: false,
        };
        let told = challenge(&of_host, &headers, "/mcp/time").unwrap();
        let expected = "https://caribou.example:8750/.well-known/oauth-protected-resource/mcp/time";
        assert_eq!(told, format!("resource_metadata=\"{expected}\""));
        let set = Protected { public_url: Some("https://c.example/".to_owned()), ..of_host.clone() };
        assert!(challenge(&set, &headers, "/mcp").unwrap().contains("\"https://c.example/.well-known"));
        assert_eq!(challenge(&of_host, &headers, "/api/mcp/tools"), None);
        assert_eq!(challenge(&of_host, &headers, "/mcp/\""), None);
        assert_eq!((challenge(&of_host, &headers, "/sse"), challenge(&of_host, &headers, "/mcpx")), (None, None));
        let old = Protected { http_sse: true, ..of_host.clone() };
        assert!(challenge(&old, &headers, "/sse/time").unwrap().ends_with("oauth-protected-resource/sse/time\""));
        headers.insert(header::HOST, HeaderValue::from_static("a\"b"));
        assert_eq!(challenge(&of_host, &headers, "/mcp"), None);
    }
}
