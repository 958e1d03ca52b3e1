//! The audit log: as many of its newest rows as fit.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use caribou_ports::BoxFuture;
use caribou_ports::store::{Audit, AuditFilter, AuditRow, StoreError, StoredAuditRow};

use super::Memory;

/// The most rows: what an hour of one conversation makes, a thousand times over.
const MOST: usize = 10_000;

/// The rows, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    rows: VecDeque<(Instant, StoredAuditRow)>,
    last_id: i64,
}

impl Audit for Memory {
    fn append(&self, rows: Vec<AuditRow>) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut log = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            log.last_id += 1;
            let id = log.last_id;
            log.rows.push_back((Instant::now(), StoredAuditRow { id, row }));
            if log.rows.len() > MOST {
                log.rows.pop_front();
            }
        }
        Box::pin(async { Ok(()) })
    }

    fn read(&self, filter: AuditFilter, limit: u32) -> BoxFuture<'_, Result<Vec<StoredAuditRow>, StoreError>> {
        let log = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
        let newest_first = log.rows.iter().rev().map(|(_, stored)| stored);
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let found = newest_first.filter(|stored| matches(&filter, stored)).take(most).cloned().collect();
        Box::pin(async { Ok(found) })
    }

    fn forget(&self, age: Duration, limit: u32) -> BoxFuture<'_, Result<u64, StoreError>> {
        let mut log = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
        let old = log.rows.iter().take_while(|(stored, _)| stored.elapsed() > age).count();
        let forgotten = old.min(usize::try_from(limit).unwrap_or(usize::MAX));
        log.rows.drain(..forgotten);
        Box::pin(async move { Ok(forgotten as u64) })
    }
}

fn matches(filter: &AuditFilter, StoredAuditRow { id, row }: &StoredAuditRow) -> bool {
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let AuditFilter { principal, user, server, tool, outcome, before_id, party } = filter;
    is(principal, &row.principal)
        && is(user, &row.user)
        && is(server, &row.server)
        && is(tool, &row.tool)
        && is(outcome, &row.outcome)
        && before_id.is_none_or(|before| *id < before)
        && party.as_ref().is_none_or(|party| party.principal == row.principal || party.user == row.user)
}
