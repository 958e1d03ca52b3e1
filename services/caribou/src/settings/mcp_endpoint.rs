//! Settings of Caribou as one MCP server (mcp.md §3).

use std::time::Duration;

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// A month: a client that comes back later opens a session anew.
const LONGEST_IDLE_SECONDS: f64 = 2_678_400.0;

/// Caribou as one MCP server, at `/mcp` for all servers and at `/mcp/NAME` for one, on the address of REST.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct McpEndpoint {
    /// Whether it is served.
    #[garde(skip)]
    pub enabled: bool,
    /// The address that clients reach this deployment by, such as `https://caribou.example`, as it stands in what
    /// clients without a token are told with `auth.mode: jwt`; its path stands in front of the addresses of HTTP+SSE. When
    /// absent: the host that the client names.
    #[garde(inner(custom(address)))]
    pub public_url: Option<String>,
    /// Sessions that clients of the revisions before 2026 may have open, over all replicas. More are refused.
    #[garde(range(min = 1, max = 10_000_000))]
    pub max_sessions: u32,
    /// A session that its client has not used for this many seconds is gone.
    #[garde(range(min = 1.0, max = LONGEST_IDLE_SECONDS))]
    pub session_idle_seconds: f64,
    /// Whether clients of HTTP+SSE, the transport of 2024-11-05, are served too: at `/sse` all servers, at `/sse/NAME` one.
    #[garde(skip)]
    pub http_sse: bool,
}

impl Default for McpEndpoint {
    fn default() -> Self {
        Self { enabled: true, public_url: None, max_sessions: 100_000, session_idle_seconds: 86_400.0, http_sse: false }
    }
}

impl McpEndpoint {
    /// How long a session may be unused.
    pub fn session_idle(&self) -> Duration {
        Duration::from_secs_f64(self.session_idle_seconds)
    }

    /// What stands before our paths where clients see them, without a slash at its end.
    pub fn base_path(&self) -> String {
        let url = self.public_url.as_deref().and_then(|url| Url::parse(url).ok());
        url.map_or_else(String::new, |url| url.path().trim_end_matches('/').to_owned())
    }
}

fn address(text: &str, _: &()) -> garde::Result {
    let is_plain = |url: &Url| {
        let is_bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare && url.password().is_none()
    };
    match Url::parse(text) {
        Ok(url) if is_plain(&url) => Ok(()),
        _ => Err(garde::Error::new("must be an address such as `https://caribou.example`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_told_to_clients() {
        for right in ["https://caribou.example", "http://127.0.0.1:8750", "https://a.example/below/"] {
            assert!(address(right, &()).is_ok(), "{right}");
        }
        for wrong in ["caribou.example", "ftp://a", "https://ann:hunter2@a", "https://a?x=1", "https://a#x"] {
            assert!(address(wrong, &()).is_err(), "{wrong}");
        }
        for (url, path) in
            [(None, ""), (Some("https://a.example"), ""), (Some("https://a.example/below/it/"), "/below/it")]
        {
            let set = McpEndpoint { public_url: url.map(str::to_owned), ..McpEndpoint::default() };
            assert_eq!(set.base_path(), path);
        }
    }
}
