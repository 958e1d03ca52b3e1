//! List the tools of all servers.

use std::sync::Arc;

use caribou_core::ids::ServerName;
use serde_json::value::RawValue;

/// One tool as it is shown.
#[derive(Clone, Debug)]
pub struct ListedTool {
    /// The name to call it by.
    pub name: Arc<str>,
    /// The server that returned it.
    pub server: ServerName,
    /// The server's own name for it.
    pub raw_name: Arc<str>,
    /// The server's `Tool` object, byte for byte unless `repaired` says otherwise.
    pub tool: Arc<RawValue>,
    /// Members of the `Tool` that were malformed and mended, such as `inputSchema.required`; usually empty.
    pub repaired: Arc<[String]>,
}

/// All tools, in document order of the servers, then server order.
#[derive(Clone, Debug, Default)]
pub struct ListedTools {
    /// The tools.
    pub tools: Vec<ListedTool>,
    /// Servers not shown yet because they are still being discovered.
    pub pending: Vec<ServerName>,
    /// Servers that failed, with the reason.
    pub failed: Vec<(ServerName, String)>,
}
