//! Promote deferred tools: those that a user's text speaks of, and those that a search found (contract 9.3, 9.5).
//!
//! Logs how many, at debug only: names and keywords of tools would tell what a user spoke of.

use std::collections::HashSet;
use std::sync::Arc;

use caribou_core::failure::Code;
use caribou_core::ids::{CatalogHash, Scope};
use caribou_core::tool::{Deferral, Promotion, matching};
use caribou_ports::store::StoreError;

use crate::Runtime;
use crate::audit::Entry;
use crate::caller::Caller;
use crate::catalog::Offer;
use crate::error::VerbError;

/// What a text promoted.
#[derive(Clone, Debug, Default)]
pub struct PromotedTools {
    /// The visible names, best first; empty when the text speaks of no deferred tool.
    pub names: Vec<Arc<str>>,
    /// The catalogue they were promoted in; `None` = nothing is deferred.
    pub catalog: Option<CatalogHash>,
}

impl Runtime {
    /// Promotes for `scope` the deferred tools whose routing keywords occur in `text`: the original text of the
    /// user's latest message. To be asked for before each call of a model, before its tools are listed. Tools that the
    /// caller may not use are passed over.
    ///
    /// # Errors
    /// There is no catalogue, or the promotion cannot be kept.
    pub async fn promote_tools(&self, caller: &Caller, scope: &Scope, text: &str) -> Result<PromotedTools, VerbError> {
        let sight = self.sight(&scope.user).await;
        let snapshot = sight.list().await?;
        let offer = sight.offer(&snapshot);
        let Some(deferral) = &offer.deferral else { return Ok(PromotedTools::default()) };
        let matching = matching(text, &offer.hints(caller), self.options.auto_promote_top_k);
        let names: Vec<Arc<str>> = matching.into_iter().map(Arc::from).collect();
        self.promote(caller, scope, deferral, names.clone(), "promote_tools").await?;
        Ok(PromotedTools { names, catalog: Some(deferral.catalog().clone()) })
    }

    /// Adds `names` to what `scope` has promoted; `action` of the caller led to it. Each is put on record, and nothing
    /// of what they were found by.
    pub(super) async fn promote(
        &self,
        caller: &Caller,
        scope: &Scope,
        deferral: &Deferral,
        names: Vec<Arc<str>>,
        action: &'static str,
    ) -> Result<(), VerbError> {
        if names.is_empty() {
            return Ok(());
        }
        tracing::debug!(session = %scope, action, count = names.len(), "promoted deferred tools");
        let promotion = Promotion { catalog: deferral.catalog().clone(), names: names.clone() };
        self.promotions.promote(scope.clone(), promotion).await.map_err(not_stored)?;
        let snapshot = self.sight(&scope.user).await.snapshot();
        for name in names {
            let mut entry = Entry::new(action, caller).within(scope).of_tool(&name);
            entry.server = snapshot.target(&name).map(|target| target.binding.server.name.clone());
            self.audit.record(entry);
        }
        Ok(())
    }

    /// The names that are deferred for `scope`: all but those it promoted in this very catalogue.
    pub(super) async fn deferred(&self, offer: &Offer, scope: &Scope) -> Result<Vec<Arc<str>>, VerbError> {
        let Some(deferral) = &offer.deferral else { return Ok(Vec::new()) };
        let promoted = self.promoted(deferral, scope).await?;
        Ok(deferral.names().iter().filter(|name| !promoted.contains(*name)).cloned().collect())
    }

    /// Whether the model of `scope` has not fetched the tool `name`, which it must before it calls it.
    async fn is_unfetched(&self, offer: &Offer, name: &str, scope: &Scope) -> Result<bool, VerbError> {
        let Some(deferral) = offer.deferral.as_ref().filter(|deferral| deferral.contains(name)) else {
            return Ok(false);
        };
        Ok(!self.promoted(deferral, scope).await?.contains(name))
    }

    /// Refuses a call of a tool that is deferred for `scope`: models make up arguments of schemas they have not seen.
    pub(super) async fn demand_fetched(&self, name: &str, scope: &Scope) -> Result<(), VerbError> {
        if !self.options.tool_search {
            return Ok(());
        }
        let sight = self.sight(&scope.user).await;
        if !self.is_unfetched(sight.offer(&sight.snapshot()), name, scope).await? {
            return Ok(());
        }
        // Promotions were made in the whole catalogue, and after a start only a part of it may be known.
        let snapshot = sight.list().await?;
        if !self.is_unfetched(sight.offer(&snapshot), name, scope).await? {
            return Ok(());
        }
        let detail = format!("tool `{name}` is deferred; fetch it with `tool_search` first (query `select:{name}`)");
        Err(VerbError::new(Code::Denied, detail))
    }

    async fn promoted(&self, deferral: &Deferral, scope: &Scope) -> Result<HashSet<Arc<str>>, VerbError> {
        let promotion = self.promotions.promoted(scope.clone()).await.map_err(not_stored)?;
        let here = promotion.filter(|promotion| promotion.catalog == *deferral.catalog());
        Ok(here.into_iter().flat_map(|promotion| promotion.names).collect())
    }
}

/// Promoting twice changes nothing, so that whatever became of a request it may be made again.
fn not_stored(error: StoreError) -> VerbError {
    VerbError::new(Code::Unavailable, format!("promotions of tools cannot be read or kept: {error}"))
}
