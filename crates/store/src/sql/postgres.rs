//! How a PostgreSQL is connected to.

use caribou_core::bounds;
use caribou_ports::store::StoreError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgPool};

use super::errors;
use super::pools::{REQUEST, within};

/// Connects once, so that a refusal is told with its reason, and hands out a pool.
pub(super) async fn open(options: &PgConnectOptions) -> Result<PgPool, StoreError> {
    let options = bounded(options);
    within(REQUEST, StoreError::Unavailable, async {
        let first = options.connect().await.map_err(errors::unreached)?;
        first.close().await.map_err(errors::unreached)
    })
    .await?;
    Ok(pool(options, bounds::STORE_CONNECTIONS))
}

/// A pool for the lives of replicas, on the same database: connected when it is first needed.
pub(super) fn of_leases(options: &PgConnectOptions) -> PgPool {
    pool(bounded(options), bounds::LEASE_CONNECTIONS)
}

/// With the bounds of every statement.
fn bounded(options: &PgConnectOptions) -> PgConnectOptions {
    let ms = |bound: std::time::Duration| bound.as_millis().to_string();
    options.clone().application_name("caribou").options([
        ("statement_timeout", ms(bounds::STORE_STATEMENT)),
        ("lock_timeout", ms(bounds::STORE_LOCK)),
        ("idle_in_transaction_session_timeout", ms(bounds::STORE_IDLE_TRANSACTION)),
    ])
}

fn pool(options: PgConnectOptions, connections: u32) -> PgPool {
    PgPoolOptions::new().max_connections(connections).acquire_timeout(REQUEST).connect_lazy_with(options)
}
