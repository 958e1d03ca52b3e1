//! What models are offered of a catalogue: what guardrails leave, and which of it is deferred (contract 9.3).
//!
//! Made once for each snapshot, since it hashes every schema; the same for all threads. What a thread has promoted is
//! laid over it by the verbs.

use std::sync::Arc;

use caribou_core::tool::{Deferral, Hint, hints, hints_section};

use crate::api::list_tools::ListedTool;
use crate::caller::Caller;
use crate::options::Options;

/// The tools that may be called, and how they are shown.
pub(crate) struct Offer {
    pub(crate) tools: Vec<ListedTool>,
    /// Names that guardrails keep from everybody.
    pub(crate) denied: Vec<Arc<str>>,
    /// `None` = nothing is deferred and there is no `tool_search`.
    pub(crate) deferral: Option<Deferral>,
}

impl Offer {
    pub(crate) fn of(listed: &[ListedTool], options: &Options) -> Self {
        let (tools, denied): (Vec<_>, Vec<_>) =
            listed.iter().cloned().partition(|tool| options.guardrails.judge(&tool.name).is_ok());
        let deferred = tools.iter().filter(|_| options.tool_search).map(|tool| (&tool.name, &*tool.tool));
        let deferral = Deferral::of(deferred);
        Self { denied: denied.into_iter().map(|tool| tool.name).collect(), tools, deferral }
    }

    /// The hints about tools that the caller may use, best first.
    pub(crate) fn hints(&self, caller: &Caller) -> Vec<Hint<'_>> {
        let usable = self.tools.iter().filter(|tool| caller.may_use(&tool.name));
        hints(usable.map(|tool| (&*tool.name, &*tool.routing)))
    }

    /// What a system prompt says of the tools: the deferred names, then the hints (contract 9.2). The same for every
    /// thread of a caller, so that a promotion does not spoil the prompt caches of models.
    pub(crate) fn prompt_section(&self, caller: &Caller) -> String {
        let deferral = self.deferral.as_ref();
        let is_deferred = |name: &str| deferral.is_some_and(|deferral| deferral.contains(name));
        let names = deferral.map(|deferral| deferral.section(|name| caller.may_use(name))).unwrap_or_default();
        let sections = [names, hints_section(&self.hints(caller), is_deferred)];
        sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}
