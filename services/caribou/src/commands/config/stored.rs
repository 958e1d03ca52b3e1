//! The stored servers as the API shows them: read once, with the tag under which they may be changed.

use anyhow::Context as _;
use axum::body::Bytes;
use axum::http::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::commands::arguments::Target;
use crate::commands::gateway::Gateway;
use crate::commands::output;

/// Where the stored servers are read and replaced.
pub(super) const PATH: &str = "/api/mcp/config";

/// The body of every answer.
#[derive(Deserialize)]
struct Answer {
    mcp_servers: Map<String, Value>,
}

/// What is stored, masked.
pub(super) struct Stored {
    /// Servers by name.
    pub(super) servers: Map<String, Value>,
    /// The whole answer.
    pub(super) text: Bytes,
    /// Names what is stored; `None` while nothing is.
    pub(super) tag: Option<String>,
}

impl Stored {
    /// Reads it.
    ///
    /// # Errors
    /// When the replica cannot be reached, or what is stored is malformed.
    pub(super) async fn read(gateway: &Gateway) -> anyhow::Result<Self> {
        let (text, tag) = gateway.get_tagged(PATH).await?;
        Ok(Self { servers: servers(&text)?, text, tag })
    }

    /// One server.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn server(&self, name: &str) -> anyhow::Result<&Map<String, Value>> {
        let server = self.servers.get(name).and_then(Value::as_object);
        server.with_context(|| format!("MCP server '{name}' not found"))
    }
}

fn servers(text: &[u8]) -> anyhow::Result<Map<String, Value>> {
    let answer: Answer = serde_json::from_slice(text).context("the answer is not from Caribou")?;
    Ok(answer.mcp_servers)
}

/// Makes one change and shows what came of it.
///
/// # Errors
/// When it is refused, or the replica cannot be reached.
pub(super) async fn change(
    target: &Target,
    make: impl AsyncFnOnce(&Gateway) -> anyhow::Result<Bytes>,
    done: &str,
) -> anyhow::Result<()> {
    let answer = Gateway::once(target, make).await?;
    if target.json {
        output::line(String::from_utf8_lossy(&answer))?;
    } else {
        output::line(output::printable(done))?;
    }
    Ok(())
}

/// Replaces, adds or switches: one request with a body, under the tag that was read before if one was.
///
/// # Errors
/// When it is refused, or the replica cannot be reached.
pub(super) async fn send(
    gateway: &Gateway,
    method: Method,
    path: &str,
    body: &Value,
    tag: Option<&str>,
) -> anyhow::Result<Bytes> {
    output::wait("changing the configuration", gateway.change(method, path, body.to_string(), tag)).await
}
