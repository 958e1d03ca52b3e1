//! The legacy era: `initialize`, then `notifications/initialized` (mcp.md §3.3).
//!
//! Owns what is offered and what is accepted. We offer the newest revision and accept any of the four; a server that
//! refuses ours by naming others is asked once more, with the newest of those. `initialize` is never cancelled.

use std::sync::Arc;

use caribou_core::config::ServerConfig;
use caribou_core::era::{Era, LATEST_LEGACY_VERSION, LEGACY_VERSIONS};
use caribou_ports::mcp::{CallError, OpenError};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::Greeting;
use crate::channel::{Channel, RequestExtras};
use crate::error;
use crate::wire::versions;

/// The method that opens a legacy session.
pub(crate) const INITIALIZE: &str = "initialize";

/// The notice that ends the handshake.
pub(crate) const INITIALIZED: &str = "notifications/initialized";

/// Who we say we are.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct ClientInfo {
    name: &'static str,
    version: &'static str,
}

/// Who we say we are.
pub(crate) fn client_info() -> ClientInfo {
    ClientInfo { name: "caribou", version: env!("CARGO_PKG_VERSION") }
}

/// The parameters of `initialize`, offering `version`.
///
/// # Errors
/// Never in practice: strings and JSON objects always serialise.
pub(crate) fn params(server: &ServerConfig, version: &str) -> Result<Box<RawValue>, CallError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        protocol_version: &'a str,
        capabilities: Map<String, Value>,
        client_info: ClientInfo,
    }
    to_raw_value(&Params { protocol_version: version, capabilities: server.profile(), client_info: client_info() })
        .map_err(|error| CallError::NotSent(format!("`initialize` cannot be composed: {error}")))
}

/// Reads an `InitializeResult`.
///
/// # Errors
/// It is none, or names a revision that we do not speak.
pub(crate) fn greeting(server: &str, result: &RawValue) -> Result<Greeting, OpenError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeResult {
        protocol_version: String,
        #[serde(default)]
        capabilities: Option<Box<RawValue>>,
        #[serde(default)]
        server_info: Option<Box<RawValue>>,
    }
    let Ok(read) = serde_json::from_str::<InitializeResult>(result.get()) else {
        return Err(OpenError::Protocol(format!(
            "server `{server}` answered `initialize` with something that holds no `protocolVersion`"
        )));
    };
    if !LEGACY_VERSIONS.contains(&read.protocol_version.as_str()) {
        return Err(OpenError::Protocol(format!(
            "server `{server}` wants to speak revision {:.40?}; we speak {}",
            read.protocol_version,
            LEGACY_VERSIONS.join(", ")
        )));
    }
    Ok(Greeting {
        era: Era::Legacy,
        version: read.protocol_version,
        server_info: read.server_info.map(Arc::from),
        capabilities: read.capabilities.map(Arc::from),
    })
}

/// Why a handshake failed.
pub(crate) enum ShakeError {
    /// The server answered `initialize` with an error, or not at all.
    Refused(CallError),
    /// It answered with something that we cannot go on with.
    Unusable(OpenError),
}

impl ShakeError {
    /// As the error of a bring-up.
    pub(crate) fn into_open_error(self, server: &str) -> OpenError {
        match self {
            Self::Refused(refusal) => error::opening(server, INITIALIZE, refusal),
            Self::Unusable(error) => error,
        }
    }
}

/// Shakes hands, offering `version` first, `None` for our newest.
///
/// # Errors
/// The server refused, cannot be understood, or went away.
pub(crate) async fn shake_hands(
    channel: &dyn Channel,
    server: &ServerConfig,
    version: Option<&'static str>,
) -> Result<Greeting, ShakeError> {
    let offered = version.unwrap_or(LATEST_LEGACY_VERSION);
    let result = match offer(channel, server, offered).await {
        Err(refusal) => match versions::to_offer_after(offered, &refusal) {
            Some(other) if !versions::tells_modern(&refusal) => offer(channel, server, other).await,
            _ => Err(refusal),
        },
        answered => answered,
    }
    .map_err(ShakeError::Refused)?;
    let greeting = greeting(server.name.as_str(), &result).map_err(ShakeError::Unusable)?;
    channel.notify(INITIALIZED, None).await.map_err(ShakeError::Refused)?;
    Ok(greeting)
}

async fn offer(channel: &dyn Channel, server: &ServerConfig, version: &str) -> Result<Box<RawValue>, CallError> {
    channel.request(INITIALIZE, Some(params(server, version)?), RequestExtras::opening()).await
}
