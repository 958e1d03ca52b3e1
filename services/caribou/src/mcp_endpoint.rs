//! What Caribou as one MCP server is told by the settings, and where its clients' sessions are kept.

use std::sync::Arc;

use axum::Router;
use caribou_mcp_endpoint::{EndpointOptions, Protected, challenge};
use caribou_ports::store::ClientSessions;
use caribou_rest::ChallengeMore;
use caribou_runtime::Runtime;
use caribou_store::{CachedClientSessions, Memory, SqlStore};
use tokio_util::sync::CancellationToken;

use crate::settings::{AuthMode, McpEndpoint, Settings};

/// The routes of the endpoint; none when it is switched off. `stopping` = the replica ends.
pub(crate) fn routes(
    settings: &Settings,
    runtime: &Runtime,
    store: Option<&SqlStore>,
    stopping: CancellationToken,
) -> Router {
    let set = &settings.mcp_endpoint;
    if !set.enabled {
        return Router::new();
    }
    let sessions: Arc<dyn ClientSessions> = match store {
        Some(store) if store.is_shared() => Arc::new(store.clone()),
        Some(store) => Arc::new(CachedClientSessions::new(Arc::new(store.clone()))),
        None => Arc::new(Memory::default()),
    };
    let options = EndpointOptions {
        max_sessions: set.max_sessions,
        session_idle: set.session_idle(),
        max_body_bytes: settings.rest.max_body_bytes,
        protected: protected(settings),
        http_sse: set.http_sse,
        base_path: set.base_path(),
        stopping,
        ..EndpointOptions::new(sessions)
    };
    caribou_mcp_endpoint::router(runtime.clone(), options)
}

/// What clients that are refused for want of a token are told besides.
pub(crate) fn challenge_more(settings: &Settings) -> Option<ChallengeMore> {
    let protected = protected(settings).filter(|_| settings.mcp_endpoint.enabled)?;
    Some(Arc::new(move |headers, path| challenge(&protected, headers, path)))
}

fn protected(settings: &Settings) -> Option<Protected> {
    let issuer = settings.auth.jwt.issuer.clone().filter(|_| settings.auth.mode == AuthMode::Jwt)?;
    let scheme = if settings.tls.cert_file.is_some() { "https" } else { "http" };
    let McpEndpoint { public_url, http_sse, .. } = settings.mcp_endpoint.clone();
    Some(Protected { issuer, public_url, scheme, http_sse })
}
