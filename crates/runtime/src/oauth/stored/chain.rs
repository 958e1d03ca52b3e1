//! One connection's share in a stored chain: what of its row this process can read, and what it still owes it.

use std::sync::{Mutex, PoisonError};

use caribou_core::config::{OAuth, Secret};
use caribou_core::ids::{BootId, ServerName};
use caribou_core::oauth::Fingerprint;
use caribou_core::oauth::chain_state::{AccessKind, AccessSeen, ChainPolicy, ChainSeen};
use caribou_ports::store::{FailedRefresh, GrantId, StoreError, StoredChain, TokenColumn};
use caribou_ports::vault::NotOpened;

use super::nudges::Nudges;
use super::times::StoredChains;
use super::underway::Underway;
use super::unsaved::Unsaved;
use crate::oauth::alarm::Alarm;

/// The chain of one connection from one seed. What is here is this process's; the chain is the row's.
pub(in crate::oauth) struct SharedChain {
    pub(super) connection: ServerName,
    pub(super) seed: Fingerprint,
    pub(super) parts: StoredChains,
    pub(super) shared: Shared,
    pub(super) unsaved: Unsaved,
    /// How a presentation of ours failed, not stored yet.
    owed: Mutex<Option<FailedRefresh>>,
    /// Of which generation we could not read the token, and the configured one was refused in its place.
    refused_fallback: Mutex<Option<(GrantId, u64)>>,
}

/// What all chains of a replica have in common. Clones are the same.
#[derive(Clone)]
pub(in crate::oauth) struct Shared {
    pub(in crate::oauth) boot: BootId,
    pub(in crate::oauth) underway: Underway,
    pub(in crate::oauth) nudges: Nudges,
    pub(in crate::oauth) alarm: Alarm,
}

/// The token to present.
pub(super) enum Next {
    /// The configured one: none has come yet.
    Seed,
    /// The stored one.
    Stored(Secret),
    /// The configured one, in place of a stored one that cannot be decrypted (contract 7.5).
    Fallback(NotOpened),
}

/// What of a row can be read.
pub(super) struct Readable {
    pub(super) next: Next,
    pub(super) access: Option<Secret>,
}

impl SharedChain {
    pub(in crate::oauth) fn new(
        connection: ServerName,
        seed: Fingerprint,
        parts: StoredChains,
        shared: Shared,
    ) -> Self {
        let (unsaved, owed, refused_fallback) = Default::default();
        Self { connection, seed, parts, shared, unsaved, owed, refused_fallback }
    }

    /// The tokens of a row, decrypted. One that is not from this row, this column and this generation is none (O3).
    pub(super) fn read(&self, row: &StoredChain) -> Readable {
        let open = |column, sealed: &[u8]| self.parts.vault.open(&row.place(column, row.generation), sealed);
        let next = match row.tokens.refresh.as_deref().map(|sealed| open(TokenColumn::Refresh, sealed)) {
            None => Next::Seed,
            Some(Ok(opened)) => Next::Stored(opened.secret),
            Some(Err(why)) => Next::Fallback(why),
        };
        let access = row.tokens.access.as_deref().and_then(|sealed| open(TokenColumn::Access, sealed).ok());
        Readable { next, access: access.map(|opened| opened.secret) }
    }

    /// The row as `core` judges it; `is_rejected` tells that its access token is of no use to whoever asks.
    pub(super) fn seen(&self, row: &StoredChain, read: &Readable, kind: AccessKind, is_rejected: bool) -> ChainSeen {
        let access = AccessSeen {
            left: row.access_left,
            until_ahead: row.until_ahead,
            is_same_kind: row.access_kind == Some(kind),
            is_rejected,
        };
        ChainSeen {
            is_same_seed: row.seed == self.seed,
            state: row.state,
            lease_left: row.lease_left,
            is_holder_dead: row.is_holder_dead,
            since_begun: row.since_begun,
            presented: row.presented,
            never_rotates: !row.rotated && row.tokens.refresh.is_some(),
            retry_in: row.retry_in,
            access: read.access.as_ref().map(|_| access),
        }
    }

    pub(super) fn policy(&self, oauth: &OAuth) -> ChainPolicy {
        ChainPolicy {
            skew: oauth.refresh_skew,
            leeway: oauth.reuse_leeway,
            unknown_outcome: oauth.unknown_outcome,
            abandoned_after: self.parts.times.abandoned_after,
        }
    }

    /// Stores how a presentation failed; what cannot be stored now is owed. Whether the chain was still there for it.
    pub(super) async fn settle(&self, failure: FailedRefresh) -> Result<bool, StoreError> {
        let settled = self.parts.store.settle_refresh(failure.clone()).await;
        if settled == Ok(true) {
            self.shared.nudges.tell();
        }
        let is_owed = settled.is_err();
        *self.owed.lock().unwrap_or_else(PoisonError::into_inner) = is_owed.then_some(failure);
        settled
    }

    /// Stores what is owed, if this row still waits for it. Whether it did.
    pub(super) async fn pay(&self, row: &StoredChain) -> bool {
        let owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let waits = |failure: &FailedRefresh| {
            failure.lease.grant == row.grant
                && failure.lease.generation == row.generation
                && failure.lease.seq == row.lease_seq
        };
        match owed.filter(waits) {
            Some(failure) => self.settle(failure).await == Ok(true),
            None => false,
        }
    }

    /// The configured token was refused in place of the stored one of this row.
    pub(super) fn fallback_refused(&self, row: &StoredChain) {
        *self.refused_fallback.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((row.grant.clone(), row.generation));
    }

    /// Whether it was.
    pub(super) fn is_fallback_refused(&self, row: &StoredChain) -> bool {
        let refused = self.refused_fallback.lock().unwrap_or_else(PoisonError::into_inner);
        refused.as_ref().is_some_and(|(grant, generation)| *grant == row.grant && *generation == row.generation)
    }
}
