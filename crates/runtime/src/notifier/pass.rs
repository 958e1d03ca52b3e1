//! One look at the store: what is due to one sink, claimed.

use std::time::Duration;

use caribou_core::notification::Audience;
use caribou_ports::store::{ClaimDeliveries, ClaimedDelivery, MAX_CLAIMED, StoreError};

use super::desk::Desk;

/// What one look brought.
pub(crate) struct Passed {
    /// The deliveries, one for a free slot each.
    pub(super) claimed: Vec<ClaimedDelivery>,
    /// How long until one was due, before anything was claimed; zero = one was.
    pub(super) next: Option<Duration>,
}

/// Claims at most `free` deliveries about tasks of these users. The store is asked to claim only when one is due, so that looking costs it a read.
pub(super) async fn pass(desk: &Desk, free: usize, of: Audience) -> Result<Passed, StoreError> {
    let next = desk.store.next_delivery(desk.to()).await?;
    let mut claimed = Vec::new();
    if next == Some(Duration::ZERO) && desk.membership.may_claim() {
        let wanted = ClaimDeliveries {
            owner: desk.boot.clone(),
            sink: desk.to(),
            of,
            at_most: u32::try_from(free).unwrap_or(MAX_CLAIMED).min(MAX_CLAIMED),
            lease: desk.limits.lease(),
        };
        claimed = desk.store.claim_deliveries(wanted).await?;
    }
    Ok(Passed { claimed, next })
}
