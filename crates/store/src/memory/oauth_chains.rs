//! Chains by connection.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use caribou_core::ids::{BootId, ServerName};
use caribou_core::oauth::Fingerprint;
use caribou_core::oauth::chain_state::{AccessKind, ChainState};
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    BeginRefresh, ChainLease, FailedRefresh, GrantId, OAuthChains, SealedTokens, Standing, StartChain, StoreError,
    StoredChain, Successor, Verdict,
};
use tokio::time::Instant;

use super::Memory;

/// All chains.
#[derive(Debug, Default)]
pub(super) struct Kept {
    chains: BTreeMap<ServerName, Chain>,
    started: u64,
}

/// One row. Its times are instants; `None` = null.
#[derive(Clone, Debug)]
struct Chain {
    grant: GrantId,
    seed: Fingerprint,
    generation: u64,
    state: ChainState,
    rotated: bool,
    tokens: SealedTokens,
    access_kind: Option<AccessKind>,
    access_until: Option<Instant>,
    refresh_ahead: Option<Instant>,
    lease_seq: i64,
    lease_owner: Option<BootId>,
    lease_until: Option<Instant>,
    inflight_at: Option<Instant>,
    presented: u32,
    failures: u32,
    last_error: Option<String>,
    retry_at: Option<Instant>,
}

impl Chain {
    fn started(grant: GrantId, seed: Fingerprint, generation: u64, lease_seq: i64) -> Self {
        Self {
            grant,
            seed,
            generation,
            state: ChainState::Idle,
            rotated: false,
            tokens: SealedTokens::default(),
            access_kind: None,
            access_until: None,
            refresh_ahead: None,
            lease_seq,
            lease_owner: None,
            lease_until: None,
            inflight_at: None,
            presented: 0,
            failures: 0,
            last_error: None,
            retry_at: None,
        }
    }

    fn is_free(&self) -> bool {
        self.lease_until.is_none_or(|until| until < Instant::now())
    }

    fn stands(&self, seen: &Standing) -> bool {
        self.grant == seen.grant && self.generation == seen.generation && self.lease_seq == seen.lease_seq
    }

    fn is_under(&self, lease: &ChainLease) -> bool {
        self.grant == lease.grant
            && self.generation == lease.generation
            && self.lease_seq == lease.seq
            && self.lease_owner.as_ref() == Some(&lease.owner)
            && self.state == ChainState::InFlight
    }

    fn begin(&mut self, begin: BeginRefresh) {
        let now = Instant::now();
        self.state = ChainState::InFlight;
        self.lease_owner = Some(begin.owner);
        self.lease_seq += 1;
        self.lease_until = Some(now + begin.lease);
        self.inflight_at = Some(now);
        self.presented += 1;
    }

    fn finish(&mut self, successor: Successor) {
        let now = Instant::now();
        let rotated = self.rotated || successor.rotated;
        *self = Self {
            rotated,
            tokens: successor.tokens,
            access_kind: Some(successor.access_kind),
            access_until: Some(now + successor.access_left),
            refresh_ahead: Some(now + successor.until_ahead),
            ..Self::started(self.grant.clone(), self.seed, self.generation + 1, self.lease_seq)
        };
    }

    fn settle(&mut self, failure: FailedRefresh) {
        self.state = failure.state;
        self.lease_until = None;
        if failure.state != ChainState::Unknown {
            self.lease_owner = None;
            self.presented = self.presented.saturating_sub(1);
        }
        self.failures += 1;
        self.last_error = Some(failure.error);
        self.retry_at = Some(Instant::now() + failure.retry_in);
    }

    fn give_up(&mut self, verdict: Verdict) {
        self.state = verdict.state;
        self.lease_until = None;
        self.last_error = Some(verdict.error);
        self.retry_at = Some(Instant::now() + verdict.retry_in);
    }
}

impl Memory {
    fn chains(&self) -> MutexGuard<'_, Kept> {
        self.oauth_chains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the chain that `is` says, if there is one.
    fn chain(&self, is: impl Fn(&Chain) -> bool, change: impl FnOnce(&mut Chain)) -> bool {
        self.chains().chains.values_mut().find(|chain| is(chain)).map(change).is_some()
    }

    fn shown(&self, connection: &ServerName, chain: &Chain) -> StoredChain {
        let now = Instant::now();
        let left = |until: Option<Instant>| until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        StoredChain {
            grant: chain.grant.clone(),
            connection: connection.clone(),
            seed: chain.seed,
            generation: chain.generation,
            state: chain.state,
            rotated: chain.rotated,
            tokens: chain.tokens.clone(),
            access_kind: chain.access_kind,
            access_left: left(chain.access_until),
            until_ahead: left(chain.refresh_ahead),
            lease_seq: chain.lease_seq,
            lease_owner: chain.lease_owner.clone(),
            lease_left: left(chain.lease_until),
            is_holder_dead: chain.lease_owner.as_ref().is_some_and(|owner| self.is_dead(owner)),
            since_begun: chain.inflight_at.map_or(Duration::ZERO, |at| at.elapsed()),
            presented: chain.presented,
            failures: chain.failures,
            last_error: chain.last_error.clone(),
            retry_in: left(chain.retry_at),
            changed_at_us: 0,
        }
    }
}

impl OAuthChains for Memory {
    fn load_chain(&self, connection: ServerName) -> BoxFuture<'_, Result<Option<StoredChain>, StoreError>> {
        let found = self.chains().chains.get(&connection).cloned();
        let found = found.map(|chain| self.shown(&connection, &chain));
        Box::pin(async move { Ok(found) })
    }

    fn list_chains(&self) -> BoxFuture<'_, Result<Vec<StoredChain>, StoreError>> {
        let all = self.chains().chains.clone();
        let all = all.iter().map(|(connection, chain)| self.shown(connection, chain)).collect();
        Box::pin(async move { Ok(all) })
    }

    fn start_chain(&self, start: StartChain) -> BoxFuture<'_, Result<bool, StoreError>> {
        let started = match &start.over {
            None => {
                let mut kept = self.chains();
                let is_new = !kept.chains.contains_key(&start.connection);
                if is_new {
                    kept.started += 1;
                    let grant = GrantId(format!("00000000-0000-4000-8000-{:012}", kept.started));
                    kept.chains.insert(start.connection, Chain::started(grant, start.seed, 0, 0));
                }
                is_new
            }
            Some(over) => self.chain(
                |chain| chain.stands(over) && chain.is_free(),
                |chain| {
                    let (grant, generation) = (chain.grant.clone(), chain.generation + 1);
                    *chain = Chain::started(grant, start.seed, generation, chain.lease_seq);
                },
            ),
        };
        Box::pin(async move { Ok(started) })
    }

    fn begin_refresh(&self, begin: BeginRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        let seen = begin.seen.clone();
        let may = |chain: &Chain| chain.stands(&seen) && chain.is_free() && chain.state != ChainState::ReauthNeeded;
        let begun = self.chain(may, |chain| chain.begin(begin));
        Box::pin(async move { Ok(begun) })
    }

    fn renew_refresh(&self, lease: ChainLease, length: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        let until = Some(Instant::now() + length);
        let renewed = self.chain(|chain| chain.is_under(&lease), |chain| chain.lease_until = until);
        Box::pin(async move { Ok(renewed) })
    }

    fn finish_refresh(&self, successor: Successor) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (grant, generation) = (successor.grant.clone(), successor.generation);
        let is = |chain: &Chain| chain.grant == grant && chain.generation == generation;
        let finished = self.chain(is, |chain| chain.finish(successor));
        Box::pin(async move { Ok(finished) })
    }

    fn settle_refresh(&self, failure: FailedRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        let lease = failure.lease.clone();
        let settled = self.chain(|chain| chain.is_under(&lease), |chain| chain.settle(failure));
        Box::pin(async move { Ok(settled) })
    }

    fn give_up_refresh(&self, verdict: Verdict) -> BoxFuture<'_, Result<bool, StoreError>> {
        let seen = verdict.seen.clone();
        let is_open = |chain: &Chain| matches!(chain.state, ChainState::InFlight | ChainState::Unknown);
        let may = |chain: &Chain| chain.stands(&seen) && chain.is_free() && is_open(chain);
        let given_up = self.chain(may, |chain| chain.give_up(verdict));
        Box::pin(async move { Ok(given_up) })
    }

    fn forget_chain(&self, grant: GrantId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let mut kept = self.chains();
        let before = kept.chains.len();
        kept.chains.retain(|_, chain| chain.grant != grant);
        let is_gone = kept.chains.len() < before;
        Box::pin(async move { Ok(is_gone) })
    }

    fn reseal_chain(&self, before: StoredChain, after: SealedTokens) -> BoxFuture<'_, Result<bool, StoreError>> {
        let is = |chain: &Chain| {
            chain.grant == before.grant && chain.generation == before.generation && chain.tokens == before.tokens
        };
        let resealed = self.chain(is, |chain| chain.tokens = after);
        Box::pin(async move { Ok(resealed) })
    }
}
