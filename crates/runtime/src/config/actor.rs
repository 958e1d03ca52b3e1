//! Reads, writes and puts in force: one change after another, each to its end whoever stops waiting for it.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use caribou_core::bounds;
use caribou_core::config::{self, Document, IfMatch, Source};
use caribou_core::failure::Code;
use caribou_core::launch::Allowlist;
use caribou_ports::config_source::{ConfigSource, ConfigSourceError, ConfigText};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::Map;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::edit::written;
use super::in_force::{Configured, InForce};
use super::reconcile::{reconciled, renewed};
use crate::api::change_config::{ConfigChange, ConfigView};
use crate::catalog::Catalog;
use crate::error::VerbError;
use crate::roles::Role;
use crate::session::{RegistryMessage, Router};

/// Looks up one variable of the environment; handed in, so that nothing here reads global state.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

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
}

#[derive(Clone)]
pub(crate) struct ConfigurationActor {
    pub(crate) configuration: Configuration,
    pub(crate) in_force: InForce,
    pub(crate) router: Router,
    pub(crate) catalog: Catalog,
    /// Why the stored document is not in force, if it is not; for people.
    pub(crate) stale: Arc<RwLock<Option<String>>>,
}

pub(crate) enum ConfigurationMessage {
    /// Look whether the document changed, and put it in force.
    Refresh { done: oneshot::Sender<()> },
    /// Replace the document and put it in force.
    Change { change: ConfigChange, condition: IfMatch, done: oneshot::Sender<Result<ConfigView, VerbError>> },
    /// Show what is stored.
    Read { done: oneshot::Sender<Result<ConfigView, VerbError>> },
    /// Everything opened or found so far is out of date.
    Reset { done: oneshot::Sender<()> },
}

pub(crate) struct ConfigurationState {
    /// What is in force.
    document: Document,
    watcher: JoinHandle<()>,
}

impl Actor for ConfigurationActor {
    type Msg = ConfigurationMessage;
    type State = ConfigurationState;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        let source = self.configuration.source.clone();
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
        Ok(ConfigurationState { document: self.configuration.document.clone(), watcher })
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
                }
                let _ = done.send(());
            }
            ConfigurationMessage::Change { change, condition, done } => {
                let _ = done.send(self.change(state, change, condition).await);
            }
            ConfigurationMessage::Read { done } => {
                let _ = done.send(self.read(state).await);
            }
            ConfigurationMessage::Reset { done } => {
                self.put_in_force(renewed(&self.in_force, state.document.servers.clone())).await;
                let _ = done.send(());
            }
        }
        Ok(())
    }
}

impl ConfigurationActor {
    async fn reload(&self, state: &mut ConfigurationState) {
        match self.configuration.source.load().await {
            Ok(Some(text)) => {
                if let Err(problems) = self.apply(state, &text).await {
                    self.keep_last_good(format!("the stored configuration cannot be used: {problems}"));
                }
            }
            // A document that vanished is being replaced, or was mislaid: the last good one stays (contract 5.4).
            Ok(None) => self.keep_last_good("the configuration file is gone".to_owned()),
            Err(error) => self.keep_last_good(error.to_string()),
        }
    }

    /// Writes first, then puts in force: the answer tells the two apart (contract 5.9).
    async fn change(
        &self,
        state: &mut ConfigurationState,
        change: ConfigChange,
        condition: IfMatch,
    ) -> Result<ConfigView, VerbError> {
        let Configuration { source, variables, file, allowlist, .. } = &self.configuration;
        let edit = written(change, file, variables.clone(), allowlist.clone());
        let text = source.replace(condition, edit).await.map_err(not_done)?;
        match self.apply(state, &text).await {
            Ok(()) => view(&text),
            Err(problems) => Err(VerbError::new(
                Code::ConfigChanged,
                format!("the document was written, but could not be put in force: {problems}"),
            )),
        }
    }

    /// What is stored; whatever it is, it is put in force on the way if it can be.
    async fn read(&self, state: &mut ConfigurationState) -> Result<ConfigView, VerbError> {
        match self.configuration.source.load().await.map_err(not_done)? {
            Some(text) => {
                if let Err(problems) = self.apply(state, &text).await {
                    self.keep_last_good(format!("the stored configuration cannot be used: {problems}"));
                }
                view(&text)
            }
            None => Ok(ConfigView { servers: Map::new(), etag: None }),
        }
    }

    async fn apply(&self, state: &mut ConfigurationState, text: &ConfigText) -> Result<(), String> {
        let source = Source { file: &text.file, text: &text.text };
        let variables = &*self.configuration.variables;
        let document: Document = config::parse(&source, &|name| variables(name))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        let servers = document.servers.clone();
        // The chain of interceptors stands around every call: another one makes every server another one.
        self.put_in_force(if document.interceptors == state.document.interceptors {
            reconciled(&self.in_force, servers)
        } else {
            renewed(&self.in_force, servers)
        })
        .await;
        state.document = document;
        *self.stale.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// The new generations first: from here on nothing opened under an old one serves a new call.
    async fn put_in_force(&self, servers: Vec<Configured>) {
        self.in_force.set(servers);
        let (done, superseded) = oneshot::channel();
        let _ = self.router.registry.cast(RegistryMessage::Supersede { done });
        let _ = tokio::time::timeout(bounds::SESSION_CLOSE, superseded).await;
        self.catalog.supersede().await;
    }

    fn keep_last_good(&self, why: String) {
        let mut stale = self.stale.write().unwrap_or_else(PoisonError::into_inner);
        if stale.as_ref() != Some(&why) {
            tracing::error!("the last good configuration stays in force: {why}");
            *stale = Some(why);
        }
    }
}

fn view(text: &ConfigText) -> Result<ConfigView, VerbError> {
    let servers = config::view(&Source { file: &text.file, text: &text.text });
    let servers = servers.map_err(|problems| {
        let sentences: Vec<String> = problems.iter().map(ToString::to_string).collect();
        VerbError::new(Code::Invalid, format!("Invalid MCP configuration: {}", sentences.join("; ")))
    })?;
    Ok(ConfigView { servers, etag: Some(text.etag) })
}

fn not_done(error: ConfigSourceError) -> VerbError {
    let code = match &error {
        ConfigSourceError::Refused(refused) => refused.code,
        ConfigSourceError::Stale { .. } | ConfigSourceError::ReadOnly { .. } => Code::Conflict,
        ConfigSourceError::Unreadable { .. } | ConfigSourceError::NotWritten { .. } => Code::Unavailable,
        ConfigSourceError::Unknown { .. } => Code::OutcomeUnknown,
    };
    VerbError::new(code, error.to_string())
}

/// The callers' side.
#[derive(Clone)]
pub(crate) struct ConfigurationDesk {
    pub(crate) role: Role<ConfigurationMessage>,
    pub(crate) source: Arc<dyn ConfigSource>,
    pub(crate) stale: Arc<RwLock<Option<String>>>,
}

impl ConfigurationDesk {
    /// The callers' side of `configuration`, before its actor runs.
    pub(crate) fn new(configuration: &Configuration) -> Self {
        Self { role: Role::vacant(), source: configuration.source.clone(), stale: Arc::default() }
    }

    /// Why what is stored is not in force, if it is not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.stale.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sees to it that what is stored is in force; costs one look at the file while nothing changed.
    pub(crate) async fn refresh(&self) {
        if self.source.has_changed() {
            let (done, seen) = oneshot::channel();
            let _ = self.role.cast(ConfigurationMessage::Refresh { done });
            let _ = tokio::time::timeout(bounds::SESSION_CLOSE, seen).await;
        }
    }
}
