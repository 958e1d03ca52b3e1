//! `tool_search`: find deferred tools and promote what is found (contract 9.4).

use caribou_core::bounds::MAX_QUERY_BYTES;
use caribou_core::failure::Code;
use caribou_core::ids::{CatalogHash, Scope};
use caribou_core::tool::search;

use crate::Runtime;
use crate::api::list_tools::ListedTool;
use crate::caller::Caller;
use crate::error::VerbError;

/// What a search found and promoted.
#[derive(Clone, Debug)]
pub struct FoundTools {
    /// The tools with their whole schemas, best first.
    pub tools: Vec<ListedTool>,
    /// The catalogue they were promoted in.
    pub catalog: CatalogHash,
}

impl Runtime {
    /// Finds deferred tools by `query` and promotes them for `scope`. Tools that guardrails deny,
    /// or that the caller may not use, are never found.
    ///
    /// # Errors
    /// `invalid`: the query is too long. `not_found`: nothing is deferred, so there is no `tool_search`. Or there is
    /// no catalogue, or the promotion cannot be kept.
    pub async fn search_tools(&self, caller: &Caller, scope: &Scope, query: &str) -> Result<FoundTools, VerbError> {
        if query.len() > MAX_QUERY_BYTES {
            return Err(VerbError::new(Code::Invalid, format!("the query is longer than {MAX_QUERY_BYTES} bytes")));
        }
        let sight = self.sight(&scope.user).await;
        let snapshot = sight.list().await?;
        let offer = sight.offer(&snapshot);
        let Some(deferral) = &offer.deferral else {
            let detail = "no tool is deferred, so there is nothing to search: all tools are listed with their schemas";
            return Err(VerbError::new(Code::NotFound, detail));
        };
        let usable: Vec<&ListedTool> = offer.tools.iter().filter(|tool| caller.may_use(&tool.name)).collect();
        let places = search(query, usable.iter().map(|tool| (&*tool.name, &*tool.tool)));
        let tools: Vec<ListedTool> = places.into_iter().map(|at| usable[at].clone()).collect();
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        self.promote(caller, scope, deferral, names, "search_tools").await?;
        Ok(FoundTools { tools, catalog: deferral.catalog().clone() })
    }
}
