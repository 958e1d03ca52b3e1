//! Closing sessions: one, those of a scope, or all. A close is a message to the session's actor; the place in the
//! pool is held until nothing is left of it (invariants B1, S3).

use std::sync::Arc;

use caribou_core::ids::{Scope, ServerName, SessionKey};
use caribou_ports::mcp::OpenError;
use tokio::sync::oneshot;

use super::actor::SessionMessage;
use super::handle::{Handle, NotOpened, Waiter};
use super::pool::{Held, Pool};
use crate::config::InForce;

/// Tells all of them the same.
pub(super) fn refuse(waiters: Vec<Waiter>, why: &NotOpened) {
    for waiter in waiters {
        let _ = waiter.send(Err(why.clone()));
    }
}

/// Closes one session that was retired.
pub(super) fn close_one(pool: &mut Pool, handle: &Arc<Handle>) {
    if let Some(held) = pool.held_of(handle) {
        close(held, NotOpened::Failed(OpenError::Abandoned));
    }
}

/// Closes one session; callers that wait for its bring-up are told why.
pub(super) fn close(held: &mut Held, why: NotOpened) {
    held.closing = true;
    let _ = held.actor.cast(SessionMessage::Close(why));
}

/// Closes the sessions of a scope, live or being opened, and refuses whoever waits for one; `done` hears how many when
/// they are gone.
pub(super) fn close_scope(pool: &mut Pool, scope: &Scope, server: Option<&ServerName>, done: oneshot::Sender<usize>) {
    let matches = |key: &SessionKey| key.scope == *scope && server.is_none_or(|server| key.server == *server);
    for waiting in pool.waiting.iter_mut().filter(|waiting| matches(&waiting.key)) {
        refuse(std::mem::take(&mut waiting.waiters), &NotOpened::Failed(OpenError::Abandoned));
    }
    let mut gone = Vec::new();
    for held in pool.held.values_mut().filter(|held| matches(&held.handle.key)) {
        // A session of another replica is only left; that one closes it.
        if !held.handle.home.is_there() {
            let (tell, told) = oneshot::channel();
            held.gone.push(tell);
            gone.push(told);
        }
        held.handle.retire();
        close(held, NotOpened::Failed(OpenError::Abandoned));
    }
    tokio::spawn(async move {
        let count = gone.len();
        for told in gone {
            let _ = told.await;
        }
        let _ = done.send(count);
    });
}

/// Closes what was opened under a configuration that is no longer in force, refuses whoever waits to open more of it
/// (invariant G1), and forgets the servers that are gone with it (B1).
pub(super) fn close_superseded(pool: &mut Pool, in_force: &InForce) {
    pool.forget_all_but(|server| in_force.has(server));
    for waiting in &mut pool.waiting {
        if !in_force.holds(&waiting.binding.server.name, waiting.binding.generation) {
            refuse(std::mem::take(&mut waiting.waiters), &NotOpened::Superseded);
        }
    }
    let stale = |handle: &Handle| !in_force.holds(&handle.server.name, handle.generation);
    for held in pool.held.values_mut().filter(|held| stale(&held.handle)) {
        held.handle.retire();
        close(held, NotOpened::Superseded);
    }
}

/// Closes everything; nothing is opened any more.
pub(super) fn close_all(pool: &mut Pool) {
    pool.stopping = true;
    for waiting in pool.waiting.drain(..) {
        refuse(waiting.waiters, &NotOpened::Stopping);
    }
    for held in pool.held.values_mut() {
        let successors = std::mem::take(&mut held.successors).into_iter().map(|(_, waiter)| waiter);
        refuse(successors.collect(), &NotOpened::Stopping);
        held.handle.retire();
        close(held, NotOpened::Stopping);
    }
}
