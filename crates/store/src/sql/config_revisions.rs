//! The revisions of the configuration. Whoever writes one moves the generation of the document first, which holds its
//! row until the commit: of two writers the later one reads what the earlier one wrote.

use std::sync::Arc;

use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::store::{ConfigRevisions, Revise, Revised, Revising, RevisionHead, StoreError, StoredRevision};
use sqlx::Connection as _;
use uuid::Uuid;

use super::SqlStore;
use super::generations::{BUMP, FORGET as FORGET_SCOPES, generation};
use super::pools::{change, read};
use super::statement::{Statement, statement};

/// One statement, so that the text and the generation are of one moment.
const LAST_IN_FORCE: Statement = statement!(
    "SELECT revision, document, origin, counter FROM mcp_config_revision, reset_generation
     WHERE scope = 'document' ORDER BY revision DESC LIMIT 1"
);

const LAST: Statement = statement!("SELECT revision, document FROM mcp_config_revision ORDER BY revision DESC LIMIT 1");

const FIND: Statement = statement!("SELECT revision, document FROM mcp_config_revision WHERE revision = $1");

const WRITE: Statement = statement!(
    "INSERT INTO mcp_config_revision (revision, author, at, document) VALUES ($1, $2, " NOW ", $3)"
);

/// The number is [`caribou_core::reset::MAX_REVISIONS`].
const FORGET: Statement = statement!("DELETE FROM mcp_config_revision WHERE revision <= $1 - 1000");

const _: () = assert!(caribou_core::reset::MAX_REVISIONS == 1_000, "the statement says 1000");

const LIST: Statement = statement!(
    "SELECT revision, author, " (US "at") ", CAST(length(document) AS bigint)
     FROM mcp_config_revision WHERE revision < $1 ORDER BY revision DESC LIMIT $2"
);

impl ConfigRevisions for SqlStore {
    fn last_revision(&self) -> BoxFuture<'_, Result<Option<(StoredRevision, ResetGeneration)>, StoreError>> {
        Box::pin(async move {
            let row: Option<(i64, Vec<u8>, Uuid, i64)> = read!(self, |connection, word| {
                sqlx::query_as(word(LAST_IN_FORCE)).fetch_optional(connection).await
            })?;
            Ok(row.map(|(number, text, origin, counter)| {
                (StoredRevision { number, text }, generation((origin, counter)))
            }))
        })
    }

    fn find_revision(&self, number: i64) -> BoxFuture<'_, Result<Option<StoredRevision>, StoreError>> {
        Box::pin(async move {
            let row = read!(self, |connection, word| {
                sqlx::query_as(word(FIND)).bind(number).fetch_optional(connection).await
            })?;
            Ok(row.map(stored))
        })
    }

    fn write_revision(&self, author: Arc<str>, revise: Revise) -> BoxFuture<'_, Result<Revised, StoreError>> {
        Box::pin(async move {
            change!(self, |connection, word| {
                let mut held = connection.begin().await?;
                let mut moved = Vec::new();
                let bump = sqlx::query_as(word(BUMP)).bind(ResetScope::Document.to_string()).bind(Uuid::new_v4());
                moved.push((ResetScope::Document, generation(bump.fetch_one(&mut *held).await?)));
                let last = sqlx::query_as(word(LAST)).fetch_optional(&mut *held).await?.map(stored);
                let next = match revise(last.as_ref()) {
                    Revising::Write(next) => next,
                    Revising::Keep => return held.rollback().await.map(|()| Revised::Kept),
                    Revising::Refuse(why) => return held.rollback().await.map(|()| Revised::Refused(why)),
                };
                let number = last.map_or(1, |last| last.number + 1);
                let write = sqlx::query(word(WRITE)).bind(number).bind(&*author).bind(next.text);
                write.execute(&mut *held).await?;
                for scope in next.scopes {
                    let bump = sqlx::query_as(word(BUMP)).bind(scope.to_string()).bind(Uuid::new_v4());
                    moved.push((scope, generation(bump.fetch_one(&mut *held).await?)));
                }
                sqlx::query(word(FORGET)).bind(number).execute(&mut *held).await?;
                sqlx::query(word(FORGET_SCOPES)).execute(&mut *held).await?;
                held.commit().await.map(|()| Revised::Written(number, moved))
            })
        })
    }

    fn list_revisions(&self, before: Option<i64>, limit: u32) -> BoxFuture<'_, Result<Vec<RevisionHead>, StoreError>> {
        Box::pin(async move {
            let rows: Vec<(i64, String, i64, i64)> = read!(self, |connection, word| {
                let list = sqlx::query_as(word(LIST)).bind(before.unwrap_or(i64::MAX)).bind(i64::from(limit));
                list.fetch_all(connection).await
            })?;
            let head = |(number, author, at_us, bytes): (i64, String, i64, i64)| RevisionHead {
                number,
                author: author.into(),
                at_ms: at_us / 1_000,
                bytes,
            };
            Ok(rows.into_iter().map(head).collect())
        })
    }
}

fn stored((number, text): (i64, Vec<u8>)) -> StoredRevision {
    StoredRevision { number, text }
}
