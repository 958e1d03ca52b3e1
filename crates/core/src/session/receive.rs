//! Whether the replica that a call was forwarded to takes it (durability.md 2.2, forward; invariants L1, S2).
//!
//! It is asked once and answers for itself: it never forwards. Whatever it refuses has surely not reached the server.

use std::time::Duration;

use crate::ids::Epoch;

/// Less trust than this is not enough to begin a call that takes longer.
const ENOUGH_TRUST: Duration = Duration::from_secs(1);

/// What a call comes with, and how the replica stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How often it was forwarded.
    pub hops: u32,
    /// The epoch that the caller read; `None` = it was placed here, and nobody held it then.
    pub epoch: Option<Epoch>,
    /// The epoch at which this replica holds the session, if it does.
    pub held: Option<Epoch>,
    /// For how long this replica still trusts itself.
    pub trust: Duration,
    /// How long the call may take.
    pub deadline: Duration,
    /// Whether this replica hands over what it has.
    pub is_draining: bool,
}

/// Why a call is not taken. Nothing of it was sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// It was forwarded before: the way must have one step.
    #[error("the call was forwarded more than once")]
    TooManyHops,
    /// This replica does not hold the session.
    #[error("this replica does not hold the session")]
    NotOwner,
    /// It holds the session at another epoch.
    #[error("the session is at another epoch")]
    WrongEpoch,
    /// It may not act at the moment.
    #[error("this replica does not trust its own lease")]
    Fenced,
    /// It takes nothing new.
    #[error("this replica is draining")]
    Draining,
    /// Addresses are used again: whoever was asked is not here any more.
    #[error("the request is meant for another life of a replica")]
    WrongBoot,
}

impl NotTaken {
    /// Its name as a label of metrics.
    pub fn kind(self) -> &'static str {
        match self {
            Self::TooManyHops => "too_many_hops",
            Self::NotOwner => "not_owner",
            Self::WrongEpoch => "wrong_epoch",
            Self::Fenced => "fenced",
            Self::Draining => "draining",
            Self::WrongBoot => "wrong_boot",
        }
    }
}

/// Decides. The epoch at which the call is made; `None` = the session is claimed first.
///
/// # Errors
/// The call is not taken: look the session up again, in the store.
pub fn receive(call: Received) -> Result<Option<Epoch>, NotTaken> {
    if call.hops > 1 {
        return Err(NotTaken::TooManyHops);
    }
    if call.trust.is_zero() || call.trust < ENOUGH_TRUST.min(call.deadline) {
        return Err(NotTaken::Fenced);
    }
    match (call.epoch, call.held) {
        (Some(asked), Some(held)) if asked == held => Ok(Some(held)),
        (Some(_), Some(_)) => Err(NotTaken::WrongEpoch),
        (Some(_), None) => Err(NotTaken::NotOwner),
        // Opened here meanwhile, for another call that was placed.
        (None, Some(held)) => Ok(Some(held)),
        (None, None) if call.is_draining => Err(NotTaken::Draining),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Received = Received {
        hops: 1,
        epoch: Some(Epoch(3)),
        held: Some(Epoch(3)),
        trust: Duration::from_secs(20),
        deadline: Duration::from_secs(60),
        is_draining: false,
    };

    #[test]
    fn only_the_owner_at_the_right_epoch_within_its_trust_takes_a_call() {
        // Durability.md 2.2, forward.
        let (short, epoch) = (Duration::from_millis(999), Some(Epoch(3)));
        for (call, expected) in [
            (SOUND, Ok(epoch)),
            (Received { hops: 2, ..SOUND }, Err(NotTaken::TooManyHops)),
            (Received { held: None, ..SOUND }, Err(NotTaken::NotOwner)),
            (Received { held: Some(Epoch(4)), ..SOUND }, Err(NotTaken::WrongEpoch)),
            (Received { trust: short, ..SOUND }, Err(NotTaken::Fenced)),
            (Received { trust: short, deadline: short, ..SOUND }, Ok(epoch)),
            (Received { trust: Duration::ZERO, deadline: Duration::ZERO, ..SOUND }, Err(NotTaken::Fenced)),
            // What it still has is served until it is handed over.
            (Received { is_draining: true, ..SOUND }, Ok(epoch)),
            (Received { epoch: None, held: None, ..SOUND }, Ok(None)),
            (Received { epoch: None, ..SOUND }, Ok(epoch)),
            (Received { epoch: None, held: None, is_draining: true, ..SOUND }, Err(NotTaken::Draining)),
        ] {
            assert_eq!(receive(call), expected, "{call:?}");
        }
    }
}
