//! What the keeper is told, all of it by itself and its children.

use std::collections::BTreeSet;

use caribou_core::ids::BootId;
use caribou_ports::store::{Renewed, StoreError, StoredReplica};

use super::trust::Moment;

/// A message to the keeper.
#[derive(Debug)]
pub(crate) enum MembershipMessage {
    /// The lease is to be renewed.
    Renew,
    /// It was asked for, at this time.
    Renewed {
        /// Before it was sent: trust counts from here.
        sent: Moment,
        /// What the store says; `None` = no answer in time, or a fault of ours.
        answer: Option<Result<Renewed, StoreError>>,
    },
    /// The others are to be looked at.
    Look,
    /// They were.
    Looked(Option<Result<Vec<StoredReplica>, StoreError>>),
    /// Those who are gone were buried, except these: they are owed to the next look.
    Buried(BTreeSet<BootId>),
}
