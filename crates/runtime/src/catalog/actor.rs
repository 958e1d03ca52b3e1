//! Runs discoveries, one at a time for each server, and publishes what they find.

use std::collections::HashMap;
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::ServerConfig;
use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use caribou_core::task::{MissingTool, exposure};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::dirty::DirtyLists;
use super::discover::{Discovery, discover};
use super::snapshot::{Entry, EntryState, Published, Snapshot};
use crate::config::{Binding, InForce};
use crate::error::VerbError;
use crate::interception::{Chain, Interception};
use crate::session::Router;
use crate::survived::survived;

/// What the catalogue works with.
#[derive(Clone)]
pub(crate) struct CatalogActor {
    pub(crate) in_force: InForce,
    pub(crate) router: Router,
    pub(crate) interception: Interception,
    pub(crate) dirty: Arc<DirtyLists>,
    pub(crate) published: Published,
    /// What a tool of a toolset costs that its server does not have (contract 6.11).
    pub(crate) missing_tool: MissingTool,
    /// Bound of a discovery whose server has none.
    pub(crate) at_most: Duration,
}

pub(crate) enum CatalogMessage {
    /// Answers when what is known of the server is as fresh as it can be: at once when nothing is to be done.
    Want { server: ServerName, settled: oneshot::Sender<()> },
    /// A discovery ended.
    Discovered { binding: Binding, found: Box<Found> },
    /// The configuration changed: forget what it superseded. Answers once the new one is published.
    Supersede { done: oneshot::Sender<()> },
}

/// What a discovery found, and what stands around the calls of its server.
type Found = Result<(Discovery, Arc<Chain>), VerbError>;

pub(crate) struct CatalogState {
    entries: Vec<Entry>,
    /// Who waits for each discovery now running.
    running: HashMap<ServerName, Vec<oneshot::Sender<()>>>,
}

impl Actor for CatalogActor {
    type Msg = CatalogMessage;
    type State = CatalogState;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        let entries: Vec<Entry> = self.in_force.get().list.iter().map(Entry::new).collect();
        self.publish(&entries);
        Ok(CatalogState { entries, running: HashMap::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            CatalogMessage::Want { server, settled } => self.want(&myself, state, &server, settled),
            CatalogMessage::Discovered { binding, found } => self.discovered(state, &binding, *found),
            CatalogMessage::Supersede { done } => {
                self.supersede(&myself, state);
                let _ = done.send(());
            }
        }
        Ok(())
    }
}

impl CatalogActor {
    fn want(
        &self,
        myself: &ActorRef<CatalogMessage>,
        state: &mut CatalogState,
        server: &ServerName,
        settled: oneshot::Sender<()>,
    ) {
        if let Some(waiting) = state.running.get_mut(server) {
            return waiting.push(settled);
        }
        let Some(entry) = state.entries.iter_mut().find(|entry| entry.name == *server) else { return };
        let fresh = matches!(entry.state, EntryState::Ready) && !self.dirty.is_dirty(server);
        let Some(binding) = entry.binding().filter(|_| !fresh) else {
            let _ = settled.send(());
            return;
        };
        let known = entry.chain.clone();
        state.running.insert(server.clone(), vec![settled]);
        // One that failed counts as failed until it succeeds, so that no listing waits for it.
        if matches!(entry.state, EntryState::Unknown) {
            entry.state = EntryState::Starting;
            entry.since = Instant::now();
            self.publish(&state.entries);
        }
        self.begin(myself, binding, known);
    }

    /// `known` is the chain that was made when the server was first discovered as it is configured now.
    fn begin(&self, myself: &ActorRef<CatalogMessage>, binding: Binding, known: Option<Arc<Chain>>) {
        let changed = self.dirty.take(&binding.server.name);
        let (router, at_most, to) = (self.router.clone(), self.at_most, myself.clone());
        let interception = self.interception.clone();
        tokio::spawn(async move {
            let found = survived(async {
                let chain = known.map_or_else(|| interception.chain(&binding.server.name), Ok)?;
                Ok((discover(&router, &binding, changed, at_most).await?, chain))
            });
            let found = found.await;
            let found = Box::new(found.unwrap_or_else(|| Err(VerbError::fault())));
            let _ = to.cast(CatalogMessage::Discovered { binding, found });
        });
    }

    fn discovered(&self, state: &mut CatalogState, binding: &Binding, found: Found) {
        // What was found under a configuration since changed says nothing about the server now in force.
        let Some(entry) = state.entries.iter_mut().find(|entry| entry.is_of(binding)) else { return };
        let before = discriminant(&entry.state);
        match found {
            Ok((discovery, _)) if let Some(lacking) = exposure::missing(&binding.server, &discovery.tools) => {
                let error = lacks(&binding.server, lacking);
                tracing::error!(server = %entry.name, "{}", error.detail);
                entry.lacks_task_tool = true;
                entry.state = EntryState::Failed(error);
                entry.tools = Arc::default();
            }
            Ok((discovery, chain)) => {
                tracing::info!(server = %entry.name, tools = discovery.tools.tools.len(), "discovered");
                entry.state = EntryState::Ready;
                entry.lacks_task_tool = false;
                entry.tools = Arc::new(exposure::shown(&binding.server, discovery.tools));
                entry.facts = Some(discovery.facts);
                entry.chain = Some(chain);
            }
            Err(error) => {
                tracing::warn!(server = %entry.name, code = %error.code, "skipping MCP server: {}", error.detail);
                entry.state = EntryState::Failed(error);
                entry.tools = Arc::default();
            }
        }
        // A server that fails again has been failing since the first time.
        if discriminant(&entry.state) != before {
            entry.since = Instant::now();
        }
        self.publish(&state.entries);
        for settled in state.running.remove(&binding.server.name).into_iter().flatten() {
            let _ = settled.send(());
        }
    }

    /// Takes the configuration in force over: what is known of an untouched server stays, down to its tool objects.
    fn supersede(&self, myself: &ActorRef<CatalogMessage>, state: &mut CatalogState) {
        let mut known: HashMap<ServerName, Entry> =
            state.entries.drain(..).map(|entry| (entry.name.clone(), entry)).collect();
        for configured in &self.in_force.get().list {
            let binding = configured.binding();
            let before = known.remove(&configured.entry.name);
            let new = Entry::succeeding(before.as_ref(), configured);
            let kept = before.filter(|entry| binding.as_ref().is_some_and(|binding| entry.is_of(binding)));
            if let (None, Some(binding)) = (&kept, binding)
                && state.running.contains_key(&configured.entry.name)
            {
                // Its waiters wait on, for the discovery of what is in force now.
                self.begin(myself, binding, None);
            }
            state.entries.push(kept.unwrap_or(new));
        }
        let entries = &state.entries;
        self.dirty.forget(known.keys());
        // Dropping the waiters of a server that is gone lets their callers go on.
        state.running.retain(|name, _| entries.iter().any(|entry| entry.name == *name && entry.enabled().is_some()));
        self.publish(entries);
    }

    /// The entries, each of them failed while a task server of the operator's lacks a tool of its toolsets, unless
    /// that is to cost only the server itself. One that is discovered stays so, and is shown again afterwards.
    fn shown(&self, entries: &[Entry]) -> Vec<Entry> {
        let is_lacking =
            |entry: &&Entry| entry.lacks_task_tool && entry.config.as_ref().is_some_and(|c| !c.is_personal());
        let lacking = entries.iter().filter(|_| self.missing_tool == MissingTool::FailAll).find(is_lacking);
        let Some(EntryState::Failed(error)) = lacking.map(|entry| &entry.state) else { return entries.to_vec() };
        let failed = |entry: &Entry| match entry.state {
            EntryState::Ready => {
                Entry { state: EntryState::Failed(error.clone()), tools: Arc::default(), ..entry.clone() }
            }
            _ => entry.clone(),
        };
        entries.iter().map(failed).collect()
    }

    fn publish(&self, entries: &[Entry]) {
        let snapshot = Snapshot::of(self.shown(entries));
        let before = self.published.get();
        for warning in snapshot.warnings.iter().filter(|warning| !before.warnings.contains(warning)) {
            tracing::warn!("{warning}");
        }
        self.published.set(snapshot);
    }
}

/// The server was discovered and is not what its toolsets say: that is for the operator to mend.
fn lacks(server: &ServerConfig, tool: &str) -> VerbError {
    let detail = format!(
        "MCP task configuration error: server `{}` has no tool `{tool}`, which its task_toolsets name; correct them",
        server.shown_name()
    );
    VerbError::new(Code::Unavailable, detail)
}
