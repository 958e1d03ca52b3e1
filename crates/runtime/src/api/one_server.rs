//! One server by itself: what it offers, and which of its tools a name of its own means.
//!
//! For ways in that show the servers one at a time, under their own names. What a caller may do there is judged by the
//! visible names all the same.

use std::sync::Arc;

use caribou_core::era::Era;
use caribou_core::failure::Code;
use caribou_core::ids::{Scope, ServerName};
use serde_json::value::RawValue;

use super::list_tools::ListedTool;
use crate::Runtime;
use crate::caller::Caller;
use crate::catalog::{Entry, EntryState, Snapshot};
use crate::error::VerbError;

/// What one server says of itself.
#[derive(Clone, Debug, Default)]
pub struct ServerOffer {
    /// The era that is spoken with it; `None` = it was not reached.
    pub era: Option<Era>,
    /// Its capabilities, if it gave any.
    pub capabilities: Option<Arc<RawValue>>,
    /// Its `Implementation` object, if it gave one.
    pub server_info: Option<Arc<RawValue>>,
}

impl Runtime {
    /// What `server` offers, waited for while it is discovered. One that failed offers nothing yet.
    ///
    /// # Errors
    /// `not_found`: there is no such server for this user, or it is disabled.
    pub async fn one_server(&self, scope: &Scope, server: &ServerName) -> Result<ServerOffer, VerbError> {
        let snapshot = self.sight(&scope.user).await.discovered(server).await;
        let facts = enabled(&snapshot, server)?.facts.as_ref();
        Ok(facts.map_or_else(ServerOffer::default, |facts| ServerOffer {
            era: Some(facts.era),
            capabilities: facts.capabilities.clone(),
            server_info: facts.server_info.clone(),
        }))
    }

    /// The tool that `server` calls `raw_name`, as it is listed.
    ///
    /// # Errors
    /// `not_found`: there is no such server or tool, or it is hidden by another one's visible name. What the discovery
    /// of the server failed with. `denied`: the caller may not use it.
    pub async fn tool_of(
        &self,
        caller: &Caller,
        scope: &Scope,
        server: &ServerName,
        raw_name: &str,
    ) -> Result<ListedTool, VerbError> {
        let snapshot = self.sight(&scope.user).await.discovered(server).await;
        let entry = enabled(&snapshot, server)?;
        let mut tools = snapshot.listed.tools.iter();
        let found = tools.find(|tool| tool.server == *server && *tool.raw_name == *raw_name);
        match (found, &entry.state) {
            (Some(tool), _) => {
                caller.principal.uses(&tool.name)?;
                Ok(tool.clone())
            }
            (None, EntryState::Failed(error)) => Err(error.clone()),
            (None, _) => {
                Err(VerbError::new(Code::NotFound, format!("server `{server}` has no tool `{raw_name:.200}`")))
            }
        }
    }

    /// The tools of `server` that the caller may use, in its order, waited for while it is discovered.
    ///
    /// # Errors
    /// `not_found`: there is no such server for this user, or it is disabled. What its discovery failed with.
    pub async fn tools_of(
        &self,
        caller: &Caller,
        scope: &Scope,
        server: &ServerName,
    ) -> Result<Vec<ListedTool>, VerbError> {
        let snapshot = self.sight(&scope.user).await.discovered(server).await;
        if let EntryState::Failed(error) = &enabled(&snapshot, server)?.state {
            return Err(error.clone());
        }
        let is_shown = |tool: &&ListedTool| {
            let is_let_through = self.options.guardrails.judge(&tool.name).is_ok();
            tool.server == *server && is_let_through && caller.may_use(&tool.name)
        };
        Ok(snapshot.listed.tools.iter().filter(is_shown).cloned().collect())
    }

    /// The tool of a visible name, if it is known already.
    pub fn known_tool(&self, visible_name: &str) -> Option<ListedTool> {
        let snapshot = self.catalog.snapshot();
        snapshot.listed.tools.iter().find(|tool| *tool.name == *visible_name).cloned()
    }
}

/// A server that takes part.
pub(super) fn enabled<'s>(snapshot: &'s Snapshot, server: &ServerName) -> Result<&'s Entry, VerbError> {
    let mut entries = snapshot.entries.iter();
    entries
        .find(|entry| entry.name == *server && entry.enabled().is_some())
        .ok_or_else(|| VerbError::new(Code::NotFound, format!("there is no enabled server `{server:.200}`")))
}
