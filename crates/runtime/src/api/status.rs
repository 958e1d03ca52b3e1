//! Which servers and sessions there are and how they are.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::era::Era;
use caribou_core::guardrails::Guardrails;
use caribou_core::ids::{BootId, Epoch, Scope, ServerName};
use caribou_ports::store::StoredSession;
use serde_json::value::RawValue;

use crate::Runtime;
use crate::caller::Caller;
use crate::catalog::{Entry, EntryState};
use crate::session::{Handle, Tally};

/// How many sessions of other replicas are listed at most.
const MAX_LISTED: u32 = 1_000;

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Discovered; its tools are shown.
    Ready,
    /// Nobody asked for it yet.
    Unknown,
    /// Being discovered.
    Starting,
    /// The last discovery failed.
    Failed,
    /// Switched off in the configuration.
    Disabled,
    /// Left out because its configuration is wrong.
    Dropped,
}

impl ServerState {
    /// The word shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unknown => "unknown",
            Self::Starting => "starting",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Dropped => "dropped",
        }
    }
}

/// One server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Its name.
    pub name: ServerName,
    /// `stdio`, `http` or `sse`; `None` when the configuration is too wrong to tell.
    pub transport: Option<&'static str>,
    /// How it is.
    pub state: ServerState,
    /// For how long it has been in this state.
    pub since: Duration,
    /// The era and revision last spoken.
    pub era: Option<(Era, String)>,
    /// The server's `Implementation` object.
    pub server_info: Option<Arc<RawValue>>,
    /// How many tools it shows.
    pub tools: usize,
    /// How many of them guardrails keep from everybody.
    pub denied: usize,
    /// Live sessions with it.
    pub sessions: usize,
    /// Why it failed or was dropped, or what is odd about its list.
    pub last_error: Option<String>,
    /// Warnings about its tool list.
    pub warnings: Vec<String>,
    /// When a failed server may be started again.
    pub next_try: Option<Duration>,
    /// The last stderr lines of its latest child, secrets masked.
    pub stderr_tail: String,
}

impl ServerStatus {
    /// Why none of its tools can be called, and none will be until somebody does something about it: `disabled`,
    /// `dropped`, `failed`, or `policy` when guardrails deny all of them.
    pub fn absent(&self) -> Option<&'static str> {
        match self.state {
            ServerState::Disabled | ServerState::Dropped | ServerState::Failed => Some(self.state.as_str()),
            ServerState::Ready if self.tools > 0 && self.denied == self.tools => Some("policy"),
            ServerState::Ready | ServerState::Unknown | ServerState::Starting => None,
        }
    }

    /// The same without what a server or its configuration may have put into texts.
    fn without_texts(self) -> Self {
        Self { last_error: None, warnings: Vec::new(), stderr_tail: String::new(), ..self }
    }
}

/// One live session.
#[derive(Clone, Debug)]
pub struct SessionStatus {
    /// The server.
    pub server: ServerName,
    /// Whose it is.
    pub scope: Scope,
    /// Which life of the key.
    pub epoch: Epoch,
    /// The life of the replica that holds it.
    pub replica: BootId,
    /// Its child.
    pub pid: Option<u32>,
    /// The era and revision spoken.
    pub era: Option<(Era, String)>,
    /// Calls in flight; `None` = another replica knows.
    pub in_flight: Option<usize>,
    /// Since it was opened.
    pub age: Duration,
    /// Since it was last called; `None` = another replica knows.
    pub idle: Option<Duration>,
}

impl Runtime {
    /// Every server of the configuration, in document order. Only admins are told what servers wrote to stderr, and
    /// errors and warnings, which may quote it.
    pub async fn servers(&self, caller: &Caller) -> Vec<ServerStatus> {
        let tally = self.router.tally().await;
        let is_told = caller.principal.administers().is_ok();
        let status = |entry: &Entry| {
            let status = server_status(entry, &tally, &self.options.guardrails);
            if is_told { status } else { status.without_texts() }
        };
        self.catalog.current().await.entries.iter().map(status).collect()
    }

    /// Every live session of the whole cluster, oldest first, of other replicas at most [`MAX_LISTED`]; to a caller that is
    /// no admin only those of its own user.
    pub async fn sessions(&self, caller: &Caller) -> Vec<SessionStatus> {
        let tally = self.router.tally().await;
        let sees_all = caller.principal.administers().is_ok();
        let is_shown = |scope: &Scope| !scope.is_catalog() && (sees_all || scope.user == caller.principal.user);
        let here = tally.handles.iter().filter(|handle| !handle.home.is_there() && is_shown(&handle.key.scope));
        let mut sessions: Vec<SessionStatus> = here.map(|handle| session_status(handle, &self.boot)).collect();
        match self.router.homes.on_record(MAX_LISTED).await {
            Some(Ok(on_record)) => {
                let there = on_record.into_iter().filter(|held| held.owner != self.boot && is_shown(&held.key.scope));
                sessions.extend(there.map(of_another));
            }
            Some(Err(error)) => tracing::warn!("the sessions of the other replicas are not shown: {error}"),
            None => {}
        }
        sessions.sort_by_key(|session| std::cmp::Reverse(session.age));
        sessions
    }
}

fn server_status(entry: &Entry, tally: &Tally, guardrails: &Guardrails) -> ServerStatus {
    let of_server = || tally.handles.iter().filter(|handle| handle.key.server == entry.name);
    let (state, last_error, next_try) = match &entry.state {
        EntryState::Unknown => (ServerState::Unknown, None, None),
        EntryState::Starting => (ServerState::Starting, None, None),
        EntryState::Ready => (ServerState::Ready, None, None),
        EntryState::Failed(error) => (ServerState::Failed, Some(error.detail.clone()), error.retry_after),
        EntryState::Disabled => (ServerState::Disabled, None, None),
        EntryState::Dropped(reason) => (ServerState::Dropped, Some(reason.clone()), None),
    };
    let latest_child = of_server().max_by_key(|handle| handle.opened_at).and_then(|handle| handle.session());
    let stderr_tail = latest_child.map(|session| session.stderr_tail());
    ServerStatus {
        name: entry.name.clone(),
        transport: entry.config.as_ref().map(|config| config.transport.name()),
        state,
        since: entry.since.elapsed(),
        era: entry.facts.as_ref().map(|facts| (facts.era, facts.version.clone())),
        server_info: entry.facts.as_ref().and_then(|facts| facts.server_info.clone()),
        tools: entry.tools.tools.len(),
        denied: entry.tools.tools.iter().filter(|tool| guardrails.judge(&tool.name).is_err()).count(),
        sessions: of_server().filter(|handle| !handle.key.scope.is_catalog()).count(),
        last_error,
        warnings: entry.tools.warnings.clone(),
        next_try,
        stderr_tail: stderr_tail.or_else(|| tally.stderr.get(&entry.name).cloned()).unwrap_or_default(),
    }
}

/// A session of another replica, as it is on record.
fn of_another(held: StoredSession) -> SessionStatus {
    SessionStatus {
        server: held.key.server,
        scope: held.key.scope,
        epoch: held.epoch,
        replica: held.owner,
        pid: None,
        era: None,
        in_flight: None,
        age: held.age,
        idle: None,
    }
}

fn session_status(handle: &Handle, ours: &BootId) -> SessionStatus {
    let facts = handle.session().map(|session| session.facts());
    SessionStatus {
        server: handle.key.server.clone(),
        scope: handle.key.scope.clone(),
        epoch: handle.epoch(),
        replica: handle.owner(ours).clone(),
        pid: facts.and_then(|facts| facts.pid),
        era: facts.map(|facts| (facts.era, facts.version.clone())),
        in_flight: Some(handle.in_flight()),
        age: handle.opened_at.elapsed(),
        idle: Some(handle.idle_for()),
    }
}
