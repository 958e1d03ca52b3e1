//! Reads, writes and puts in force: one change after another, each to its end whoever stops waiting for it.

use std::path::PathBuf;
use std::sync::Arc;

use caribou_core::bounds;
use caribou_core::config::{
    self, Document, IfMatch, InterceptorEntry, Problem, ServerEntry, Source, UnsupportedInterceptors,
};
use caribou_core::failure::Code;
use caribou_core::ids::ServerName;
use caribou_core::launch::Allowlist;
use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::config_source::{ConfigSource, ConfigSourceError, ConfigText, Edit, Refused, ResetMark, Variables};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::Map;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::edit::{Change, written};
use super::in_force::{Configured, InForce};
use super::pending::Pending;
use super::reconcile::{reconciled, renewed};
use super::stale::{StaleConfig, Staleness, first_of};
use super::tell::tell;
use crate::api::change_config::ConfigView;
use crate::catalog::Catalog;
use crate::error::VerbError;
use crate::metrics::Metrics;
use crate::oauth::Chains;
use crate::outside::Resets;
use crate::reset::{Feeders, Seen};
use crate::session::{RegistryMessage, Router};
use crate::tasks::Frozen;

/// What the configuration is read from.
#[derive(Clone)]
pub struct Configuration {
    /// The document.
    pub source: Arc<dyn ConfigSource>,
    /// What `$NAME` in it means.
    pub variables: Variables,
    /// The document that was read to start with.
    pub document: Document,
    /// Where it stands, or will; relative paths in it start at its folder.
    pub file: PathBuf,
    /// Which programs a change may start (contract 3.1).
    pub allowlist: Allowlist,
    /// What is done about interceptors that only a Python program can run.
    pub unsupported: UnsupportedInterceptors,
    /// What replicas tell each other of resets and changes; `None` = nobody else is told, and nobody else tells.
    pub resets: Option<Resets>,
}

#[derive(Clone)]
pub(crate) struct ConfigurationActor {
    pub(crate) configuration: Configuration,
    pub(crate) in_force: InForce,
    pub(crate) router: Router,
    pub(crate) catalog: Catalog,
    pub(crate) chains: Chains,
    /// Whether the stored document is in force.
    pub(crate) stale: Staleness,
    /// The task servers of the start; `None` = no tasks are followed here.
    pub(crate) frozen: Option<Frozen>,
    /// Those that are other ones in what is stored.
    pub(crate) pending: Pending,
    /// What is heard of changes of other replicas; `None` = there are none.
    pub(crate) seen: Option<Seen>,
    pub(crate) metrics: Arc<Metrics>,
}

pub(crate) enum ConfigurationMessage {
    /// Look whether the document changed, here or by another replica, and put it in force.
    Refresh { done: oneshot::Sender<()> },
    /// Replace the document and put it in force.
    Change { change: Change, done: oneshot::Sender<Result<ConfigView, VerbError>> },
    /// Show what is stored.
    Read { done: oneshot::Sender<Result<ConfigView, VerbError>> },
    /// Put the state of this number in force again.
    RollBack { revision: i64, by: Arc<str>, condition: IfMatch, done: oneshot::Sender<Result<ConfigView, VerbError>> },
    /// Everything opened or found so far is out of date; `moved` = under this generation, which is stored for all
    /// replicas. Tells whether others that follow the document heard of it by the document.
    Reset { moved: Option<ResetGeneration>, done: oneshot::Sender<bool> },
}

pub(crate) struct ConfigurationState {
    /// What is in force.
    pub(super) document: Document,
    /// The last reset that was heard of.
    reset: Option<ResetMark>,
    watcher: JoinHandle<()>,
    _feeders: Option<Feeders>,
}

impl Actor for ConfigurationActor {
    type Msg = ConfigurationMessage;
    type State = ConfigurationState;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        let source = self.configuration.source.clone();
        tell(&self.configuration.document, &[]);
        let mut feeders = None;
        if let Some(seen) = &self.seen {
            seen.begin().await?;
            feeders = Some(Feeders::start(seen, myself.clone()));
        }
        let watcher = tokio::spawn(async move {
            loop {
                source.changed().await;
                let (done, seen) = oneshot::channel();
                if myself.cast(ConfigurationMessage::Refresh { done }).is_err() {
                    break;
                }
                let _ = seen.await;
            }
        });
        let reset = self.configuration.source.reset_mark();
        let document = self.configuration.document.clone();
        Ok(ConfigurationState { document, reset, watcher, _feeders: feeders })
    }

    async fn post_stop(&self, _: ActorRef<Self::Msg>, state: &mut Self::State) -> Result<(), ActorProcessingErr> {
        state.watcher.abort();
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ConfigurationMessage::Refresh { done } => {
                if self.configuration.source.has_changed() {
                    self.reload(state).await;
                    self.hear_of_resets(state).await;
                }
                self.catch_up(state).await;
                let _ = done.send(());
            }
            ConfigurationMessage::Change { change, done } => {
                let _ = done.send(self.change(state, change).await);
            }
            ConfigurationMessage::Read { done } => {
                let _ = done.send(self.read(state).await);
            }
            ConfigurationMessage::RollBack { revision, by, condition, done } => {
                let _ = done.send(self.roll_back(state, revision, by, condition).await);
            }
            ConfigurationMessage::Reset { moved, done } => {
                let _ = done.send(self.reset(state, moved).await);
            }
        }
        Ok(())
    }
}

impl ConfigurationActor {
    /// Reads what is stored and puts it in force if it can be. Whether it could be read.
    pub(super) async fn reload(&self, state: &mut ConfigurationState) -> bool {
        match self.configuration.source.load().await {
            Ok(Some(text)) => {
                if let Err(problems) = self.apply(state, &text).await {
                    self.stale.set(StaleConfig::unusable(problems));
                }
                return true;
            }
            // A document that vanished is being replaced, or was mislaid: the last good one stays (contract 5.4).
            Ok(None) => self.stale.set(StaleConfig::unreadable("the configuration file is gone")),
            Err(error) => self.stale.set(StaleConfig::unreadable(error.to_string())),
        }
        false
    }

    /// Reads anew what is stored, references included, then supersedes everything, here and where the document is
    /// followed as well (contract 5.7).
    async fn reset(&self, state: &mut ConfigurationState, moved: Option<ResetGeneration>) -> bool {
        if let (Some(seen), Some(generation)) = (&self.seen, moved) {
            // Another feeder may have been faster than this message.
            if !seen.has_applied(&ResetScope::Global, generation) {
                self.reload(state).await;
                self.supersede_all(state).await;
                seen.moved(&[(ResetScope::Global, generation)]);
                seen.confirm();
            }
            return true;
        }
        self.reload(state).await;
        self.supersede_all(state).await;
        let published = self.configuration.source.publish_reset().await;
        state.reset = self.configuration.source.reset_mark();
        published.unwrap_or_else(|error| {
            tracing::warn!("nobody else hears of the reset: {error}");
            false
        })
    }

    /// Somebody else may have published a reset.
    async fn hear_of_resets(&self, state: &mut ConfigurationState) {
        let mark = self.configuration.source.reset_mark();
        if mark.is_some() && mark != state.reset {
            state.reset = mark;
            self.supersede_all(state).await;
        }
    }

    /// Nothing that was opened or found before serves a new call.
    pub(super) async fn supersede_all(&self, state: &ConfigurationState) {
        self.put_in_force(renewed(&self.in_force, self.in_force.entries()), &state.document.interceptors).await;
    }

    /// Writes first, then puts in force: the answer tells the two apart (contract 5.9).
    async fn change(
        &self,
        state: &mut ConfigurationState,
        Change { change, by, condition, launch_refused }: Change,
    ) -> Result<ConfigView, VerbError> {
        let Configuration { variables, file, allowlist, .. } = &self.configuration;
        let edit = written(change, launch_refused, file, variables.clone(), allowlist.clone());
        self.replace(state, by, condition, edit).await
    }

    /// Puts an earlier state in force, if it still loads. It was stored before, so nobody judges it as a new one.
    async fn roll_back(
        &self,
        state: &mut ConfigurationState,
        revision: i64,
        by: Arc<str>,
        condition: IfMatch,
    ) -> Result<ConfigView, VerbError> {
        let Some(earlier) = self.configuration.source.revision(revision).await.map_err(not_done)? else {
            return Err(VerbError::new(
                Code::NotFound,
                format!("there is no revision {revision} of the configuration"),
            ));
        };
        let variables = self.configuration.variables.clone();
        let edit: Edit = Box::new(move |_| loadable(earlier, &*variables));
        self.replace(state, by, condition, edit).await
    }

    async fn replace(
        &self,
        state: &mut ConfigurationState,
        by: Arc<str>,
        condition: IfMatch,
        edit: Edit,
    ) -> Result<ConfigView, VerbError> {
        let source = &self.configuration.source;
        let text = source.replace_as(by, condition, edit).await.map_err(not_done)?;
        let (moved, before) = (self.moved(), self.in_force.get());
        let applied = self.apply(state, &text).await;
        self.supersede_moved(state, &before, &moved).await;
        match applied {
            Ok(()) => {
                // Contract 7.6: saving deletes the chains of servers that there are no more.
                self.chains.saved(state.document.servers.iter().map(|entry| &entry.name)).await;
                self.view(&text).map_err(|error| {
                    let detail = format!("the change is made and in force, but cannot be shown: {}", error.detail);
                    VerbError::new(Code::ConfigChanged, detail)
                })
            }
            Err(problems) => {
                let why = first_of(&problems);
                self.stale.set(StaleConfig::unusable(problems));
                let detail = format!("the document was written, but could not be put in force: {why}");
                Err(VerbError::new(Code::ConfigChanged, detail))
            }
        }
    }

    /// What is stored; whatever it is, it is put in force on the way if it can be.
    async fn read(&self, state: &mut ConfigurationState) -> Result<ConfigView, VerbError> {
        let stored = self.configuration.source.load().await.map_err(not_done)?;
        self.hear_of_resets(state).await;
        match stored {
            Some(text) => {
                if let Err(problems) = self.apply(state, &text).await {
                    self.stale.set(StaleConfig::unusable(problems));
                }
                self.view(&text)
            }
            None => Ok(ConfigView { servers: Map::new(), etag: None, pending_restart: self.pending.get() }),
        }
    }

    async fn apply(&self, state: &mut ConfigurationState, text: &ConfigText) -> Result<(), Vec<Problem>> {
        let source = Source { file: &text.file, text: &text.text };
        let variables = &*self.configuration.variables;
        let mut document = config::parse(&source, &|name| variables(name))?.accept(self.configuration.unsupported)?;
        tell(&document, &state.document.problems);
        let servers = self.with_frozen(&mut document);
        // The chain of interceptors stands around every call: another one makes every server another one.
        let servers = if document.interceptors == state.document.interceptors {
            reconciled(&self.in_force, servers)
        } else {
            renewed(&self.in_force, servers)
        };
        self.put_in_force(servers, &document.interceptors).await;
        state.document = document;
        self.stale.clear();
        Ok(())
    }

    /// The servers to put in force: running tasks go by their servers as they were at the start, and by the
    /// interceptors of then, until the next one (contract 6.12).
    fn with_frozen(&self, document: &mut Document) -> Vec<ServerEntry> {
        let servers = document.servers.clone();
        let Some(frozen) = &self.frozen else { return servers };
        self.pending.set(frozen.changed_by(&servers, &document.interceptors));
        if frozen.is_empty() {
            return servers;
        }
        document.interceptors = frozen.interceptors().to_vec();
        frozen.kept(servers)
    }

    /// The new generations first: from here on nothing opened under an old one serves a new call.
    pub(super) async fn put_in_force(&self, servers: Vec<Configured>, interceptors: &[InterceptorEntry]) {
        self.in_force.set(servers, interceptors.to_vec());
        let (done, superseded) = oneshot::channel();
        let _ = self.router.registry.cast(RegistryMessage::Supersede { done });
        let _ = tokio::time::timeout(bounds::ROLE_ANSWER, superseded).await;
        self.catalog.supersede().await;
    }
}

impl ConfigurationActor {
    fn view(&self, text: &ConfigText) -> Result<ConfigView, VerbError> {
        shown(text, self.pending.get())
    }
}

/// A document as it is shown.
pub(crate) fn shown(text: &ConfigText, pending_restart: Vec<ServerName>) -> Result<ConfigView, VerbError> {
    let servers = config::view(&Source { file: &text.file, text: &text.text });
    let servers = servers.map_err(|problems| {
        let sentences: Vec<String> = problems.iter().map(ToString::to_string).collect();
        VerbError::new(Code::Invalid, format!("Invalid MCP configuration: {}", sentences.join("; ")))
    })?;
    Ok(ConfigView { servers, etag: Some(text.etag), pending_restart })
}

/// An earlier state, if it can be used today.
fn loadable(earlier: ConfigText, env: &dyn Fn(&str) -> Option<String>) -> Result<Vec<u8>, Refused> {
    match config::parse(&Source { file: &earlier.file, text: &earlier.text }, env) {
        Ok(_) => Ok(earlier.text),
        Err(problems) => {
            let detail = format!("that revision cannot be used any more: {}", first_of(&problems));
            Err(Refused { code: Code::Invalid, detail })
        }
    }
}

pub(crate) fn not_done(error: ConfigSourceError) -> VerbError {
    let code = match &error {
        ConfigSourceError::Refused(refused) => refused.code,
        ConfigSourceError::Stale { .. } | ConfigSourceError::ReadOnly { .. } => Code::Conflict,
        ConfigSourceError::Unreadable { .. } | ConfigSourceError::NotWritten { .. } => Code::Unavailable,
        ConfigSourceError::Unknown { .. } => Code::OutcomeUnknown,
    };
    VerbError::new(code, error.to_string())
}
