//! Tokens that came and could not be stored: used, kept, and stored before anything else (R4; invariant O2).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::bounds::CHAIN_STORE_RETRY;
use caribou_core::config::Secret;
use caribou_core::oauth::chain_state::{AccessKind, refresh_ahead};
use caribou_ports::store::{SealedTokens, StoreError, StoredChain, Successor, TokenColumn};
use tokio::time::Instant;

use super::chain::SharedChain;
use crate::chance::chance;

/// What one presentation brought.
#[derive(Clone)]
pub(super) struct Brought {
    /// The row as it was presented.
    pub(super) row: StoredChain,
    /// The refresh token to present next.
    pub(super) refresh: Secret,
    /// Whether the provider gave it.
    pub(super) rotated: bool,
    /// The access token; `None` = the answer held none that can be used.
    pub(super) header: Option<Secret>,
    pub(super) kind: AccessKind,
    /// When it was asked for: its life counts from here.
    pub(super) asked_at: Instant,
    pub(super) life: Duration,
    /// From 0 to 255: when it is refreshed in the background.
    pub(super) spread: u8,
}

impl Brought {
    /// How long the access token lives from now, and how long until it is refreshed in the background.
    pub(super) fn left(&self) -> (Duration, Duration) {
        let age = self.asked_at.elapsed();
        (self.life.saturating_sub(age), refresh_ahead(self.life, self.spread).saturating_sub(age))
    }
}

/// What is not stored yet; at most one, since nothing is presented before it is stored.
#[derive(Default)]
pub(super) struct Unsaved(Mutex<Option<Brought>>);

impl Unsaved {
    fn get(&self) -> Option<Brought> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, brought: Brought) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(brought);
    }

    /// Lets exactly this one go: of two that store it at the same time, the later one may find the next.
    fn done(&self, brought: &Brought) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |kept: &mut Brought| kept.row.grant == brought.row.grant && kept.row.generation == brought.row.generation;
        kept.take_if(is_it);
    }
}

impl SharedChain {
    /// Stores what one presentation brought, as the next generation. Whether that one was still to come.
    pub(super) async fn store(&self, brought: &Brought) -> Result<bool, StoreError> {
        let Brought { row, refresh, header, kind, rotated, .. } = brought;
        let next = row.generation + 1;
        let seal = |column, token| self.parts.vault.seal(&row.place(column, next), token);
        let (access_left, until_ahead) = brought.left();
        let successor = Successor {
            grant: row.grant.clone(),
            generation: row.generation,
            tokens: SealedTokens {
                refresh: Some(seal(TokenColumn::Refresh, refresh)),
                access: header.as_ref().map(|header| seal(TokenColumn::Access, header)),
            },
            access_kind: *kind,
            access_left,
            until_ahead,
            rotated: *rotated,
        };
        let stored = self.parts.store.finish_refresh(successor).await;
        if stored == Ok(true) {
            self.shared.nudges.tell();
        }
        stored
    }

    /// Keeps what could not be stored, and tries until it is, or until the chain has moved on without it.
    pub(super) fn keep(self: &Arc<Self>, brought: Brought) {
        self.unsaved.set(brought);
        let (chain, entered) = (self.clone(), self.shared.underway.enter());
        tokio::spawn(async move {
            let _entered = entered;
            while chain.unsaved.get().is_some() {
                tokio::time::sleep(CHAIN_STORE_RETRY.mul_f64(0.5 + chance())).await;
                // What is wrong is told by whoever needs a token meanwhile.
                let _ = chain.save().await;
            }
        });
    }

    /// Stores what is not stored yet, if there is anything.
    ///
    /// # Errors
    /// It is still not stored.
    pub(super) async fn save(&self) -> Result<(), StoreError> {
        let Some(brought) = self.unsaved.get() else { return Ok(()) };
        let is_stored = self.store(&brought).await?;
        self.unsaved.done(&brought);
        if is_stored {
            tracing::info!(server = %self.connection, "tokens that could not be stored before are stored");
        } else {
            // An earlier attempt was committed after all, or the chain was started anew.
            tracing::info!(server = %self.connection, "the chain has moved on from tokens that could not be stored");
        }
        Ok(())
    }
}
