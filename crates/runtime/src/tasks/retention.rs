//! Deletes tasks that ended long enough ago and have nothing left to tell, a batch at a time, every hour. Every replica
//! does it; a row that another one deletes is none of ours any more.

use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_ports::store::{FORGET_BATCH, TaskStore};
use tokio::time::sleep;

use crate::chance::chance;

/// Deletes what ended longer ago than `age`, for ever.
pub(crate) async fn keep(store: Arc<dyn TaskStore>, age: Duration) {
    // The first pass comes soon: replicas may live for less than an hour.
    sleep(bounds::AUDIT_FORGET_EVERY.mul_f64(0.1 * chance())).await;
    loop {
        loop {
            match store.forget_tasks(age).await {
                // Others use the store too.
                Ok(forgotten) if forgotten >= u64::from(FORGET_BATCH) => sleep(bounds::AUDIT_FORGET_PAUSE).await,
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!("ended tasks are not deleted now, but in an hour: {error}");
                    break;
                }
            }
        }
        sleep(bounds::AUDIT_FORGET_EVERY.mul_f64(0.9 + 0.2 * chance())).await;
    }
}
