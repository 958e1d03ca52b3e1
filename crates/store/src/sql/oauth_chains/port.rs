//! The port of chains over their statements.

use std::time::Duration;

use caribou_core::ids::ServerName;
use caribou_ports::BoxFuture;
use caribou_ports::store::{
    BeginRefresh, ChainLease, FailedRefresh, GrantId, OAuthChains, SealedTokens, StartChain, StoreError, StoredChain,
    Successor, Verdict,
};
use uuid::Uuid;

use super::durable::durable;
use super::rows::{ChainRow, generation, grant, number, stored};
use super::statements::{BEGIN, FINISH, FORGET, GIVE_UP, LIST, LOAD, RENEW, RESEAL, SETTLE, START, START_OVER};
use crate::sql::SqlStore;
use crate::sql::pools::{change, read};
use crate::sql::replicas::{milliseconds, uuid};

impl OAuthChains for SqlStore {
    fn load_chain(&self, connection: ServerName) -> BoxFuture<'_, Result<Option<StoredChain>, StoreError>> {
        Box::pin(async move {
            let row: Option<ChainRow> = read!(self, |held, word| {
                sqlx::query_as(word(LOAD)).bind(connection.as_str()).fetch_optional(held).await
            })?;
            row.map(stored).transpose()
        })
    }

    fn list_chains(&self) -> BoxFuture<'_, Result<Vec<StoredChain>, StoreError>> {
        Box::pin(async move {
            let rows: Vec<ChainRow> =
                read!(self, |connection, word| sqlx::query_as(word(LIST)).fetch_all(connection).await)?;
            rows.into_iter().map(stored).collect()
        })
    }

    fn start_chain(&self, start: StartChain) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let seed = &start.seed.0[..];
            let changed = match &start.over {
                None => durable!(self, START, Uuid::new_v4(), start.connection.as_str(), seed)?,
                Some(over) => {
                    let row = grant(&over.grant)?;
                    durable!(self, START_OVER, row, generation(over.generation), over.lease_seq, seed)?
                }
            };
            Ok(changed > 0)
        })
    }

    fn begin_refresh(&self, begin: BeginRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let (row, owner) = (grant(&begin.seen.grant)?, uuid(&begin.owner)?);
            let (of, seq) = (generation(begin.seen.generation), begin.seen.lease_seq);
            let changed = durable!(self, BEGIN, row, of, seq, owner, milliseconds(begin.lease))?;
            Ok(changed > 0)
        })
    }

    fn renew_refresh(&self, lease: ChainLease, length: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let (row, owner) = (grant(&lease.grant)?, uuid(&lease.owner)?);
            let changed = change!(self, |connection, word| {
                let renew = sqlx::query(word(RENEW)).bind(row).bind(generation(lease.generation)).bind(lease.seq);
                renew.bind(owner).bind(milliseconds(length)).execute(connection).await.map(|done| done.rows_affected())
            })?;
            Ok(changed > 0)
        })
    }

    fn finish_refresh(&self, successor: Successor) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let row = grant(&successor.grant)?;
            let (left, ahead) = (milliseconds(successor.access_left), milliseconds(successor.until_ahead));
            let changed = durable!(
                self,
                FINISH,
                row,
                generation(successor.generation),
                successor.rotated,
                &successor.tokens.refresh,
                &successor.tokens.access,
                &successor.access_kind.0[..],
                left,
                ahead,
            )?;
            Ok(changed > 0)
        })
    }

    fn settle_refresh(&self, failure: FailedRefresh) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let FailedRefresh { lease, state, error, retry_in } = failure;
            let (row, owner) = (grant(&lease.grant)?, uuid(&lease.owner)?);
            let changed = durable!(
                self,
                SETTLE,
                row,
                generation(lease.generation),
                lease.seq,
                owner,
                number(state),
                &error,
                milliseconds(retry_in),
            )?;
            Ok(changed > 0)
        })
    }

    fn give_up_refresh(&self, verdict: Verdict) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let row = grant(&verdict.seen.grant)?;
            let (of, seq) = (generation(verdict.seen.generation), verdict.seen.lease_seq);
            let retry_in = milliseconds(verdict.retry_in);
            let changed = durable!(self, GIVE_UP, row, of, seq, number(verdict.state), &verdict.error, retry_in)?;
            Ok(changed > 0)
        })
    }

    fn forget_chain(&self, grant_id: GrantId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let row = grant(&grant_id)?;
            Ok(durable!(self, FORGET, row)? > 0)
        })
    }

    fn reseal_chain(&self, before: StoredChain, after: SealedTokens) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let (row, of, before) = (grant(&before.grant)?, generation(before.generation), before.tokens);
            let changed =
                durable!(self, RESEAL, row, of, &after.refresh, &after.access, &before.refresh, &before.access)?;
            Ok(changed > 0)
        })
    }
}
