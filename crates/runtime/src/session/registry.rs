//! Which sessions exist: the one place that opens, evicts and forgets them.
//!
//! Every decision is taken here, one message after another, so that the limit holds under any interleaving. The
//! directory it keeps is only read by others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use caribou_core::ids::{Scope, ServerName, SessionKey};
use caribou_core::session::{Admission, admit};
use caribou_ports::mcp::OpenError;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::actor::{Birth, SessionActor, leave};
use super::book::EpochBook;
use super::closing::{close_all, close_one, close_scope, close_superseded, refuse};
use super::events::Oddities;
use super::handle::{Handle, NotOpened, Waiter};
use super::home::Homes;
use super::joining::join;
use super::pool::{Held, Kind, Pool};
use super::reaping::is_standing;
use crate::catalog::DirtyLists;
use crate::config::{Binding, Generation, InForce};
use crate::metrics::Metrics;
use crate::oauth::Chains;
use crate::options::Options;
use crate::outside::Outside;
use crate::survived::survived;

/// The sessions that exist, by key. Written by the registry only.
pub(crate) type Directory = Arc<RwLock<HashMap<SessionKey, Arc<Handle>>>>;

/// What the registry works with.
#[derive(Clone)]
pub(crate) struct Registry {
    pub(crate) options: Options,
    pub(crate) outside: Outside,
    pub(crate) homes: Homes,
    pub(crate) chains: Chains,
    pub(crate) in_force: InForce,
    pub(crate) directory: Directory,
    pub(crate) book: Arc<Mutex<EpochBook>>,
    pub(crate) dirty: Arc<DirtyLists>,
    pub(crate) oddities: Arc<Oddities>,
    pub(crate) metrics: Arc<Metrics>,
}

pub(crate) enum RegistryMessage {
    /// A caller needs a session.
    Acquire { key: SessionKey, binding: Binding, waiter: Waiter },
    /// A session went live.
    Started(ServerName),
    /// A session ended soon after it went live, before any answer.
    NeverWorked { key: SessionKey, generation: Generation, failure: OpenError },
    /// A session gave its first answer.
    Answered(SessionKey),
    /// A call saw a session fail.
    Lost(Arc<Handle>),
    /// A session is being torn down.
    Closing(Arc<Handle>),
    /// Nothing is left of a session.
    Gone { handle: Arc<Handle>, failure: Option<OpenError> },
    /// A call ended while somebody waits for room.
    FellIdle,
    /// Look for idle sessions and for waiters that gave up.
    Tick,
    /// Close the sessions of a scope, of one server if named; answers how many when they are gone.
    Close { scope: Scope, server: Option<ServerName>, done: oneshot::Sender<usize> },
    /// Hand over what is idle, now and as it falls idle, and open nothing any more; answers when nothing is left.
    Drain { done: oneshot::Sender<()> },
    /// Close everything and open nothing any more.
    Stop { done: oneshot::Sender<()> },
    /// The configuration changed: close what it superseded. Answers once no call is admitted there any more.
    Supersede { done: oneshot::Sender<()> },
    /// What there is.
    Tally(oneshot::Sender<Tally>),
}

/// What there is, for people.
pub(crate) struct Tally {
    pub(crate) handles: Vec<Arc<Handle>>,
    pub(crate) stderr: HashMap<ServerName, String>,
}

pub(crate) struct RegistryState {
    pub(super) pool: Pool,
    spawns: Arc<Semaphore>,
    /// Who waits for the last session to be gone.
    stopped: Vec<oneshot::Sender<()>>,
}

impl Actor for Registry {
    type Msg = RegistryMessage;
    type State = RegistryState;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        // After a restart nothing of the former registry's sessions lives on: they were its linked children.
        write(&self.directory).clear();
        let tick = (self.options.session_idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(10));
        myself.send_interval(tick, || RegistryMessage::Tick);
        Ok(RegistryState {
            pool: Pool::new(self.options.clone()),
            spawns: Arc::new(Semaphore::new(self.options.max_spawns.max(1))),
            stopped: Vec::new(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RegistryMessage::Acquire { key, binding, waiter } => {
                self.acquire(&myself, state, key, binding, vec![waiter]).await;
            }
            RegistryMessage::Started(server) => {
                state.pool.started(&server);
                self.serve_waiting(&myself, state).await;
            }
            RegistryMessage::NeverWorked { key, generation, failure } => {
                state.pool.never_worked(&key, generation, failure);
            }
            RegistryMessage::Answered(key) => state.pool.answered(&key),
            RegistryMessage::Lost(handle) => close_one(&mut state.pool, &handle),
            RegistryMessage::Closing(handle) => {
                if let Some(held) = state.pool.held_of(&handle) {
                    held.closing = true;
                }
            }
            RegistryMessage::Gone { handle, failure } => self.gone(&myself, state, &handle, failure).await,
            RegistryMessage::FellIdle => {
                self.hand_over(state);
                self.serve_waiting(&myself, state).await;
            }
            RegistryMessage::Tick => {
                state.pool.forget_brief_lives();
                self.reap(state);
                self.hand_over(state);
                self.serve_waiting(&myself, state).await;
            }
            RegistryMessage::Close { scope, server, done } => {
                close_scope(&mut state.pool, &scope, server.as_ref(), done);
            }
            RegistryMessage::Stop { done } => {
                close_all(&mut state.pool);
                state.stopped.push(done);
                tell_if_stopped(state);
            }
            RegistryMessage::Drain { done } => {
                state.pool.drain();
                state.stopped.push(done);
                self.hand_over(state);
                tell_if_stopped(state);
            }
            RegistryMessage::Supersede { done } => {
                close_superseded(&mut state.pool, &self.in_force);
                self.chains.keep(self.in_force.get().list.iter().map(|configured| &configured.entry));
                let _ = done.send(());
            }
            RegistryMessage::Tally(reply) => {
                let handles = state.pool.held.values().map(|held| held.handle.clone()).collect();
                let _ = reply.send(Tally { handles, stderr: state.pool.stderr.clone() });
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(cell, error) = event {
            let failed = state.pool.held.values().find(|held| held.actor.get_id() == cell.get_id());
            if let Some(handle) = failed.map(|held| held.handle.clone()) {
                tracing::error!(session = %handle.key, %error, "a session actor failed; its session is closed");
                handle.retire();
                let homes = self.homes.clone();
                tokio::spawn(async move {
                    if let Some(session) = handle.session() {
                        let _ = survived(session.close()).await;
                        leave(&homes, &handle);
                    }
                    let _ = myself.cast(RegistryMessage::Gone { handle, failure: None });
                });
            }
        }
        Ok(())
    }
}

impl Registry {
    /// Finds, joins, opens or queues a session for these waiters.
    async fn acquire(
        &self,
        myself: &ActorRef<RegistryMessage>,
        state: &mut RegistryState,
        key: SessionKey,
        binding: Binding,
        waiters: Vec<Waiter>,
    ) {
        let server = &binding.server;
        if state.pool.stopping {
            return refuse(waiters, &NotOpened::Stopping);
        }
        if !self.in_force.holds(&server.name, binding.generation) {
            return refuse(waiters, &NotOpened::Superseded);
        }
        if let Some(held) = state.pool.held.get_mut(&key) {
            return join(held, &binding, waiters, state.pool.draining);
        }
        if let Some((last, retry_after)) = state.pool.backing_off(&key, binding.generation) {
            return refuse(waiters, &NotOpened::BackingOff { last, retry_after });
        }
        if state.pool.draining && !binding.home.is_there() {
            // Another replica takes it.
            return refuse(waiters, &NotOpened::Moved);
        }
        let kind = Kind::of(server, &binding.home);
        let is_waiting = state.pool.waiting.iter().any(|waiting| waiting.key == key);
        match admit(state.pool.occupancy(kind)) {
            Admission::Open if !is_waiting => {
                let deadline = server.session_init_timeout.map(|bound| Instant::now() + bound);
                self.open(myself, state, key, binding, deadline, waiters).await;
            }
            Admission::Refuse => refuse(waiters, &NotOpened::NoRoom { limit: state.pool.limit(kind) }),
            Admission::EvictAndWait => {
                self.evict(state, kind);
                wait(myself, state, key, binding, waiters);
            }
            Admission::Open | Admission::Wait => wait(myself, state, key, binding, waiters),
        }
    }

    async fn open(
        &self,
        myself: &ActorRef<RegistryMessage>,
        state: &mut RegistryState,
        key: SessionKey,
        binding: Binding,
        deadline: Option<Instant>,
        waiters: Vec<Waiter>,
    ) {
        let epoch = self.book.lock().unwrap_or_else(PoisonError::into_inner).next(&key);
        let max_calls = self.options.max_calls_per_session;
        let handle = Handle::new(key.clone(), binding, epoch, max_calls, myself.clone(), state.pool.wanted.clone());
        let birth = Birth {
            handle: handle.clone(),
            registry: myself.clone(),
            outside: self.outside.clone(),
            homes: self.homes.clone(),
            chains: self.chains.clone(),
            spawns: state.spawns.clone(),
            deadline,
            events: self.events(&handle),
            waiters,
        };
        match Actor::spawn_linked(None, SessionActor, birth, myself.get_cell()).await {
            Ok((actor, _)) => {
                if !handle.home.is_there() {
                    self.metrics.session_opening(&handle.server);
                }
                write(&self.directory).insert(key.clone(), handle.clone());
                let held = Held { handle, actor, closing: false, successors: Vec::new(), gone: Vec::new() };
                state.pool.held.insert(key, held);
                self.homes.show_load(state.pool.load());
            }
            Err(error) => tracing::error!(session = %handle.key, %error, "a session actor did not start"),
        }
    }

    async fn gone(
        &self,
        myself: &ActorRef<RegistryMessage>,
        state: &mut RegistryState,
        handle: &Arc<Handle>,
        failure: Option<OpenError>,
    ) {
        if state.pool.held_of(handle).is_none() {
            return;
        }
        write(&self.directory).remove(&handle.key);
        let Some(held) = state.pool.held.remove(&handle.key) else { return };
        if !handle.home.is_there() {
            self.metrics.session_gone(&handle.server, failure.is_some() || handle.never_worked());
        }
        self.homes.show_load(state.pool.load());
        let scope = &handle.key.scope;
        if handle.is_held() && !state.pool.held.keys().any(|other| other.scope == *scope) {
            self.homes.left_files(scope);
        }
        match failure {
            Some(OpenError::Abandoned | OpenError::Queued(_)) => {}
            Some(error) => {
                if let OpenError::Exited(disconnect) = &error {
                    state.pool.stderr.insert(handle.server.name.clone(), disconnect.stderr.clone());
                }
                state.pool.failed(&handle.key, handle.generation, error);
            }
            None => {
                if let Some(session) = handle.session() {
                    state.pool.stderr.insert(handle.server.name.clone(), session.stderr_tail());
                }
                let standing = is_standing(handle) && self.in_force.holds(&handle.server.name, handle.generation);
                if standing {
                    self.dirty.mark(handle);
                }
            }
        }
        for waiting in held.gone {
            let _ = waiting.send(());
        }
        for (binding, waiter) in held.successors {
            self.acquire(myself, state, handle.key.clone(), binding, vec![waiter]).await;
        }
        self.serve_waiting(myself, state).await;
        tell_if_stopped(state);
    }

    /// Opens for those that wait as far as there is room, and makes room as far as sessions are idle.
    async fn serve_waiting(&self, myself: &ActorRef<RegistryMessage>, state: &mut RegistryState) {
        state.pool.drop_the_gone();
        let mut at = 0;
        while let Some(waiting) = state.pool.waiting.get(at) {
            let kind = Kind::of(&waiting.binding.server, &waiting.binding.home);
            let now = state.pool.occupancy(kind);
            if waiting.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                let Some(late) = state.pool.waiting.remove(at) else { break };
                refuse(late.waiters, &NotOpened::NoRoom { limit: now.limit });
            } else if let Some((last, retry_after)) = state.pool.backing_off(&waiting.key, waiting.binding.generation) {
                let Some(refused) = state.pool.waiting.remove(at) else { break };
                refuse(refused.waiters, &NotOpened::BackingOff { last, retry_after });
            } else if now.held < now.limit {
                let Some(next) = state.pool.waiting.remove(at) else { break };
                self.open(myself, state, next.key, next.binding, next.deadline, next.waiters).await;
            } else {
                if now.has_idle && now.closing < now.waiting {
                    self.evict(state, kind);
                    continue;
                }
                at += 1;
            }
        }
        state.pool.drop_the_gone();
    }
}

/// Queues a key for room, but not beyond its bring-up bound.
fn wait(
    myself: &ActorRef<RegistryMessage>,
    state: &mut RegistryState,
    key: SessionKey,
    binding: Binding,
    waiters: Vec<Waiter>,
) {
    if let Some(bound) = binding.server.session_init_timeout {
        myself.send_after(bound, || RegistryMessage::FellIdle);
    }
    state.pool.wait(key, binding, waiters);
}

fn tell_if_stopped(state: &mut RegistryState) {
    if state.pool.held.is_empty() {
        for stopped in state.stopped.drain(..) {
            let _ = stopped.send(());
        }
    }
}

fn write(directory: &Directory) -> std::sync::RwLockWriteGuard<'_, HashMap<SessionKey, Arc<Handle>>> {
    directory.write().unwrap_or_else(PoisonError::into_inner)
}
