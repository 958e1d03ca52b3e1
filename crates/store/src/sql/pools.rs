//! Connections to the database, and the one way in which they are used.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::bounds;
use caribou_ports::store::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::{Database, PgPool, SqlitePool};

use super::tasks::Floors;
use super::{postgres, sqlite};
use crate::Location;
use crate::hints::Hints;

/// The store in a database. Cheap to clone.
#[derive(Clone)]
pub struct SqlStore {
    pub(super) pools: Pools,
    /// Of the lives of replicas alone.
    leases: Pools,
    /// Of the lanes of tasks, in this process.
    pub(super) floors: Arc<Floors>,
    /// Of this process.
    pub(super) hints: Arc<Hints>,
}

#[derive(Clone)]
pub(super) enum Pools {
    Postgres(PgPool),
    Sqlite {
        /// Has one connection.
        writer: SqlitePool,
        /// Cannot write.
        readers: SqlitePool,
    },
}

impl SqlStore {
    /// Connects, and makes the file of an embedded database when it is missing, for its owner only. The schema is not
    /// looked at.
    ///
    /// # Errors
    /// When the database cannot be reached or refuses us.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let pools = match location {
            Location::Postgres(options) => Pools::Postgres(postgres::open(options).await?),
            Location::Sqlite(path) => sqlite::open(path).await?,
        };
        let leases = match location {
            Location::Postgres(options) => Pools::Postgres(postgres::of_leases(options)),
            Location::Sqlite(_) => pools.clone(),
        };
        Ok(Self { pools, leases, floors: Arc::default(), hints: Arc::default() })
    }

    /// Whether replicas may share it. One in a file is of one process, or of a few on one machine for a moment.
    pub fn is_shared(&self) -> bool {
        matches!(self.pools, Pools::Postgres(_))
    }

    /// The connections for the lives of replicas.
    pub(super) fn leases(&self) -> Leases<'_> {
        Leases { pools: &self.leases }
    }

    /// Lets all connections go. Requests after it fail.
    pub async fn close(&self) {
        if let Pools::Postgres(leases) = &self.leases {
            leases.close().await;
        }
        match &self.pools {
            Pools::Postgres(pool) => pool.close().await,
            Pools::Sqlite { writer, readers } => {
                readers.close().await;
                // Last, because the last connection tidies the file.
                writer.close().await;
            }
        }
    }
}

impl fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.pools {
            Pools::Postgres(_) => "SqlStore(PostgreSQL)",
            Pools::Sqlite { .. } => "SqlStore(SQLite)",
        })
    }
}

/// A connection for one request. Given up in the middle, it is closed: a transaction whose begin was not answered yet
/// stays open in it, unknown to the pool, and whoever borrowed it next would work inside.
pub(super) struct Lent<D: Database> {
    connection: PoolConnection<D>,
    is_done: bool,
}

impl<D: Database> Lent<D> {
    pub(super) fn new(connection: PoolConnection<D>) -> Self {
        Self { connection, is_done: false }
    }

    pub(super) fn connection(&mut self) -> &mut D::Connection {
        &mut self.connection
    }

    /// The request has ended, well or not.
    pub(super) fn give_back(mut self) {
        self.is_done = true;
    }
}

impl<D: Database> Drop for Lent<D> {
    fn drop(&mut self) {
        if !self.is_done {
            self.connection.close_on_drop();
        }
    }
}

/// What leases are renewed by, so that they never stand in one line with everything else.
pub(super) struct Leases<'s> {
    pub(super) pools: &'s Pools,
}

/// Ends a request that takes longer than its bound.
pub(super) async fn within<T>(
    bound: Duration,
    broken: fn(String) -> StoreError,
    request: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(bound, request).await {
        Ok(done) => done,
        Err(_) => Err(broken(format!("no answer within {} s", bound.as_secs()))),
    }
}

/// Bound of an ordinary request.
pub(super) const REQUEST: Duration = bounds::STORE_REQUEST;

/// Runs `$body`, which yields an [`sqlx::Result`], with a connection that may write and a function that picks the words
/// of a statement for its database. What breaks on the way may have been done.
macro_rules! change {
    ($store:expr, |$connection:ident, $word:ident| $body:expr) => {
        crate::sql::pools::request!($store, writer, OutcomeUnknown, |$connection, $word| $body)
    };
}

/// The same with a connection for reading: what breaks may be asked again.
macro_rules! read {
    ($store:expr, |$connection:ident, $word:ident| $body:expr) => {
        crate::sql::pools::request!($store, readers, Unavailable, |$connection, $word| $body)
    };
}

/// The same body once for each database, each with its own types.
macro_rules! request {
    ($store:expr, $pool:ident, $broken:ident, |$connection:ident, $word:ident| $body:expr) => {{
        use crate::sql::pools::{Pools, REQUEST, ask, within};
        let broken = caribou_ports::store::StoreError::$broken;
        let asked = async {
            match &$store.pools {
                Pools::Postgres(pool) => ask!(pool, postgres, broken, |$connection, $word| $body),
                Pools::Sqlite { $pool: pool, .. } => ask!(pool, sqlite, broken, |$connection, $word| $body),
            }
        };
        within(REQUEST, broken, asked).await
    }};
}

/// The body for one database.
macro_rules! ask {
    ($pool:ident, $words:ident, $broken:ident, |$connection:ident, $word:ident| $body:expr) => {{
        use crate::sql::{errors, statement::Statement};
        // Apart from the rest: until there is a connection, surely nothing was done.
        let held = $pool.acquire().await.map_err(errors::unreached)?;
        let mut lent = crate::sql::pools::Lent::new(held);
        let done: sqlx::Result<_> = async {
            let $connection = lent.connection();
            let $word = |statement: Statement| statement.$words;
            $body
        }
        .await;
        lent.give_back();
        done.map_err(|error| errors::translate(error, $broken))
    }};
}

pub(super) use {ask, change, read, request};
