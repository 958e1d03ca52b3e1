//! Deletes tasks that ended long enough ago and have nothing left to tell, and the record of replicas that ended, a batch
//! at a time, every hour. Every replica does it; a row that another one deletes is none of ours any more.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_ports::BoxFuture;
use caribou_ports::store::{FORGET_BATCH, StoreError, TaskStore};
use tokio::time::sleep;

use crate::chance::chance;

/// Deletes tasks that ended longer ago than `age`, and replicas, for ever.
pub(crate) async fn keep(store: Arc<dyn TaskStore>, age: Duration) {
    // The first pass comes soon: replicas may live for less than an hour.
    sleep(bounds::AUDIT_FORGET_EVERY.mul_f64(0.1 * chance())).await;
    loop {
        forget("ended tasks", || store.forget_tasks(age)).await;
        forget("ended replicas", || store.forget_replicas(bounds::REPLICA_RETENTION)).await;
        sleep(bounds::AUDIT_FORGET_EVERY.mul_f64(0.9 + 0.2 * chance())).await;
    }
}

/// Deletes batch by batch until none is left.
async fn forget<'s>(what: &'static str, batch: impl Fn() -> BoxFuture<'s, Result<u64, StoreError>>) {
    loop {
        match batch().await {
            // Others use the store too.
            Ok(forgotten) if forgotten >= u64::from(FORGET_BATCH) => sleep(bounds::AUDIT_FORGET_PAUSE).await,
            Ok(_) => return,
            Err(error) => return tracing::warn!("{what} are not deleted now, but in an hour: {error}"),
        }
    }
}
