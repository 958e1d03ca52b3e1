//! One session from bring-up to teardown.
//!
//! The loop takes a message and decides; bring-up ([`super::opening`]), watching and teardown are child tasks, so a close
//! always gets through. Never restarted: the next call opens another session under another actor.

use std::sync::Arc;

use caribou_ports::mcp::{Disconnect, EventSink, OpenError, Session};
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::handle::{Handle, NotOpened, Waiter};
use super::home::{Homes, NotHeld};
use super::opening::open;
use super::registry::RegistryMessage;
use crate::oauth::Chains;
use crate::outside::Outside;
use crate::survived::survived;

pub(super) struct SessionActor;

pub(super) enum SessionMessage {
    /// More callers of the same key.
    Join(Vec<Waiter>),
    Opened(Result<Arc<dyn Session>, Unopened>),
    Ended(Disconnect),
    /// Whoever still waits for the bring-up is told this.
    Close(NotOpened),
    Closed,
}

/// Why a session was not opened.
#[derive(Clone, Debug)]
pub(super) enum Unopened {
    /// The bring-up failed.
    Failed(OpenError),
    /// It was not begun, or not here.
    Not(NotOpened),
}

impl From<OpenError> for Unopened {
    fn from(error: OpenError) -> Self {
        Self::Failed(error)
    }
}

impl From<NotHeld> for Unopened {
    fn from(why: NotHeld) -> Self {
        Self::Not(match why {
            NotHeld::Moved => NotOpened::Moved,
            NotHeld::Refused(why) => NotOpened::Untrusted(why),
        })
    }
}

/// What a session actor is born with.
pub(super) struct Birth {
    pub(super) handle: Arc<Handle>,
    pub(super) registry: ActorRef<RegistryMessage>,
    pub(super) outside: Outside,
    pub(super) homes: Homes,
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
    homes: Homes,
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
            homes: birth.homes.clone(),
            phase: Phase::Opening,
        };
        let (homes, handle) = (birth.homes.clone(), birth.handle.clone());
        tokio::spawn(async move {
            let fault =
                || Err(OpenError::NotStartable("this is a fault of Caribou; its log says more".to_owned()).into());
            let opened = survived(open(birth, abandoned)).await.unwrap_or_else(fault);
            if let Err(MessagingErr::SendErr(SessionMessage::Opened(Ok(session)))) =
                myself.cast(SessionMessage::Opened(opened))
            {
                session.close().await;
                leave(&homes, &handle);
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
            return self.tear_down(myself, session);
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

    fn failed(&mut self, myself: &ActorRef<SessionMessage>, why: Unopened) {
        self.handle.retire();
        if let Unopened::Failed(OpenError::Timeout { message }) = &why {
            // Whoever waited may be gone by now; the message names server and bound (contract 4.5).
            tracing::warn!(session = %self.handle.key, "{message}");
        }
        let (blamed, told) = match why {
            Unopened::Failed(error) => (error.clone(), NotOpened::Failed(error)),
            // It says nothing about the server.
            Unopened::Not(why) => (OpenError::Abandoned, why),
        };
        // The registry hears first: whoever tries again then finds this session gone.
        self.gone(myself, Some(blamed));
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(Err(told.clone()));
        }
    }

    fn ended(&mut self, myself: &ActorRef<SessionMessage>, disconnect: &Disconnect) {
        if self.handle.home.is_there() {
            tracing::debug!(session = %self.handle.key, reason = %disconnect.reason, "a session of another replica is left");
        } else {
            tracing::warn!(session = %self.handle.key, reason = %disconnect.reason, exit = ?disconnect.exit, "session ended by itself");
        }
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
                self.tear_down(myself, session);
            }
            Phase::Closing => {}
        }
    }

    fn gone(&self, myself: &ActorRef<SessionMessage>, failure: Option<OpenError>) {
        let _ = self.registry.cast(RegistryMessage::Gone { handle: self.handle.clone(), failure });
        myself.stop(None);
    }

    fn tear_down(&self, myself: &ActorRef<SessionMessage>, session: Arc<dyn Session>) {
        let (to, homes, handle) = (myself.clone(), self.homes.clone(), self.handle.clone());
        tokio::spawn(async move {
            // Whatever became of the close, the place in the pool is free again.
            if homes.is_left_to_others(&handle) {
                let _ = survived(session.leave()).await;
                homes.leave(&handle.key, handle.epoch());
            } else {
                let _ = survived(session.close()).await;
                leave(&homes, &handle);
            }
            let _ = to.cast(SessionMessage::Closed);
        });
    }
}

/// Nothing is left of a session: whoever holds it next may begin at once.
pub(super) fn leave(homes: &Homes, handle: &Handle) {
    if handle.is_held() {
        homes.free(&handle.key, handle.epoch());
    }
}
