//! The store as one replica reaches it: away for a while, unclear about a commit, or forgetful of one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_core::ids::ServerName;
use caribou_core::oauth::Fingerprint;
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    BeginRefresh, ChainLease, FailedRefresh, GrantId, OAuthChains, SealedTokens, StartChain, StoreError, StoredChain,
    Successor, Verdict,
};
use caribou_store::Memory;
use tokio::time::Instant;

use super::mutant::Mutant;
use crate::borders::Borders;

/// What ails the store, for everybody.
#[derive(Debug, Default)]
pub(super) struct Ailments {
    away_until: Mutex<Option<Instant>>,
    /// So many of the next commits are made, and nobody hears of it.
    unclear: Mutex<u32>,
    /// So many of the next commits are acknowledged, and lost in a failover.
    lost: Mutex<u32>,
}

impl Ailments {
    pub(super) fn away(&self, length: Duration) {
        *self.away_until.lock().unwrap() = Some(Instant::now() + length);
    }

    pub(super) fn unclear(&self) {
        *self.unclear.lock().unwrap() += 1;
    }

    pub(super) fn lose_one(&self) {
        *self.lost.lock().unwrap() += 1;
    }

    fn take(counter: &Mutex<u32>) -> bool {
        let mut left = counter.lock().unwrap();
        let is_one = *left > 0;
        *left = left.saturating_sub(1);
        is_one
    }
}

pub(super) struct SharedStore {
    pub(super) store: Memory,
    pub(super) ailments: Arc<Ailments>,
    pub(super) borders: Arc<Borders<Mutant>>,
}

impl SharedStore {
    /// There and back.
    async fn asked<T>(&self, ask: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.borders.cross().await;
        if self.ailments.away_until.lock().unwrap().is_some_and(|until| until > Instant::now()) {
            return Err(StoreError::Unavailable("it is away".to_owned()));
        }
        let answer = ask.await;
        self.borders.cross().await;
        answer
    }

    /// The same for a change that may be unclear, or lost.
    async fn changed(&self, ask: impl Future<Output = Result<bool, StoreError>>) -> Result<bool, StoreError> {
        if Ailments::take(&self.ailments.lost) {
            return self.asked(async { Ok(true) }).await;
        }
        let answer = self.asked(ask).await;
        if answer.is_ok() && Ailments::take(&self.ailments.unclear) {
            return Err(StoreError::OutcomeUnknown("the connection broke".to_owned()));
        }
        answer
    }

    async fn row(&self, grant: &GrantId) -> Option<StoredChain> {
        self.store.list_chains().await.unwrap().into_iter().find(|row| row.grant == *grant)
    }
}

impl OAuthChains for SharedStore {
    fn load_chain(&self, connection: ServerName) -> BoxFuture<'_, Result<Option<StoredChain>, StoreError>> {
        Box::pin(self.asked(async move { self.store.load_chain(connection).await }))
    }

    fn list_chains(&self) -> BoxFuture<'_, Result<Vec<StoredChain>, StoreError>> {
        Box::pin(self.asked(async move { self.store.list_chains().await }))
    }

    fn start_chain(&self, start: StartChain) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.start_chain(start).await }))
    }

    fn begin_refresh(&self, begin: BeginRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        if self.borders.mutant == Some(Mutant::NoIntent) {
            return Box::pin(self.asked(async { Ok(true) }));
        }
        Box::pin(self.changed(async move { self.store.begin_refresh(begin).await }))
    }

    fn renew_refresh(&self, lease: ChainLease, length: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.renew_refresh(lease, length).await }))
    }

    fn finish_refresh(&self, successor: Successor) -> BoxFuture<'_, Result<bool, StoreError>> {
        if self.borders.mutant == Some(Mutant::CommitFencedByLease) {
            return Box::pin(self.asked(async move {
                let is_held = self.row(&successor.grant).await.is_some_and(|row| !row.lease_left.is_zero());
                if is_held { self.store.finish_refresh(successor).await } else { Ok(false) }
            }));
        }
        Box::pin(self.changed(async move { self.store.finish_refresh(successor).await }))
    }

    fn settle_refresh(&self, failure: FailedRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        if self.borders.mutant == Some(Mutant::LoserClears) {
            return Box::pin(self.asked(async move {
                let grant = failure.lease.grant.clone();
                let settled = self.store.settle_refresh(failure).await?;
                let Some(row) = self.row(&grant).await else { return Ok(settled) };
                let start = |seed| StartChain { connection: row.connection.clone(), seed, over: Some(row.standing()) };
                // Away and back, so that the seed is as it was and the tokens are gone.
                self.store.start_chain(start(Fingerprint([0; 32]))).await?;
                Ok(settled)
            }));
        }
        Box::pin(self.changed(async move { self.store.settle_refresh(failure).await }))
    }

    fn give_up_refresh(&self, verdict: Verdict) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.changed(async move { self.store.give_up_refresh(verdict).await }))
    }

    fn forget_chain(&self, grant: GrantId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.forget_chain(grant).await }))
    }

    fn reseal_chain(&self, before: StoredChain, after: SealedTokens) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.asked(async move { self.store.reseal_chain(before, after).await }))
    }
}
