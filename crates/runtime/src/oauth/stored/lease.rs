//! The right to present a token: as long as the holder may trust it, and no longer (R1).
//!
//! Counted from before the request for it was sent, on this process's own clock, and without its last part. A process
//! that stood still finds it over and sends nothing.

use std::sync::{Arc, Mutex, PoisonError};

use caribou_ports::store::{ChainLease, OAuthChains};
use caribou_ports::token_endpoint::StillHeld;
use tokio::time::Instant;

use super::times::ChainTimes;
use crate::wakeups::OnDrop;

/// Until when a lease is trusted. Clones are the same.
#[derive(Clone)]
pub(super) struct Trust(Arc<Mutex<Instant>>);

impl Trust {
    /// That of a lease whose request was sent at `sent`.
    pub(super) fn from(sent: Instant, times: &ChainTimes) -> Self {
        Self(Arc::new(Mutex::new(until(sent, times))))
    }

    /// What the first byte asks.
    pub(super) fn gate(&self) -> StillHeld {
        let trust = self.clone();
        Arc::new(move || Instant::now() < *trust.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, until: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

fn until(sent: Instant, times: &ChainTimes) -> Instant {
    sent + times.lease.saturating_sub(times.margin)
}

/// Prolongs the lease until what this answers with is dropped. A lease that is lost is trusted no more; the request goes
/// on, since its successor is stored without any.
pub(super) fn renewed(store: Arc<dyn OAuthChains>, lease: ChainLease, times: ChainTimes, trust: Trust) -> OnDrop {
    let renewing = tokio::spawn(async move {
        loop {
            tokio::time::sleep(times.renew).await;
            let sent = Instant::now();
            match store.renew_refresh(lease.clone(), times.lease).await {
                Ok(true) => trust.set(until(sent, &times)),
                Ok(false) => {
                    trust.set(sent);
                    return;
                }
                // Nobody else can begin either while the store is away.
                Err(error) => tracing::debug!("the lease of a token request was not renewed: {error}"),
            }
        }
    });
    OnDrop(renewing.abort_handle())
}
