//! From the servers in force and those of a new document to what is in force next.

use std::collections::HashMap;

use caribou_core::config::{ServerEntry, Touch, touch};
use caribou_core::ids::ServerName;

use super::in_force::{Configured, InForce};

/// The next servers in force, in the order of the new document. Untouched ones stay the same objects; those whose
/// connection changed get a generation never given out before.
pub(crate) fn reconciled(in_force: &InForce, document: Vec<ServerEntry>) -> Vec<Configured> {
    let now = in_force.get();
    let known: HashMap<&ServerName, &Configured> =
        now.list.iter().map(|configured| (&configured.entry.name, configured)).collect();
    let next = document.into_iter().map(|entry| {
        let old = known.get(&entry.name);
        let touched = old.and_then(|old| match (&old.entry.config, &entry.config) {
            (Ok(before), Ok(after)) => Some(touch(before, after)),
            _ => None,
        });
        match (old, touched) {
            (Some(old), Some(Touch::Untouched)) => (*old).clone(),
            (Some(old), Some(Touch::Relist)) => Configured { entry, generation: old.generation },
            _ => Configured { entry, generation: in_force.fresh() },
        }
    });
    next.collect()
}

/// Every server under a new generation, those of users too: nothing opened or found so far counts any more.
pub(super) fn renewed(in_force: &InForce, servers: Vec<ServerEntry>) -> Vec<Configured> {
    in_force.renew_personal();
    servers.into_iter().map(|entry| Configured { entry, generation: in_force.fresh() }).collect()
}
