//! One session from bring-up to teardown.
//!
//! The loop takes a message and decides; bring-up, watching and teardown are child tasks, so a close always gets
//! through. Never restarted: the next call opens another session under another actor.

use std::sync::Arc;

use caribou_core::bounds;
use caribou_core::config::Transport;
use caribou_ports::mcp::{Credentials, Disconnect, EventSink, OpenError, OpenSession, Session};
use caribou_ports::workspace::ThreadFolder;
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::handle::{Handle, NotOpened, Waiter};
use super::registry::RegistryMessage;
use crate::oauth::Chains;
use crate::outside::Outside;
use crate::survived::survived;

pub(super) struct SessionActor;

pub(super) enum SessionMessage {
    /// More callers of the same key.
    Join(Vec<Waiter>),
    Opened(Result<Arc<dyn Session>, OpenError>),
    Ended(Disconnect),
    /// Whoever still waits for the bring-up is told this.
    Close(NotOpened),
    Closed,
}

/// What a session actor is born with.
pub(super) struct Birth {
    pub(super) handle: Arc<Handle>,
    pub(super) registry: ActorRef<RegistryMessage>,
    pub(super) outside: Outside,
    pub(super) chains: Chains,
    /// Children being brought up at once, over the whole replica.
    pub(super) spawns: Arc<Semaphore>,
    pub(super) deadline: Option<Instant>,
    pub(super) events: EventSink,
    pub(super) waiters: Vec<Waiter>,
}

pub(super) struct SessionState {
    handle: Arc<Handle>,
    registry: ActorRef<RegistryMessage>,
    waiters: Vec<Waiter>,
    abandon: watch::Sender<bool>,
    phase: Phase,
}

enum Phase {
    Opening,
    Live { session: Arc<dyn Session>, watcher: JoinHandle<()> },
    Closing,
}

impl Actor for SessionActor {
    type Msg = SessionMessage;
    type State = SessionState;
    type Arguments = Birth;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        mut birth: Birth,
    ) -> Result<Self::State, ActorProcessingErr> {
        let (abandon, abandoned) = watch::channel(false);
        let state = SessionState {
            handle: birth.handle.clone(),
            registry: birth.registry.clone(),
            waiters: std::mem::take(&mut birth.waiters),
            abandon,
            phase: Phase::Opening,
        };
        tokio::spawn(async move {
            let fault = || Err(OpenError::NotStartable("this is a fault of Caribou; its log says more".to_owned()));
            let opened = survived(open(birth, abandoned)).await.unwrap_or_else(fault);
            if let Err(MessagingErr::SendErr(SessionMessage::Opened(Ok(session)))) =
                myself.cast(SessionMessage::Opened(opened))
            {
                session.close().await;
            }
        });
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionMessage::Join(waiters) => state.join(waiters),
            SessionMessage::Opened(Ok(session)) => state.opened(&myself, session),
            SessionMessage::Opened(Err(error)) => state.failed(&myself, error),
            SessionMessage::Ended(disconnect) => state.ended(&myself, &disconnect),
            SessionMessage::Close(why) => state.close(&myself, &why),
            SessionMessage::Closed => state.gone(&myself, None),
        }
        Ok(())
    }
}

impl SessionState {
    fn join(&mut self, waiters: Vec<Waiter>) {
        match self.phase {
            Phase::Opening => self.waiters.extend(waiters),
            Phase::Live { .. } => {
                for waiter in waiters {
                    let _ = waiter.send(self.handle.admit().map_err(|_| NotOpened::Busy));
                }
            }
            // Dropping a waiter sends its caller back to the registry.
            Phase::Closing => drop(waiters),
        }
    }

    fn opened(&mut self, myself: &ActorRef<SessionMessage>, session: Arc<dyn Session>) {
        if matches!(self.phase, Phase::Closing) {
            return tear_down(myself, session);
        }
        let ended = session.ended();
        let to = myself.clone();
        let watcher = tokio::spawn(async move {
            let _ = to.cast(SessionMessage::Ended(ended.await));
        });
        self.waiters.retain(|waiter| !waiter.is_closed());
        let mut admitted = self.handle.go_live(session.clone(), self.waiters.len()).into_iter();
        self.phase = Phase::Live { session, watcher };
        let _ = self.registry.cast(RegistryMessage::Started(self.handle.server.name.clone()));
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(admitted.next().ok_or(NotOpened::Busy));
        }
    }

    fn failed(&mut self, myself: &ActorRef<SessionMessage>, error: OpenError) {
        self.handle.retire();
        if let OpenError::Timeout { message } = &error {
            // Whoever waited may be gone by now; the message names server and bound (contract 4.5).
            tracing::warn!(session = %self.handle.key, "{message}");
        }
        // The registry hears first: whoever tries again then finds this session gone.
        self.gone(myself, Some(error.clone()));
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(Err(NotOpened::Failed(error.clone())));
        }
    }

    fn ended(&mut self, myself: &ActorRef<SessionMessage>, disconnect: &Disconnect) {
        tracing::warn!(session = %self.handle.key, reason = %disconnect.reason, exit = ?disconnect.exit, "session ended by itself");
        self.handle.fell(disconnect);
        self.close(myself, &NotOpened::Failed(OpenError::Abandoned));
    }

    fn close(&mut self, myself: &ActorRef<SessionMessage>, why: &NotOpened) {
        self.handle.retire();
        match std::mem::replace(&mut self.phase, Phase::Closing) {
            Phase::Opening => {
                let _ = self.abandon.send(true);
                for waiter in self.waiters.drain(..) {
                    let _ = waiter.send(Err(why.clone()));
                }
            }
            Phase::Live { session, watcher } => {
                watcher.abort();
                let _ = self.registry.cast(RegistryMessage::Closing(self.handle.clone()));
                tear_down(myself, session);
            }
            Phase::Closing => {}
        }
    }

    fn gone(&self, myself: &ActorRef<SessionMessage>, failure: Option<OpenError>) {
        let _ = self.registry.cast(RegistryMessage::Gone { handle: self.handle.clone(), failure });
        myself.stop(None);
    }
}

fn tear_down(myself: &ActorRef<SessionMessage>, session: Arc<dyn Session>) {
    let to = myself.clone();
    tokio::spawn(async move {
        // Whatever became of the close, the place in the pool is free again.
        let _ = survived(session.close()).await;
        let _ = to.cast(SessionMessage::Closed);
    });
}

/// Waits for its turn to spawn, then brings the session up within what is left of the deadline.
async fn open(birth: Birth, abandoned: watch::Receiver<bool>) -> Result<Arc<dyn Session>, OpenError> {
    // A server is told that its tasks are followed only where they are.
    let is_followed = birth.outside.tasks.is_some();
    let configured = &birth.handle.server;
    let server = if is_followed { configured.clone() } else { configured.without_native_tasks() };
    let late = || queued(&birth, "it waited for its turn all the time");
    let _turn = if server.transport.owns_process() {
        let turn = tokio::select! {
            turn = birth.spawns.clone().acquire_owned() => turn.ok(),
            () = given_up(abandoned.clone()) => return Err(OpenError::Abandoned),
            () = at(birth.deadline) => None,
        };
        Some(turn.ok_or_else(late)?)
    } else {
        None
    };
    let left = birth.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let request = OpenSession {
        label: birth.handle.key.to_string(),
        folder: folder(&birth).await?,
        timeout: left,
        abandoned: Box::pin(given_up(abandoned)),
        credentials: Credentials {
            tokens: birth.chains.of(&server, server.is_personal())?,
            is_token_optional: birth.handle.key.scope.is_catalog(),
            headers: birth.handle.headers.as_deref().unwrap_or_default().to_vec(),
        },
        watch_lists: birth.handle.key.scope.is_catalog() || server.transport.owns_process(),
        events: birth.events.clone(),
        server,
    };
    match birth.outside.connector.open(request).await {
        Err(OpenError::Timeout { message })
            if left < birth.handle.server.session_init_timeout.map(|bound| bound / 2) =>
        {
            Err(queued(&birth, &message))
        }
        opened => opened,
    }
}

/// The error of a bring-up whose time went by before it could begin.
fn queued(birth: &Birth, what: &str) -> OpenError {
    OpenError::Queued(format!(
        "too many servers start at once for server `{}` to be ready within its session_init_timeout: {what}",
        birth.handle.server.name
    ))
}

/// The folder of the thread, for a child of one. The catalogue's children belong to no thread.
///
/// A child goes on without a folder for temporary files (contract 4.6), but not without the one that keeps its files
/// apart from those of other threads (invariant P1).
async fn folder(birth: &Birth) -> Result<Option<ThreadFolder>, OpenError> {
    let Handle { key, server, .. } = &*birth.handle;
    let (Some(folders), Transport::Stdio(stdio)) = (&birth.outside.folders, &server.transport) else { return Ok(None) };
    if key.scope.is_catalog() {
        return Ok(None);
    }
    let Ok(prepared) = tokio::time::timeout(bounds::FILES_LOOK, folders.prepare(&key.scope)).await else {
        return Err(OpenError::NotStartable(
            "the folder of its thread cannot be made: the disk does not answer".into(),
        ));
    };
    let has_own = stdio.cwd.is_some() && stdio.thread_files.is_empty();
    if let Err(error) | Ok(ThreadFolder { temp: Err(error), .. }) = &prepared {
        tracing::warn!(session = %key, %error, "a child has no temporary folder of its own");
    }
    match prepared {
        Ok(folder) => Ok(Some(folder)),
        Err(_) if has_own => Ok(None),
        Err(error) => Err(OpenError::NotStartable(error.to_string())),
    }
}

async fn given_up(mut abandoned: watch::Receiver<bool>) {
    // An error means that the actor itself is gone: nobody wants the session then either.
    let _ = abandoned.wait_for(|abandoned| *abandoned).await;
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
