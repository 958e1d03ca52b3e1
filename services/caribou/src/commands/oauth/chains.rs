//! What the commands share: the answer of the list, and the arguments that name one server.

use anyhow::bail;
use caribou_core::instant::rfc3339_seconds;
use clap::Args;
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;

use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::usage::Usage;

/// One server.
#[derive(Debug, Args)]
pub(in crate::commands) struct OneServer {
    /// The server, as `oauth list` shows it
    pub(super) name: String,
    #[command(flatten)]
    pub(super) target: Target,
}

impl OneServer {
    /// The path of its chain.
    pub(super) fn path(&self) -> String {
        format!("/api/mcp/oauth/{}", byte_serialize(self.name.as_bytes()).collect::<String>())
    }
}

/// The answer of `GET /api/mcp/oauth`.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) chains: Vec<Chain>,
}

#[derive(Deserialize)]
pub(super) struct Chain {
    pub(super) server: String,
    pub(super) state: String,
    pub(super) generation: u64,
    access_expires_in_ms: Option<u64>,
    pub(super) rotates: bool,
    pub(super) failures: u32,
    pub(super) last_error: Option<String>,
    next_try_ms: Option<u64>,
    pub(super) holder: Option<String>,
    changed_at_ms: i64,
}

impl Chain {
    pub(super) fn expires(&self) -> String {
        self.access_expires_in_ms.map_or_else(|| "-".to_owned(), |ms| format!("in {} s", ms / 1_000))
    }

    pub(super) fn next_try(&self) -> String {
        self.next_try_ms.map_or_else(|| "now".to_owned(), |ms| format!("in {} s", ms.div_ceil(1_000)))
    }

    pub(super) fn changed(&self) -> String {
        rfc3339_seconds(self.changed_at_ms)
    }
}

/// Refuses to ask a replica that lives for one command.
pub(super) fn demand_replica(target: &Target) -> anyhow::Result<()> {
    if target.server.is_none() {
        bail!(Usage("name the replica whose token chains are meant with --server or CARIBOU_SERVER"));
    }
    Ok(())
}

/// The list as JSON text.
pub(super) async fn listed(target: &Target) -> anyhow::Result<String> {
    demand_replica(target)?;
    let answer = Gateway::once(target, async |gateway| gateway.get("/api/mcp/oauth").await).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
