//! Deletes rows that are old enough, a small statement at a time, every hour. Every replica does it; at other times
//! each, and a row that another one deletes is none of ours any more.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_ports::store::Audit;
use tokio::time::sleep;

/// Deletes what has been stored longer than `age`, for ever.
pub(super) async fn keep(store: Arc<dyn Audit>, age: Duration) {
    // The first pass comes soon: replicas may live for less than an hour.
    sleep(bounds::AUDIT_FORGET_EVERY.mul_f64(0.1 * chance())).await;
    loop {
        forget(&*store, age).await;
        sleep(bounds::AUDIT_FORGET_EVERY.mul_f64(0.9 + 0.2 * chance())).await;
    }
}

/// One pass.
async fn forget(store: &dyn Audit, age: Duration) {
    loop {
        match store.forget(age, bounds::AUDIT_FORGET_BATCH).await {
            Ok(forgotten) if forgotten >= u64::from(bounds::AUDIT_FORGET_BATCH) => {
                // Others use the store too.
                sleep(bounds::AUDIT_FORGET_PAUSE).await;
            }
            Ok(_) => break,
            Err(error) => {
                tracing::warn!("old audit rows are not deleted now, but in an hour: {error}");
                break;
            }
        }
    }
}

/// Somewhere from 0 to 1, another number each time: it only spreads replicas out.
fn chance() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}
