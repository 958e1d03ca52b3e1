//! Commits that outlive a loss of power: what they hold cannot be asked for again.
//!
//! PostgreSQL syncs each commit unless its administrator says otherwise. SQLite's only writer syncs at checkpoints, so
//! it is told to sync this one: a second connection that writes would make the transactions of the first fail as busy.

use crate::sql::statement::Statement;

/// Empty where there is nothing to say.
pub(super) const SYNC: Statement = Statement { postgres: "", sqlite: "PRAGMA synchronous = FULL" };

/// The mode in which the connection is opened.
pub(super) const AS_OPENED: Statement = Statement { postgres: "", sqlite: "PRAGMA synchronous = NORMAL" };

/// One statement with its parameters, committed and synced; answers how many rows it changed.
macro_rules! durable {
    ($store:expr, $statement:expr, $($value:expr),* $(,)?) => {
        crate::sql::pools::change!($store, |connection, word| {
            let sync = word($crate::sql::oauth_chains::durable::SYNC);
            if !sync.is_empty() {
                sqlx::query(sync).execute(&mut *connection).await?;
            }
            let query = sqlx::query(word($statement))$(.bind($value))*;
            let done = query.execute(&mut *connection).await.map(|done| done.rows_affected());
            if !sync.is_empty() {
                // Left synced, the connection is only slower.
                let as_opened = word($crate::sql::oauth_chains::durable::AS_OPENED);
                let _ = sqlx::query(as_opened).execute(&mut *connection).await;
            }
            done
        })
    };
}

pub(super) use durable;
