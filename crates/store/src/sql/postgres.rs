//! How a PostgreSQL is connected to.

use caribou_core::bounds;
use caribou_ports::store::StoreError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgPool};

use super::errors;
use super::pools::{REQUEST, within};

/// Connects once, so that a refusal is told with its reason, and hands out a pool.
pub(super) async fn open(options: &PgConnectOptions) -> Result<PgPool, StoreError> {
    let ms = |bound: std::time::Duration| bound.as_millis().to_string();
    let options = options.clone().application_name("caribou").options([
        ("statement_timeout", ms(bounds::STORE_STATEMENT)),
        ("lock_timeout", ms(bounds::STORE_LOCK)),
        ("idle_in_transaction_session_timeout", ms(bounds::STORE_IDLE_TRANSACTION)),
    ]);
    within(REQUEST, StoreError::Unavailable, async {
        let first = options.connect().await.map_err(errors::unreached)?;
        first.close().await.map_err(errors::unreached)
    })
    .await?;
    let pool = PgPoolOptions::new().max_connections(bounds::STORE_CONNECTIONS).acquire_timeout(REQUEST);
    Ok(pool.connect_lazy_with(options))
}
