//! The registry's state: which sessions exist, who waits for room, which servers back off. Decides nothing that
//! `caribou-core` decides; does nothing that takes time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::backoff;
use caribou_core::bounds::BRIEF_LIVES_REMEMBERED;
use caribou_core::config::ServerConfig;
use caribou_core::ids::{CredentialDigest, ServerName, SessionKey, UserId};
use caribou_core::session::Occupancy;
use caribou_ports::mcp::OpenError;
use ractor::ActorRef;
use tokio::time::Instant;

use super::actor::SessionMessage;
use super::closing::refuse;
use super::handle::{Handle, NotOpened, Waiter};
use super::home::Home;
use crate::config::{Binding, Generation};
use crate::options::Options;

/// One session of the pool.
pub(super) struct Held {
    pub(super) handle: Arc<Handle>,
    pub(super) actor: ActorRef<SessionMessage>,
    pub(super) closing: bool,
    /// Callers of the same key who came while it was closing, and what they go by.
    pub(super) successors: Vec<(Binding, Waiter)>,
    /// Who wants to know when it is gone.
    pub(super) gone: Vec<tokio::sync::oneshot::Sender<()>>,
}

/// A key that waits for room.
pub(super) struct WaitingKey {
    pub(super) key: SessionKey,
    pub(super) binding: Binding,
    pub(super) deadline: Option<Instant>,
    pub(super) waiters: Vec<Waiter>,
}

/// What is left alone after failures: a server that does not come up, for all; one that refuses a credential, or comes
/// up and ends before it answers, for the user and the credentials it happened to. Users can bring that about
/// themselves, and must not block others (invariant P1).
type Blamed = (ServerName, Option<(UserId, Option<CredentialDigest>)>);

/// Failed starts in a row, under one definition of the server: they say nothing about another.
struct Failing {
    generation: Generation,
    failures: u32,
    not_before: Instant,
    last: OpenError,
}

/// Children and remote sessions are counted apart: they cost different things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Child,
    Remote,
}

impl Kind {
    /// A child of another replica costs no more here than a remote session.
    pub(super) fn of(server: &ServerConfig, home: &Home) -> Self {
        if server.transport.owns_process() && !home.is_there() { Self::Child } else { Self::Remote }
    }
}

/// Everything the registry knows.
pub(super) struct Pool {
    pub(super) options: Options,
    pub(super) held: HashMap<SessionKey, Held>,
    pub(super) waiting: VecDeque<WaitingKey>,
    failing: HashMap<Blamed, Failing>,
    /// Last stderr lines of each server's latest child that is gone.
    pub(super) stderr: HashMap<ServerName, String>,
    /// Shared with all handles: whether a call that ends should tell the registry.
    pub(super) wanted: Arc<AtomicBool>,
    pub(super) stopping: bool,
    /// Whether what is idle is handed over, and nothing is opened any more.
    pub(super) draining: bool,
}

impl Pool {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            held: HashMap::new(),
            waiting: VecDeque::new(),
            failing: HashMap::new(),
            stderr: HashMap::new(),
            wanted: Arc::new(AtomicBool::new(false)),
            stopping: false,
            draining: false,
        }
    }

    /// The part of the sessions with children that is in use, 0 to 1.
    pub(super) fn load(&self) -> f32 {
        let held = u16::try_from(self.of_kind(Kind::Child).count()).unwrap_or(u16::MAX);
        let limit = u16::try_from(self.limit(Kind::Child)).unwrap_or(u16::MAX).max(1);
        f32::from(held) / f32::from(limit)
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Held> {
        self.held.values().filter(move |held| Kind::of(&held.handle.server, &held.handle.home) == kind)
    }

    /// The entry of exactly this session, not of a later one under its key.
    pub(super) fn held_of(&mut self, handle: &Arc<Handle>) -> Option<&mut Held> {
        self.held.get_mut(&handle.key).filter(|held| Arc::ptr_eq(&held.handle, handle))
    }

    /// How full the pool is for sessions of this kind.
    pub(super) fn occupancy(&self, kind: Kind) -> Occupancy {
        Occupancy {
            held: self.of_kind(kind).count(),
            closing: self.of_kind(kind).filter(|held| held.closing).count(),
            limit: self.limit(kind),
            waiting: self
                .waiting
                .iter()
                .filter(|waiting| Kind::of(&waiting.binding.server, &waiting.binding.home) == kind)
                .count(),
            max_waiting: caribou_core::bounds::MAX_WAITING_FOR_ROOM,
            has_idle: self.idle_longest(kind).is_some(),
        }
    }

    pub(super) fn limit(&self, kind: Kind) -> usize {
        match kind {
            Kind::Child => self.options.max_live_sessions,
            Kind::Remote => self.options.max_remote_sessions,
        }
    }

    /// The session whose last call is longest ago, among those with none in flight.
    pub(super) fn idle_longest(&self, kind: Kind) -> Option<&Arc<Handle>> {
        self.of_kind(kind)
            .filter(|held| !held.closing && held.handle.is_idle())
            .max_by_key(|held| held.handle.idle_for())
            .map(|held| &held.handle)
    }

    /// Lets one more waiter in: with those of its key, or at the end of the queue.
    pub(super) fn wait(&mut self, key: SessionKey, binding: Binding, waiters: Vec<Waiter>) {
        self.wanted.store(true, Ordering::Release);
        match self.waiting.iter_mut().find(|waiting| waiting.key == key) {
            Some(waiting) => {
                waiting.binding = binding;
                waiting.waiters.extend(waiters);
            }
            None => {
                let deadline = binding.server.session_init_timeout.map(|bound| Instant::now() + bound);
                self.waiting.push_back(WaitingKey { key, binding, deadline, waiters });
            }
        }
    }

    /// From now on what falls idle is told of, and nothing new is opened: whoever waits is sent elsewhere.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        for waiting in self.waiting.drain(..) {
            refuse(waiting.waiters, &NotOpened::Moved);
        }
        self.wanted.store(true, Ordering::Release);
    }

    /// Forgets waiters that gave up, and keys nobody waits for any more.
    pub(super) fn drop_the_gone(&mut self) {
        for waiting in &mut self.waiting {
            waiting.waiters.retain(|waiter| !waiter.is_closed());
        }
        self.waiting.retain(|waiting| !waiting.waiters.is_empty());
        self.wanted.store(self.draining || !self.waiting.is_empty(), Ordering::Release);
    }

    /// Whether the server is left alone for now, as far as this key and generation are concerned: its last failure, and
    /// for how long.
    pub(super) fn backing_off(&self, key: &SessionKey, generation: Generation) -> Option<(OpenError, Duration)> {
        let now = Instant::now();
        let rows = [(key.server.clone(), None), blamed_by_user(key)];
        let failing = rows.iter().filter_map(|row| self.failing.get(row));
        let failing = failing.filter(|failing| failing.generation == generation);
        let failing = failing.max_by_key(|failing| failing.not_before)?;
        let left = failing.not_before.saturating_duration_since(now);
        (!left.is_zero()).then(|| (failing.last.clone(), left))
    }

    /// Notes one more failed start in a row.
    pub(super) fn failed(&mut self, key: &SessionKey, generation: Generation, error: OpenError) {
        match error {
            OpenError::Denied(_) => self.blame(blamed_by_user(key), generation, error),
            error => self.blame((key.server.clone(), None), generation, error),
        }
    }

    /// Notes one more session in a row that ended before it answered anything.
    pub(super) fn never_worked(&mut self, key: &SessionKey, generation: Generation, error: OpenError) {
        self.blame(blamed_by_user(key), generation, error);
    }

    fn blame(&mut self, blamed: Blamed, generation: Generation, error: OpenError) {
        let before = self.failing.get(&blamed).filter(|failing| failing.generation == generation);
        let failures = before.map_or(0, |failing| failing.failures).saturating_add(1);
        let not_before = Instant::now() + backoff::before_next_start(failures);
        self.failing.insert(blamed, Failing { generation, failures, not_before, last: error });
    }

    /// Forgets brief lives of long ago, so that what is remembered of users is bounded by what starts in that time.
    pub(super) fn forget_brief_lives(&mut self) {
        let now = Instant::now();
        self.failing.retain(|(_, user), failing| user.is_none() || failing.not_before + BRIEF_LIVES_REMEMBERED > now);
    }

    /// Forgets how other servers failed and what they said: they are gone, or switched off.
    pub(super) fn forget_all_but(&mut self, is_kept: impl Fn(&ServerName) -> bool) {
        self.failing.retain(|(server, _), _| is_kept(server));
        self.stderr.retain(|server, _| is_kept(server));
    }

    /// A start that worked ends the row.
    pub(super) fn started(&mut self, server: &ServerName) {
        self.failing.remove(&(server.clone(), None));
    }

    /// A session that answered ends the row of brief lives of its user.
    pub(super) fn answered(&mut self, key: &SessionKey) {
        self.failing.remove(&blamed_by_user(key));
    }
}

fn blamed_by_user(key: &SessionKey) -> Blamed {
    (key.server.clone(), Some((key.scope.user.clone(), key.credential)))
}
