//! List the tools of all servers.

use std::sync::Arc;

use caribou_core::ids::ServerName;
use serde_json::value::RawValue;

use crate::Runtime;
use crate::error::VerbError;

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

impl Runtime {
    /// Lists the tools of all enabled servers. Servers never seen before are waited for, but only a bounded while;
    /// one that fails is absent and named in `failed` (contract 5.1).
    ///
    /// # Errors
    /// Every enabled server failed; the next call tries again.
    pub async fn list_tools(&self) -> Result<ListedTools, VerbError> {
        self.catalog.list().await
    }

    /// Asks `server` for its list again, or every enabled server: for those that never announce a change.
    ///
    /// # Errors
    /// There is no such server, or it is disabled.
    pub async fn refresh_tools(&self, server: Option<&ServerName>) -> Result<(), VerbError> {
        self.catalog.refresh(server).await
    }
}
