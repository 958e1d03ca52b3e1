//! List the tools of all servers.

use std::sync::Arc;

use caribou_core::config::Routing;
use caribou_core::ids::{CatalogHash, Scope, ServerName};
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
    /// Whether and for what it should be preferred (contract 1.3).
    pub routing: Arc<Routing>,
}

/// All tools, in document order of the servers, then server order.
#[derive(Clone, Debug, Default)]
pub struct ListedTools {
    /// The tools that may be called.
    pub tools: Vec<ListedTool>,
    /// Names of tools that guardrails keep from everybody.
    pub denied: Vec<Arc<str>>,
    /// Names of tools whose schemas are hidden from the model of this thread until it fetches them, sorted.
    pub deferred: Vec<Arc<str>>,
    /// Names the catalogue that `deferred` and promotions speak of; `None` = nothing is deferred, and there is no
    /// `tool_search`.
    pub catalog: Option<CatalogHash>,
    /// Servers not shown yet because they are still being discovered.
    pub pending: Vec<ServerName>,
    /// Servers that failed, with the reason.
    pub failed: Vec<(ServerName, String)>,
}

impl Runtime {
    /// Lists the tools of all enabled servers. Servers never seen before are waited for, but only a bounded while;
    /// one that fails is absent and named in `failed` (contract 5.1). What `scope` has promoted is not deferred.
    ///
    /// # Errors
    /// Every enabled server failed; the next call tries again. Or promotions cannot be read.
    pub async fn list_tools(&self, scope: &Scope) -> Result<ListedTools, VerbError> {
        let snapshot = self.catalog.list().await?;
        let offer = self.catalog.offer(&snapshot);
        Ok(ListedTools {
            tools: offer.tools.clone(),
            denied: offer.denied.clone(),
            deferred: self.deferred(offer, scope).await?,
            catalog: offer.deferral.as_ref().map(|deferral| deferral.catalog().clone()),
            ..snapshot.listed.clone()
        })
    }

    /// Asks `server` for its list again, or every enabled server: for those that never announce a change.
    ///
    /// # Errors
    /// There is no such server, or it is disabled.
    pub async fn refresh_tools(&self, server: Option<&ServerName>) -> Result<(), VerbError> {
        self.catalog.refresh(server).await
    }
}
