//! Hints: over LISTEN and NOTIFY between replicas on one PostgreSQL, in the process where there is one only.
//!
//! A hint is sent on its own, never in the transaction that made something due: commits with NOTIFY queue behind each
//! other. The channel is this schema's, and the listener's connection its own.

use std::time::Instant;

use caribou_core::task::Duty;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Listening, StoreError, Wake, Wakeups};
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};

use super::pools::{Pools, REQUEST, ask, within};
use super::{SqlStore, errors};

/// One channel for each schema, because each has its own tables.
macro_rules! channel {
    () => {
        "'caribou_' || md5(current_schema())"
    };
}

const CHANNEL: &str = concat!("SELECT ", channel!());

const NOTIFY: &str = concat!("SELECT pg_notify(", channel!(), ", $1)");

/// What a hint is called on the channel.
fn word(wake: Wake) -> &'static str {
    match wake {
        Wake::Work(Duty::Submit) => "submit",
        Wake::Work(Duty::Poll) => "poll",
        Wake::Work(Duty::Cancel) => "cancel",
        Wake::Work(Duty::Quarantine) => "quarantine",
        Wake::Work(Duty::Answer) => "answer",
        Wake::Delivery => "delivery",
        Wake::Chain => "chain",
        Wake::Everything => "everything",
    }
}

/// The hint of this name; a newer replica may have names that are not known here.
fn wake(name: &str) -> Wake {
    let known = Duty::ALL.into_iter().map(Wake::Work).chain([Wake::Delivery, Wake::Chain]);
    known.into_iter().find(|wake| word(*wake) == name).unwrap_or(Wake::Everything)
}

impl Wakeups for SqlStore {
    fn wake(&self, wake: Wake) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !self.hints.is_news(wake, Instant::now()) {
                return;
            }
            match &self.pools {
                Pools::Sqlite { .. } => self.hints.tell(wake),
                Pools::Postgres(pool) => {
                    // What cannot be told is found by timers.
                    let broken = StoreError::Unavailable;
                    let _: Result<(), StoreError> = within(REQUEST, broken, async {
                        ask!(pool, postgres, broken, |connection, _word| {
                            sqlx::query(NOTIFY).bind(word(wake)).execute(connection).await.map(drop)
                        })
                    })
                    .await;
                }
            }
        })
    }

    fn listen(&self) -> BoxFuture<'_, Result<Box<dyn Listening>, StoreError>> {
        Box::pin(async move {
            match &self.pools {
                Pools::Sqlite { .. } => Ok(self.hints.listen()),
                Pools::Postgres(pool) => within(REQUEST, StoreError::Unavailable, listen(pool)).await,
            }
        })
    }
}

/// Listens on a connection of its own: one of the pool would be missing there.
async fn listen(pool: &PgPool) -> Result<Box<dyn Listening>, StoreError> {
    let options = (*pool.connect_options()).clone();
    let own = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None).acquire_timeout(REQUEST);
    let own = own.connect_lazy_with(options);
    let channel: String = sqlx::query_scalar(CHANNEL).fetch_one(&own).await.map_err(errors::unreached)?;
    let mut listener = PgListener::connect_with(&own).await.map_err(errors::unreached)?;
    listener.listen(&channel).await.map_err(errors::unreached)?;
    Ok(Box::new(Notified(listener)))
}

struct Notified(PgListener);

impl Listening for Notified {
    fn next(&mut self) -> BoxFuture<'_, Result<Wake, StoreError>> {
        Box::pin(async move {
            match self.0.try_recv().await.map_err(errors::unreached)? {
                Some(notification) => Ok(wake(notification.payload())),
                // The connection was lost, and with it what was told meanwhile; the next call connects again.
                None => Ok(Wake::Everything),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hint_is_understood_and_unknown_ones_mean_everything() {
        for hint in Duty::ALL.into_iter().map(Wake::Work).chain([Wake::Delivery, Wake::Chain, Wake::Everything]) {
            assert_eq!(wake(word(hint)), hint);
        }
        assert_eq!(wake("of a newer version"), Wake::Everything);
    }
}
