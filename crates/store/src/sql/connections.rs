//! Personal connections, and the number that grows with every change of a user's.
//!
//! A change raises the number first, which holds the user's row until the commit: of two changes of one user the later
//! one sees what the earlier one did, so neither the bound nor what is expected can be passed by both.

use caribou_core::ids::UserId;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Connections, Expected, Put, StoreError, StoredConnection};
use sqlx::Connection as _;

use super::SqlStore;
use super::pools::{change, read};
use super::statement::{Statement, statement};

const RAISE: Statement = statement!(
    "INSERT INTO mcp_connection_revision (user_id, revision) VALUES ($1, 1)
     ON CONFLICT (user_id) DO UPDATE SET revision = mcp_connection_revision.revision + 1"
);

const REVISION: Statement = statement!("SELECT revision FROM mcp_connection_revision WHERE user_id = $1");

const FIND: Statement = statement!("SELECT runtime_name, enabled FROM mcp_connection WHERE user_id = $1 AND name = $2");

const COUNT: Statement = statement!("SELECT count(*) FROM mcp_connection WHERE user_id = $1");

const WRITE: Statement = statement!(
    "INSERT INTO mcp_connection (user_id, name, runtime_name, sealed, enabled) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (user_id, name)
     DO UPDATE SET runtime_name = excluded.runtime_name, sealed = excluded.sealed, enabled = excluded.enabled"
);

const DELETE: Statement = statement!("DELETE FROM mcp_connection WHERE user_id = $1 AND name = $2");

/// Only over exactly what was opened: a definition written meanwhile is never replaced by an older one.
const RESEAL: Statement =
    statement!("UPDATE mcp_connection SET sealed = $4 WHERE user_id = $1 AND name = $2 AND sealed = $3");

const OF_USER: Statement = statement!(
    "SELECT user_id, name, runtime_name, sealed, enabled FROM mcp_connection WHERE user_id = $1 ORDER BY name"
);

const PAGE: Statement = statement!(
    "SELECT user_id, name, runtime_name, sealed, enabled FROM mcp_connection WHERE (user_id, name) > ($1, $2)
     ORDER BY user_id, name LIMIT $3"
);

impl Connections for SqlStore {
    fn put(
        &self,
        connection: StoredConnection,
        expected: Expected,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Put, StoreError>> {
        Box::pin(async move {
            let StoredConnection { user, name, runtime_name, sealed, enabled } = &connection;
            let user = user.as_str();
            change!(self, |connection, word| {
                let mut held = connection.begin().await?;
                sqlx::query(word(RAISE)).bind(user).execute(&mut *held).await?;
                let find = sqlx::query_as(word(FIND)).bind(user).bind(name);
                let found = stands(find.fetch_optional(&mut *held).await?);
                if found != expected {
                    return Ok(Put::Unexpected);
                }
                if found == Expected::Nothing {
                    let count: i64 = sqlx::query_scalar(word(COUNT)).bind(user).fetch_one(&mut *held).await?;
                    if count >= i64::from(at_most) {
                        return Ok(Put::Full);
                    }
                }
                let write = sqlx::query(word(WRITE)).bind(user).bind(name).bind(runtime_name).bind(sealed);
                write.bind(enabled).execute(&mut *held).await?;
                held.commit().await.map(|()| Put::Stored)
            })
        })
    }

    fn delete(&self, user: UserId, name: String, expected: Expected) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let user = user.as_str();
            change!(self, |connection, word| {
                let mut held = connection.begin().await?;
                sqlx::query(word(RAISE)).bind(user).execute(&mut *held).await?;
                let find = sqlx::query_as(word(FIND)).bind(user).bind(&name);
                let found = stands(find.fetch_optional(&mut *held).await?);
                if found != expected || found == Expected::Nothing {
                    return Ok(false);
                }
                sqlx::query(word(DELETE)).bind(user).bind(&name).execute(&mut *held).await?;
                held.commit().await.map(|()| true)
            })
        })
    }

    fn of_user(&self, user: UserId) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>> {
        Box::pin(async move {
            let rows: Vec<Row> = read!(self, |connection, word| {
                sqlx::query_as(word(OF_USER)).bind(user.as_str()).fetch_all(connection).await
            })?;
            Ok(rows.into_iter().map(stored).collect())
        })
    }

    fn page(&self, after: (String, String), limit: u32) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>> {
        Box::pin(async move {
            let (user, name) = &after;
            let rows: Vec<Row> = read!(self, |connection, word| {
                let page = sqlx::query_as(word(PAGE)).bind(user).bind(name).bind(i64::from(limit));
                page.fetch_all(connection).await
            })?;
            Ok(rows.into_iter().map(stored).collect())
        })
    }

    fn reseal(&self, connection: StoredConnection, sealed: Vec<u8>) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let StoredConnection { user, name, sealed: before, .. } = &connection;
            change!(self, |connection, word| {
                let reseal = sqlx::query(word(RESEAL)).bind(user.as_str()).bind(name).bind(before).bind(&sealed);
                reseal.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn revision(&self, user: UserId) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async move {
            let revision: Option<i64> = read!(self, |connection, word| {
                sqlx::query_scalar(word(REVISION)).bind(user.as_str()).fetch_optional(connection).await
            })?;
            Ok(revision.unwrap_or(0))
        })
    }
}

fn stands(found: Option<(String, bool)>) -> Expected {
    found.map_or(Expected::Nothing, |(runtime_name, enabled)| Expected::Exactly { runtime_name, enabled })
}

type Row = (String, String, String, Vec<u8>, bool);

fn stored((user, name, runtime_name, sealed, enabled): Row) -> StoredConnection {
    StoredConnection { user: UserId::new(user), name, runtime_name, sealed, enabled }
}
