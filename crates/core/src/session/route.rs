//! Where a call of a session goes (durability.md 2.2, look up; invariants L1, S3).
//!
//! The row of the session is the truth. Its owner answers, as long as its life is not known to have ended; whoever takes
//! over from a dead one waits until the guard of the dead one has surely ended the child.

use std::time::Duration;

use crate::ids::{BootId, Epoch};

/// From the death of an owner to the first moment at which another one may begin: what is left of its children ends
/// meanwhile (durability.md 2.3, the gap).
pub const GAP: Duration = Duration::from_secs(1);

/// What the store says of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Who holds it; `None` = nobody.
    pub owner: Option<Owner>,
    /// The last epoch that was given out; 0 = none ever.
    pub epoch: Epoch,
}

/// Who holds a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Which life of which replica.
    pub boot: BootId,
    /// How that life is.
    pub life: Life,
}

/// How the life of a replica is, by the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It takes part.
    Up,
    /// It hands over what it has, and takes nothing new.
    Draining,
    /// It was declared dead, or ended, so long ago.
    Ended(Duration),
}

/// Where a call goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// This replica holds the session at this epoch.
    Here(Epoch),
    /// Another one does.
    There {
        /// Which.
        owner: BootId,
        /// At which epoch.
        epoch: Epoch,
    },
    /// Nobody does: it is claimed first.
    Claim,
    /// Its owner is gone, but not for long enough: look again then.
    Wait(Duration),
    /// Its owner hands it over: look again soon.
    HandedOver {
        /// Who.
        owner: BootId,
        /// At which epoch it still is.
        epoch: Epoch,
    },
}

/// Decides for the replica that is `ours`. `None` = the store has never heard of the session.
pub fn route(ours: &BootId, session: Option<&Ownership>) -> Route {
    let Some(Ownership { owner: Some(owner), epoch }) = session else { return Route::Claim };
    let (boot, epoch) = (owner.boot.clone(), *epoch);
    match owner.life {
        // Ours may be draining: a call that is here already is answered.
        _ if boot == *ours => Route::Here(epoch),
        Life::Up => Route::There { owner: boot, epoch },
        Life::Draining => Route::HandedOver { owner: boot, epoch },
        Life::Ended(since) if since >= GAP => Route::Claim,
        Life::Ended(since) => Route::Wait(GAP - since),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_goes_to_the_owner_and_a_dead_ones_session_is_taken_only_after_the_gap() {
        // Durability.md 2.2, look up and activate.
        let (ours, theirs) = (BootId::from("ours"), BootId::from("theirs"));
        let epoch = Epoch(4);
        let held = |boot: &BootId, life| {
            let owner = Some(Owner { boot: boot.clone(), life });
            Some(Ownership { owner, epoch })
        };
        let millis = Duration::from_millis;
        let there = Route::There { owner: theirs.clone(), epoch };
        let handed_over = Route::HandedOver { owner: theirs.clone(), epoch };
        for (session, expected) in [
            (None, Route::Claim),
            (Some(Ownership { owner: None, epoch }), Route::Claim),
            (held(&ours, Life::Up), Route::Here(epoch)),
            (held(&ours, Life::Draining), Route::Here(epoch)),
            (held(&theirs, Life::Up), there),
            (held(&theirs, Life::Draining), handed_over),
            (held(&theirs, Life::Ended(millis(0))), Route::Wait(GAP)),
            (held(&theirs, Life::Ended(millis(999))), Route::Wait(millis(1))),
            (held(&theirs, Life::Ended(GAP)), Route::Claim),
        ] {
            assert_eq!(route(&ours, session.as_ref()), expected, "{session:?}");
        }
    }
}
