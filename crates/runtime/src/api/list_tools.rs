//! List the tools of all servers.

use std::sync::Arc;

use caribou_core::config::{Routing, personal};
use caribou_core::ids::{CatalogHash, Scope, ServerName};
use caribou_core::task::native::Support;
use serde_json::value::RawValue;

use crate::Runtime;
use crate::caller::Caller;
use crate::error::VerbError;

/// What a caller that is no admin reads of why a server failed: the reason may quote what it wrote to stderr.
const ADMINS_SEE_WHY: &str = "it failed; only an admin sees why";

/// One tool as it is shown.
#[derive(Clone, Debug)]
pub struct ListedTool {
    /// The name to call it by.
    pub name: Arc<str>,
    /// The server that returned it.
    pub server: ServerName,
    /// What the user calls the server, if it is the user's own.
    pub connection: Option<Arc<str>>,
    /// The server's own name for it.
    pub raw_name: Arc<str>,
    /// The server's `Tool` object, byte for byte unless `repaired` says otherwise.
    pub tool: Arc<RawValue>,
    /// Members of the `Tool` that were malformed and mended, such as `inputSchema.required`; usually empty.
    pub repaired: Arc<[String]>,
    /// Whether and for what it should be preferred (contract 1.3).
    pub routing: Arc<Routing>,
    /// Whether it is one of Caribou's own, of no server.
    pub is_ours: bool,
    /// Whether a call of it may be a task of the protocol, where tasks are followed.
    pub support: Support,
}

/// All tools, in document order of the servers, then server order; Caribou's own last.
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
    /// Lists the tools of all enabled servers that the caller may use, those that the user of `scope` brought included. Servers never seen before are waited for, but
    /// only a bounded while; one that fails is absent and named in `failed` (contract 5.1). What `scope` has promoted
    /// is not deferred.
    ///
    /// # Errors
    /// Every enabled server failed; the next call tries again. Or promotions cannot be read.
    pub async fn list_tools(&self, caller: &Caller, scope: &Scope) -> Result<ListedTools, VerbError> {
        let sight = self.sight(&scope.user).await;
        let snapshot = sight.list().await?;
        let offer = sight.offer(&snapshot);
        let mut deferred = self.deferred(offer, scope).await?;
        deferred.retain(|name| caller.may_use(name));
        let mut failed = snapshot.listed.failed.clone();
        if caller.principal.administers().is_err() {
            let others = failed.iter_mut().filter(|(server, _)| !personal::is_runtime_name(server));
            others.for_each(|(_, reason)| ADMINS_SEE_WHY.clone_into(reason));
        }
        let mut listed = ListedTools {
            tools: offer.tools.iter().filter(|tool| caller.may_use(&tool.name)).cloned().collect(),
            denied: offer.denied.iter().filter(|name| caller.may_use(name)).cloned().collect(),
            deferred,
            catalog: offer.deferral.as_ref().map(|deferral| deferral.catalog().clone()),
            failed,
            ..snapshot.listed.clone()
        };
        self.add_agent_tools(caller, &snapshot, &mut listed);
        Ok(listed)
    }

    /// Asks `server` for its list again, or every enabled server: for those that never announce a change.
    ///
    /// # Errors
    /// The caller is no admin; or there is no such server, or it is disabled.
    pub async fn refresh_tools(&self, caller: &Caller, server: Option<&ServerName>) -> Result<(), VerbError> {
        caller.principal.administers()?;
        self.catalog.refresh(server).await
    }
}
