//! What was heard of the generations, and what is applied here.
//!
//! Two maps, because hearing and applying are apart: whoever looks something up between the two waits for the second.
//! An entry is replaced only by what is known later: a reading of the store that began before something newer was heard
//! says nothing about it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use caribou_core::ids::{BootId, ServerName};
use caribou_core::reset::{ResetGeneration, ResetScope, SIGNAL_ALIVE, Told, told};
use caribou_ports::peers::Peers;
use tokio::sync::{Mutex as Turn, Notify};
use tokio::time::Instant;

use super::teller::Outbox;
use crate::membership::{Membership, OwnLife};
use crate::outside::{Outside, Resets};

/// How long a generation that could not be applied is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// The generations as this replica knows them. Clones are the same.
#[derive(Clone)]
pub(crate) struct Seen(pub(super) Arc<Book>);

pub(super) struct Book {
    pub(super) boot: BootId,
    pub(super) resets: Resets,
    pub(super) state: Mutex<State>,
    /// One reading of the store at a time.
    pub(super) turn: Turn<()>,
    /// Somebody wants the store to be read now.
    pub(super) look_now: Notify,
    /// Something is heard that is not applied.
    pub(super) differs: Notify,
    pub(super) outbox: Outbox,
    /// The way to the others, where there is one beside the signal.
    pub(super) peers: OnceLock<(Arc<dyn Peers>, Membership)>,
}

pub(super) struct State {
    has_begun: bool,
    /// As bounded as what is stored.
    heard: HashMap<ResetScope, Heard>,
    applied: HashMap<ResetScope, ResetGeneration>,
    /// The last one of everything that this replica itself put in force.
    pub(super) ours: Option<ResetGeneration>,
    /// Whether the two differ: asked before each look-up, so it is worked out with each change of them.
    differs: bool,
    /// What could not be applied is left alone until then.
    not_before: Option<Instant>,
    /// When the last reading began that succeeded.
    pub(super) read: Instant,
    /// When the last one ended that did not, and when somebody last waited for one in vain.
    pub(super) failed: Option<Instant>,
    /// A subscription hears everything until then.
    alive_until: Option<Instant>,
    /// When the timer last ran.
    pub(super) beat: Instant,
}

#[derive(Clone, Copy)]
struct Heard {
    generation: ResetGeneration,
    at: Instant,
}

/// A scope that stands elsewhere than what is applied; `None` = its count is gone.
pub(crate) type Difference = (ResetScope, Option<ResetGeneration>);

impl Seen {
    /// What this life hears, if there is anybody to hear of.
    pub(crate) fn of(boot: &BootId, outside: &Outside, life: Option<&OwnLife>) -> Option<Self> {
        let seen = Self::new(boot.clone(), outside.configuration.as_ref()?.resets.clone()?);
        if let Some((cluster, life)) = outside.cluster.as_ref().zip(life) {
            let _ = seen.0.peers.set((cluster.peers.clone(), life.membership.clone()));
        }
        Some(seen)
    }

    /// Nothing is known yet.
    pub(crate) fn new(boot: BootId, resets: Resets) -> Self {
        let now = Instant::now();
        let state = State {
            has_begun: false,
            heard: HashMap::new(),
            applied: HashMap::new(),
            ours: None,
            differs: false,
            not_before: None,
            read: now,
            failed: None,
            alive_until: None,
            beat: now,
        };
        Self(Arc::new(Book {
            boot,
            resets,
            state: Mutex::new(state),
            turn: Turn::default(),
            look_now: Notify::new(),
            differs: Notify::new(),
            outbox: Outbox::default(),
            peers: OnceLock::new(),
        }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody says that something moved: the store is read soon.
    pub(crate) fn nudged(&self) {
        self.0.look_now.notify_one();
    }

    /// Takes what the store said to a reading that began at `began`. Whether something newer was heard meanwhile, so that
    /// it must be read again.
    pub(super) fn read(&self, stored: Vec<(ResetScope, ResetGeneration)>, began: Instant) -> bool {
        let mut state = self.state();
        let mut is_outdated = false;
        let mut stands = HashSet::new();
        for (scope, generation) in stored {
            let known = state.heard.get(&scope);
            match known {
                Some(known) if known.at > began && known.generation != generation => is_outdated = true,
                _ => {
                    state.heard.insert(scope.clone(), Heard { generation, at: began });
                }
            }
            stands.insert(scope);
        }
        state.heard.retain(|scope, known| {
            let is_newer = known.at > began && !stands.contains(scope);
            is_outdated |= is_newer;
            is_newer || stands.contains(scope)
        });
        state.read = state.read.max(began);
        state.failed = None;
        self.tell_difference(&mut state);
        is_outdated
    }

    /// Takes what somebody said who is not the store. Whether only the store can tell what it means.
    pub(super) fn hear(&self, scope: ResetScope, generation: ResetGeneration) -> bool {
        let mut state = self.state();
        let known = state.heard.get(&scope).map(|known| known.generation);
        match told(known, generation) {
            Told::Known => false,
            Told::Newer => {
                state.heard.insert(scope, Heard { generation, at: Instant::now() });
                self.tell_difference(&mut state);
                false
            }
            Told::Doubtful => true,
        }
    }

    /// Takes it for true: the store cannot be asked, and an extra reset is better than a missed one (invariant G2).
    pub(super) fn believe(&self, scope: ResetScope, generation: ResetGeneration) {
        let mut state = self.state();
        state.heard.insert(scope, Heard { generation, at: Instant::now() });
        self.tell_difference(&mut state);
    }

    /// Everything as it stands is applied, but the document, which was read before: nothing was opened yet. Once: of a
    /// role that was started anew, sessions may be left.
    pub(super) fn begun(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.has_begun, true) {
            return self.tell_difference(&mut state);
        }
        let heard = state.heard.iter().filter(|(scope, _)| **scope != ResetScope::Document);
        state.applied = heard.map(|(scope, known)| (scope.clone(), known.generation)).collect();
        self.tell_difference(&mut state);
    }

    /// The generations that are applied here of everything and of this server, as a text that is another one after a
    /// reset of either.
    pub(crate) fn under(&self, server: &ServerName) -> String {
        let state = self.state();
        let of = |scope| state.applied.get(&scope).map(ToString::to_string).unwrap_or_default();
        format!("{} {}", of(ResetScope::Global), of(ResetScope::Server(server.clone())))
    }

    /// This replica itself put these generations in force, and has applied them.
    pub(crate) fn moved(&self, moved: &[(ResetScope, ResetGeneration)]) {
        let mut state = self.state();
        for (scope, generation) in moved {
            let known = state.heard.get(scope).map(|known| known.generation);
            // Somebody may have moved it again, and been heard already.
            if known.is_none_or(|known| !known.includes(*generation)) {
                state.heard.insert(scope.clone(), Heard { generation: *generation, at: Instant::now() });
            }
            state.applied.insert(scope.clone(), *generation);
        }
        self.tell_difference(&mut state);
    }

    /// Whether something is heard that is not applied; not while applying it just failed.
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.state();
        state.not_before.is_none_or(|not_before| Instant::now() >= not_before) && state.differs
    }

    /// What stands elsewhere than what is applied.
    pub(crate) fn differences(&self) -> Vec<Difference> {
        let state = self.state();
        let scopes: HashSet<&ResetScope> = state.heard.keys().chain(state.applied.keys()).collect();
        let stands = |scope: &ResetScope| state.heard.get(scope).map(|known| known.generation);
        let differing = scopes.into_iter().filter(|scope| stands(scope) != state.applied.get(scope).copied());
        differing.map(|scope| (scope.clone(), stands(scope))).collect()
    }

    /// Whether what is applied of `scope` is this generation, or came after it.
    pub(crate) fn has_applied(&self, scope: &ResetScope, generation: ResetGeneration) -> bool {
        self.state().applied_to(scope).is_some_and(|applied| applied.includes(generation))
    }

    /// Whether everything is superseded by this replica itself, whose own message is on its way to who does it.
    pub(crate) fn is_ours(&self, differences: &[Difference]) -> bool {
        let ours = self.state().ours;
        let global = differences.iter().find(|(scope, _)| *scope == ResetScope::Global);
        ours.is_some() && global.is_some_and(|(_, generation)| *generation == ours)
    }

    /// These are applied.
    pub(crate) fn applied(&self, differences: &[Difference]) {
        let mut state = self.state();
        state.not_before = None;
        for (scope, generation) in differences {
            match generation {
                Some(generation) => drop(state.applied.insert(scope.clone(), *generation)),
                None => drop(state.applied.remove(scope)),
            }
        }
        self.tell_difference(&mut state);
    }

    /// Something could not be applied; it is tried again in a while.
    pub(crate) fn not_applied(&self) {
        self.state().not_before = Some(Instant::now() + AGAIN);
    }

    /// The scopes that are known.
    pub(super) fn scopes(&self) -> Vec<ResetScope> {
        self.state().heard.keys().cloned().collect()
    }

    /// A subscription has shown that it hears everything.
    pub(super) fn signal_alive(&self) {
        self.state().alive_until = Some(Instant::now() + SIGNAL_ALIVE);
    }

    /// There is none that does.
    pub(super) fn signal_lost(&self) {
        self.state().alive_until = None;
    }

    fn tell_difference(&self, state: &mut State) {
        state.differs = state.is_different();
        if state.differs {
            self.0.differs.notify_one();
        }
    }
}

impl State {
    fn is_different(&self) -> bool {
        self.heard.len() != self.applied.len()
            || self.heard.iter().any(|(scope, known)| self.applied.get(scope) != Some(&known.generation))
    }

    pub(super) fn applied_to(&self, scope: &ResetScope) -> Option<ResetGeneration> {
        self.applied.get(scope).copied()
    }

    pub(super) fn is_signal_alive(&self, now: Instant) -> bool {
        self.alive_until.is_some_and(|until| now < until)
    }
}
