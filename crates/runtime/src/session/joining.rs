//! Callers of a key that has a session already: they are let in, wait for its bring-up, or for its end.

use ractor::MessagingErr;

use super::actor::SessionMessage;
use super::closing::{close, refuse};
use super::handle::{NotAdmitted, NotOpened, Waiter};
use super::home::Home;
use super::pool::Held;
use crate::config::Binding;

/// Callers of a key that has a session: in, behind its bring-up, or behind its end.
pub(super) fn join(held: &mut Held, binding: &Binding, waiters: Vec<Waiter>, is_draining: bool) {
    let later = |waiter| (binding.clone(), waiter);
    if is_elsewhere(held, binding) {
        held.handle.retire();
        close(held, NotOpened::Moved);
    } else if is_draining && held.handle.is_leaving() {
        // Its calls are the last ones here: whoever comes now waits for the next owner.
        return refuse(waiters, &NotOpened::Moved);
    }
    if held.closing || held.handle.is_retired() || held.handle.generation != binding.generation {
        held.successors.extend(waiters.into_iter().map(later));
        return;
    }
    for waiter in waiters {
        match held.handle.admit() {
            Ok(admitted) => drop(waiter.send(Ok(admitted))),
            Err(NotAdmitted::Busy) => drop(waiter.send(Err(NotOpened::Busy))),
            Err(NotAdmitted::Retired) if is_draining => drop(waiter.send(Err(NotOpened::Moved))),
            Err(NotAdmitted::Retired) => held.successors.push(later(waiter)),
            Err(NotAdmitted::Opening) => {
                if let Err(MessagingErr::SendErr(SessionMessage::Join(back))) =
                    held.actor.cast(SessionMessage::Join(vec![waiter]))
                {
                    held.successors.extend(back.into_iter().map(later));
                }
            }
        }
    }
}

/// Whether the session was looked up anew, and is not the one of another replica that is held here. What lives in this
/// replica is what the store says, or will say.
fn is_elsewhere(held: &Held, binding: &Binding) -> bool {
    let Home::There { peer, .. } = &held.handle.home else { return false };
    match &binding.home {
        Home::Here => true,
        Home::There { peer: found, epoch } => {
            found != peer
                || (held.handle.session().is_some() && epoch.is_some_and(|epoch| epoch != held.handle.epoch()))
        }
    }
}
