//! Promoted tools, one row for each thread of a user.
//!
//! The rule of how promotions add up is core's: the row is locked, read, and written whole, in one transaction.

use caribou_core::ids::{CatalogHash, Scope};
use caribou_core::tool::Promotion;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Promotions, StoreError};
use sqlx::Connection as _;

use super::SqlStore;
use super::pools::{change, read};
use super::statement::{Statement, statement};

/// Answers with what stood there before, and holds the row, so that of two promotions at once neither is lost.
const HOLD: Statement = statement!(
    "INSERT INTO mcp_promotion (user_id, thread_id, catalog_hash, names) VALUES ($1, $2, $3, '[]')
     ON CONFLICT (user_id, thread_id) DO UPDATE SET names = mcp_promotion.names
     RETURNING catalog_hash, names"
);

const WRITE: Statement =
    statement!("UPDATE mcp_promotion SET catalog_hash = $3, names = $4 WHERE user_id = $1 AND thread_id = $2");

const FIND: Statement =
    statement!("SELECT catalog_hash, names FROM mcp_promotion WHERE user_id = $1 AND thread_id = $2");

impl Promotions for SqlStore {
    fn promote(&self, scope: Scope, promotion: Promotion) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (user, thread) = (scope.user.as_str(), scope.thread.as_str());
            change!(self, |connection, word| {
                let mut held = connection.begin().await?;
                let hold = sqlx::query_as(word(HOLD)).bind(user).bind(thread).bind(promotion.catalog.as_str());
                let before = stored(hold.fetch_one(&mut *held).await?)?;
                let after = promotion.after(Some(before));
                let names: Vec<&str> = after.names.iter().map(|name| &**name).collect();
                let names = serde_json::to_string(&names).map_err(|error| sqlx::Error::Encode(error.into()))?;
                let write = sqlx::query(word(WRITE)).bind(user).bind(thread).bind(after.catalog.as_str()).bind(names);
                write.execute(&mut *held).await?;
                held.commit().await
            })
        })
    }

    fn promoted(&self, scope: Scope) -> BoxFuture<'_, Result<Option<Promotion>, StoreError>> {
        Box::pin(async move {
            let (user, thread) = (scope.user.as_str(), scope.thread.as_str());
            read!(self, |connection, word| {
                let find = sqlx::query_as(word(FIND)).bind(user).bind(thread);
                find.fetch_optional(connection).await?.map(stored).transpose()
            })
        })
    }
}

fn stored((catalog, names): (String, String)) -> sqlx::Result<Promotion> {
    let names: Vec<String> = serde_json::from_str(&names).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Promotion { catalog: CatalogHash::new(catalog), names: names.into_iter().map(Into::into).collect() })
}
