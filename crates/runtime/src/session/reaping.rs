//! Which sessions are closed that nobody uses: to make room, after a while, or to hand them over. Never one with a call in
//! flight or an unfinished task.

use std::sync::Arc;

use super::closing::close_one;
use super::handle::Handle;
use super::pool::Kind;
use super::registry::{Registry, RegistryState};

impl Registry {
    /// Closes the session idle for longest.
    pub(super) fn evict(&self, state: &mut RegistryState, kind: Kind) {
        let Some(victim) = state.pool.idle_longest(kind).cloned() else { return };
        if victim.retire_if_idle() {
            self.metrics.session_reaped(&victim.server, "evicted");
            close_one(&mut state.pool, &victim);
        }
    }

    /// While this replica drains: no session takes a further call, and each is closed when its last one has ended, so that
    /// another replica may open it.
    pub(super) fn hand_over(&self, state: &mut RegistryState) {
        if !state.pool.draining {
            return;
        }
        let all: Vec<Arc<Handle>> = state.pool.held.values().map(|held| held.handle.clone()).collect();
        for handle in all {
            handle.leave();
            if handle.retire_if_idle() {
                close_one(&mut state.pool, &handle);
            }
        }
    }

    /// Closes every session that nobody called for too long.
    pub(super) fn reap(&self, state: &mut RegistryState) {
        let idle = self.options.session_idle;
        let tired: Vec<Arc<Handle>> = state
            .pool
            .held
            .values()
            .filter(|held| !held.closing && !is_standing(&held.handle) && held.handle.idle_for() >= idle)
            .map(|held| held.handle.clone())
            .collect();
        for handle in tired {
            if handle.retire_if_idle() {
                self.metrics.session_reaped(&handle.server, "idle");
                close_one(&mut state.pool, &handle);
            }
        }
    }
}

/// The catalogue's session with a remote server stays open to hear of changes.
pub(super) fn is_standing(handle: &Handle) -> bool {
    handle.key.scope.is_catalog() && !handle.server.transport.owns_process()
}
