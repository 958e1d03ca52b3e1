//! One look at the store: what is due of one duty, claimed.

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::task::{Duty, Shard, shards_of};
use caribou_ports::store::{ClaimTasks, ClaimedTask, MAX_CLAIMED, StoreError};

use super::desk::Desk;
use crate::chance::chance;

/// What one look brought.
pub(crate) struct Passed {
    /// The work, one piece for a free slot each.
    pub(super) claimed: Vec<ClaimedTask>,
    /// How long until more was due of our own shards, before anything was claimed; zero = it was.
    pub(super) next: Option<Duration>,
}

/// Claims at most `free` pieces of work of `duty`: of our own shards, then `with_overdue` those that nobody came for.
/// The store is asked to claim only when something is due, so that looking costs it a read.
pub(super) async fn pass(desk: &Desk, duty: Duty, free: usize, with_overdue: bool) -> Result<Passed, StoreError> {
    let peers = desk.membership.peers();
    let mut ours = shards_of(&desk.boot, &peers.claiming());
    // The first are given out first: with more due than there are slots, the last would never be.
    let first = ((chance() * ours.len() as f64) as usize).min(ours.len());
    ours.rotate_left(first);
    let not_of = peers.left_to_others(&desk.configurations);
    let free = u32::try_from(free).unwrap_or(MAX_CLAIMED).min(MAX_CLAIMED);
    let wanted = |shards: Vec<Shard>, at_most: u32, overdue: Duration| ClaimTasks {
        owner: desk.boot.clone(),
        duty,
        shards,
        at_most,
        lease: desk.limits.lease(),
        overdue,
        not_of: not_of.clone(),
    };
    let next = desk.store.next_due(ours.iter().map(|shard| duty.lane(*shard)).collect()).await?;
    let mut claimed = Vec::new();
    if next == Some(Duration::ZERO) && desk.membership.may_claim() {
        claimed = desk.store.claim_due(wanted(ours.clone(), free, Duration::ZERO)).await?;
    }
    let others: Vec<Shard> = Shard::all().filter(|shard| !ours.contains(shard)).collect();
    let room = free.saturating_sub(u32::try_from(claimed.len()).unwrap_or(free));
    if with_overdue && room > 0 && !others.is_empty() && desk.membership.may_claim() {
        match desk.store.claim_due(wanted(others, room, bounds::TASK_OVERDUE)).await {
            Ok(overdue) => claimed.extend(overdue),
            // What was claimed already is worked on.
            Err(error) if claimed.is_empty() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(Passed { claimed, next })
}
