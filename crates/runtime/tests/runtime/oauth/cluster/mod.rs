//! Several replicas in one process, under virtual time: one store, one strict provider, and faults at every border.
//!
//! A replica that stands still, or that has crashed, is one whose ports do not answer: what is between two of them
//! takes no time. A provider goes on with what it was sent.

mod mutant;
mod provider;
mod replica;
mod shared_store;

pub(super) use mutant::Mutant;
pub(super) use provider::Fate;
pub(super) use replica::{Cluster, Member, TIMES};
