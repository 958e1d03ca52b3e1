//! Databases full of tasks that are followed.
//!
//! Owns what is in them: enough tasks are due for any rate, spread over all shards, and the others in an hour.

use std::path::Path;

use anyhow::Context;
use caribou_store::{Location, SqlStore};
use caribou_tests::Postgres;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

/// Tasks that are due, of all there are. A poll makes its task due again a second later, so no database may get through
/// them in a second.
const DUE: u32 = 60_000;

const COLUMNS: &str = "task_id, submit_key, user_id, thread_id, server, driver, task_name, configuration, is_pinned,
                       remote_id, status";

/// A PostgreSQL with so many tasks, and its store.
///
/// # Errors
/// They cannot be stored.
pub(super) async fn postgres(rows: u32) -> anyhow::Result<(Postgres, SqlStore)> {
    eprintln!("PostgreSQL is filled with {rows} tasks");
    let postgres = Postgres::start_durable().await;
    let store = migrated(&postgres.url("postgres")).await?;
    let fill = format!(
        "INSERT INTO mcp_task ({COLUMNS})
         SELECT md5(n::text)::uuid, md5('k' || n)::uuid, 'u' || n % 1000, 't' || n % 50, 'jobs', 'ordinary-tools', 'r', 1,
                false, 'r' || n, 2
         FROM generate_series(1, {rows}) n;
         INSERT INTO mcp_work (task_id, lane, due_at, configuration)
         SELECT md5(n::text)::uuid, 256 + n % 8,
                now() + CASE WHEN n <= {DUE} THEN interval '-1 second' ELSE interval '1 hour' END, 1
         FROM generate_series(1, {rows}) n"
    );
    // What the filling left to do is not what polling costs.
    for statement in [&*fill, "VACUUM ANALYZE mcp_task", "VACUUM ANALYZE mcp_work", "CHECKPOINT"] {
        postgres.ask(statement).await.context("filling PostgreSQL")?;
    }
    Ok((postgres, store))
}

/// A SQLite file in `folder` with so many tasks.
///
/// # Errors
/// They cannot be stored.
pub(super) async fn sqlite(folder: &Path, rows: u32) -> anyhow::Result<SqlStore> {
    eprintln!("SQLite is filled with {rows} tasks");
    let address = format!("sqlite:{}", folder.join("caribou.db").display());
    let store = migrated(&address).await?;
    let now = "CAST((julianday('now') - 2440587.5) * 86400000 AS integer)";
    let fill = format!(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = -400000;
         BEGIN;
         WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
         INSERT INTO mcp_task ({COLUMNS})
         SELECT randomblob(16), randomblob(16), 'u' || n % 1000, 't' || n % 50, 'jobs', 'ordinary-tools', 'r', 1, 0, n, 2
         FROM numbers;
         INSERT INTO mcp_work (task_id, lane, due_at, configuration)
         SELECT task_id, 256 + CAST(remote_id AS integer) % 8,
                {now} + CASE WHEN CAST(remote_id AS integer) <= {DUE} THEN -1000 ELSE 3600000 END, 1
         FROM mcp_task;
         COMMIT;
         PRAGMA wal_checkpoint(TRUNCATE)"
    );
    let mut connection = SqliteConnection::connect(&address).await?;
    sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut connection).await.context("filling SQLite")?;
    connection.close().await?;
    Ok(store)
}

async fn migrated(address: &str) -> anyhow::Result<SqlStore> {
    let store = SqlStore::open(&Location::parse(address)?).await?;
    while store.migrate_next().await?.is_some() {}
    Ok(store)
}
