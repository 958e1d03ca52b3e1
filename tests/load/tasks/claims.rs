//! Claims and settles, as fast as the store makes them.
//!
//! Owns the loop. A claim that finds less than it asks for, or a settle that comes too late, ends the run: the figures
//! would be of something else.

use std::time::{Duration, Instant};

use anyhow::ensure;
use caribou_core::task::{Duty, Shard};
use caribou_ports::store::{ClaimTasks, Tasks as _, Unchanged};
use caribou_store::SqlStore;
use serde::Serialize;
use tempfile::TempDir;

use super::filled;
use crate::proc::{cpu_below, own_cpu};

/// Polls that are claimed and settled together.
const BATCH: u32 = 64;

/// Until a task is due again.
const AGAIN: Duration = Duration::from_secs(1);

/// No claim expires in a run.
const LEASE: Duration = Duration::from_secs(600);

/// Before the first reading: caches are filled, and the planner has settled on a plan.
const WARM_UP: Duration = Duration::from_secs(2);

/// Any boot id.
const OWNER: &str = "019ad000-0000-7000-8000-00000000000a";

/// What claims and settles cost.
#[derive(Debug, Serialize)]
pub(super) struct Claims {
    /// Tasks in the database.
    pub(super) rows: u32,
    /// How many polls were claimed and settled.
    pub(super) polls: u64,
    /// How long that took, in seconds.
    pub(super) lasted_s: f64,
    /// CPU time of the database, in seconds. SQLite lives in this process, so there the generator counts too.
    pub(super) cpu_s: f64,
}

impl Claims {
    /// What one core does in a second.
    pub(super) fn per_core(&self) -> f64 {
        self.polls as f64 / self.cpu_s
    }
}

/// Of a PostgreSQL with so many tasks.
///
/// # Errors
/// It cannot be filled, or refuses something.
pub(super) async fn of_postgres(rows: u32, length: Duration) -> anyhow::Result<Claims> {
    let (postgres, store) = filled::postgres(rows).await?;
    measure(&store, rows, length, || cpu_below(postgres.pid())).await
}

/// Of a SQLite file with so many tasks.
///
/// # Errors
/// It cannot be filled, or refuses something.
pub(super) async fn of_sqlite(rows: u32, length: Duration) -> anyhow::Result<Claims> {
    let folder = TempDir::with_prefix("caribou-load-")?;
    let store = filled::sqlite(folder.path(), rows).await?;
    measure(&store, rows, length, own_cpu).await
}

async fn measure(
    store: &SqlStore,
    rows: u32,
    length: Duration,
    cpu: impl Fn() -> anyhow::Result<Duration>,
) -> anyhow::Result<Claims> {
    eprintln!("claims and settles of {BATCH} for {} s", length.as_secs());
    poll_for(store, WARM_UP).await?;
    let (before, start) = (cpu()?, Instant::now());
    let polls = poll_for(store, length).await?;
    let (lasted, used) = (start.elapsed(), cpu()?.saturating_sub(before));
    store.close().await;
    Ok(Claims { rows, polls, lasted_s: lasted.as_secs_f64(), cpu_s: used.as_secs_f64() })
}

async fn poll_for(store: &SqlStore, length: Duration) -> anyhow::Result<u64> {
    let (end, mut polls) = (Instant::now() + length, 0);
    while Instant::now() < end {
        let claimed = store.claim_due(wanted()).await?;
        ensure!(claimed.len() == BATCH as usize, "only {} tasks are due: ask for more rows", claimed.len());
        polls += u64::from(BATCH);
        let unchanged = claimed.into_iter().map(|task| Unchanged { claim: task.claim, again: AGAIN }).collect();
        let lost = store.keep(unchanged).await?;
        ensure!(lost.is_empty(), "{} claims were lost", lost.len());
    }
    Ok(polls)
}

fn wanted() -> ClaimTasks {
    ClaimTasks {
        owner: OWNER.into(),
        duty: Duty::Poll,
        shards: Shard::all().collect(),
        at_most: BATCH,
        lease: LEASE,
        overdue: Duration::ZERO,
        not_of: Vec::new(),
    }
}
