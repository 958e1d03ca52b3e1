//! The road to a server about a task: the same sessions as a user's call, with what a call without its user may carry.
//!
//! Owns which configuration a call about a task goes by and who looks after the sessions of pinned tasks. A server that
//! is not configured now may be again, so that is told as an error that passes; a personal connection that is gone is
//! gone for good (contract 6.12).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use caribou_core::bounds::{MAX_TASK_STREAMS, TASK_COMPENSATIONS, TASK_SESSION};
use caribou_core::config::{ServerConfig, endpoint_fingerprint, personal, task_fingerprint};
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Epoch, Scope, ServerName};
use caribou_core::notification::Sink;
use caribou_core::task::{Pin, SnapshotFingerprint, TaskId, TaskLimits};
use caribou_ports::event_sink::EventSink;
use caribou_ports::store::TaskStore;
use caribou_ports::task_driver::{RemoteError, Upstream};

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::drivers::Drivers;
use super::frozen::Frozen;
use super::retention;
use super::upstream::{Carried, SessionUpstream, Submitting, Way};
use crate::config::{Binding, InForce};
use crate::interception::{Chain, Interception};
use crate::options::Options;
use crate::personal::{User, Users};
use crate::session::{Handle, Router};
use crate::watch::Watchers;

/// Everything that loops and verbs need to reach a server about a task, and to keep what they learn.
pub(crate) struct TaskRoad {
    pub(crate) boot: BootId,
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) drivers: Drivers,
    pub(crate) sinks: Vec<Arc<dyn EventSink>>,
    /// Who watches; one of the sinks. `None` = nobody can.
    pub(crate) watchers: Option<Watchers>,
    /// Tasks that are followed by somebody, one by one.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) limits: TaskLimits,
    pub(crate) frozen: Frozen,
    pub(super) router: Router,
    pub(super) options: Options,
    /// Cancellations of what could not be stored that may go on at once.
    pub(super) compensations: Semaphore,
    in_force: InForce,
    /// Makes chains of the interceptors of the start.
    interception: Interception,
    /// The chains of background calls, made once for each server.
    chains: Mutex<HashMap<ServerName, Arc<Chain>>>,
    /// Set once the users are there.
    users: OnceLock<Arc<Users>>,
    retention: JoinHandle<()>,
}

impl Drop for TaskRoad {
    fn drop(&mut self) {
        self.retention.abort();
    }
}

/// What a call about a task is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) task: TaskId,
    pub(crate) server: &'a ServerName,
    /// Whose task it is, in which thread.
    pub(crate) scope: &'a Scope,
    /// The run of an agent that asked for it.
    pub(crate) run_id: Option<&'a str>,
    /// Only in the session of this epoch, for a pinned task; no other is opened for it.
    pub(crate) only: Option<Epoch>,
    /// Only of the server that this names, for a task of the protocol itself: at another address its name means nothing.
    pub(crate) only_at: Option<SnapshotFingerprint>,
}

impl TaskRoad {
    pub(crate) fn new(
        boot: BootId,
        tasks: crate::outside::DurableTasks,
        frozen: Frozen,
        (router, options, in_force): (Router, Options, InForce),
        makers: Option<Arc<dyn caribou_ports::interceptor::Interceptors>>,
    ) -> Self {
        let as_started = InForce::default();
        let retention = tokio::spawn(retention::keep(tasks.store.clone(), options.task_retention));
        as_started.set(Vec::new(), frozen.interceptors().to_vec());
        let watchers = tasks.is_watched.then(Watchers::default);
        let mut sinks = tasks.sinks;
        sinks.extend(watchers.clone().map(|watchers| Arc::new(watchers) as Arc<dyn EventSink>));
        Self {
            boot,
            store: tasks.store,
            drivers: Drivers::new(tasks.drivers),
            sinks,
            watchers,
            streams: Arc::new(Semaphore::new(MAX_TASK_STREAMS)),
            limits: options.tasks,
            frozen,
            router,
            options,
            compensations: Semaphore::new(TASK_COMPENSATIONS),
            in_force,
            interception: Interception { makers, in_force: as_started },
            chains: Mutex::default(),
            users: OnceLock::new(),
            retention,
        }
    }

    /// Those whose own servers may have tasks.
    pub(crate) fn serve(&self, users: &Arc<Users>) {
        let _ = self.users.set(users.clone());
    }

    /// Where events that ask for attention go.
    pub(crate) fn sinks(&self) -> Vec<Sink> {
        self.sinks.iter().map(|sink| sink.sink()).collect()
    }

    /// A way to the server for one call about a task that is on record: static headers, OAuth and the credential of the
    /// task's user, never secrets of the request that submitted it (contract 6.13). Opens nothing yet.
    ///
    /// # Errors
    /// `not_found`: the server is gone for good. Every other error may pass.
    pub(crate) async fn upstream(&self, about: About<'_>) -> Result<Box<dyn Upstream>, RemoteError> {
        let (binding, own) = self.binding(about.server, about.scope).await?;
        if about.only_at.is_some_and(|made_at| made_at != endpoint_fingerprint(&binding.server)) {
            let message = format!(
                "server `{}` was changed after it had accepted the task, which lives where it was; restore its \
                 configuration, or cancel the task there",
                binding.server.shown_name()
            );
            return Err(RemoteError::new(Code::Unavailable, message));
        }
        let chain = self.chain(about.server)?;
        let carried = Carried::Background(about.run_id.map(Into::into));
        Ok(Box::new(SessionUpstream::new(self, Way { about, binding, chain, own }, carried)))
    }

    /// The way of one submit: with what its call was prepared with.
    pub(crate) fn submit_upstream(
        &self,
        task: TaskId,
        scope: &Scope,
        binding: &Binding,
        submitting: Submitting,
    ) -> Box<dyn Upstream> {
        let about = About { task, server: &binding.server.name, scope, run_id: None, only: None, only_at: None };
        // Its interceptors were asked already.
        let way = Way { about, binding: binding.clone(), chain: Arc::default(), own: None };
        Box::new(SessionUpstream::new(self, way, Carried::Submit(Mutex::new(Some(Box::new(submitting))))))
    }

    /// The way of a task that a server made of a plain call, which it answered in this session. Nothing is asked on it.
    pub(crate) fn answered_upstream(
        &self,
        task: TaskId,
        scope: &Scope,
        binding: &Binding,
        answered_by: Arc<Handle>,
    ) -> Box<dyn Upstream> {
        let about = About { task, server: &binding.server.name, scope, run_id: None, only: None, only_at: None };
        let way = Way { about, binding: binding.clone(), chain: Arc::default(), own: None };
        Box::new(SessionUpstream::new(self, way, Carried::Background(None)).answered_by(answered_by))
    }

    /// The epoch of the session of this scope that is open here, if one is: where its pinned tasks live.
    pub(crate) fn open_epoch(&self, server: &ServerName, scope: &Scope) -> Option<Epoch> {
        self.router.open(server, scope).map(|handle| handle.epoch())
    }

    /// Keeps the session that a task lives in open until long after the task is to be asked about in `next`; `None` = the
    /// task has ended.
    pub(crate) fn keep_session(
        &self,
        server: &ServerName,
        scope: &Scope,
        task: TaskId,
        pin: &Pin,
        next: Option<Duration>,
    ) {
        let open =
            self.router.open(server, scope).filter(|handle| pin.boot == self.boot && pin.epoch == handle.epoch());
        match (open, next) {
            (Some(handle), Some(next)) => handle.keep_for(task, next.saturating_add(TASK_SESSION)),
            (Some(handle), None) => handle.let_go_of(task),
            (None, _) => {}
        }
    }

    /// The fingerprints of every configuration that tasks are followed under here.
    pub(crate) fn configurations(&self) -> Vec<SnapshotFingerprint> {
        let servers = self.in_force.get();
        let mut all = self.frozen.fingerprints();
        let enabled = servers.list.iter().filter_map(|configured| configured.binding());
        all.extend(enabled.map(|binding| endpoint_fingerprint(&binding.server)));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The fingerprint of the configuration that a task of `server` is accepted under.
    pub(crate) fn fingerprint(&self, server: &ServerConfig) -> SnapshotFingerprint {
        let frozen = self.frozen.fingerprint(&server.name);
        frozen.unwrap_or_else(|| task_fingerprint(server, self.frozen.interceptors()))
    }

    /// The server as it is in force; that of a task server is the one of the start, whatever is stored meanwhile.
    async fn binding(&self, server: &ServerName, scope: &Scope) -> Result<(Binding, Option<Arc<User>>), RemoteError> {
        let servers = self.in_force.get();
        if let Some(binding) = servers.binding(server) {
            return Ok((binding, None));
        }
        if !personal::is_runtime_name(server) {
            let message = format!("server `{server}` of the task is not configured, or disabled");
            return Err(RemoteError::new(Code::Unavailable, message));
        }
        let gone = || RemoteError::new(Code::NotFound, GONE.to_owned());
        let users = self.users.get().ok_or_else(gone)?;
        let own = users.of(&scope.user).await.map_err(|error| RemoteError::new(error.code, error.detail))?;
        let binding = own.binding(server).ok_or_else(gone)?;
        Ok((binding, Some(own)))
    }

    fn chain(&self, server: &ServerName) -> Result<Arc<Chain>, RemoteError> {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chain) = chains.get(server) {
            return Ok(chain.clone());
        }
        let made = self.interception.chain(server);
        let chain = made.map_err(|error| RemoteError::new(error.code, error.detail))?;
        // Personal connections come and go; a chain is cheap to make (invariant B1).
        if !chain.is_empty() && !personal::is_runtime_name(server) {
            chains.insert(server.clone(), chain.clone());
        }
        Ok(chain)
    }
}

/// The connection of a personal task is no longer what it was accepted under.
const GONE: &str = "the personal connection of this task was changed, disabled or deleted";
