//! Who holds which session. Taking one and declaring its owner dead meet on two rows, in this order: a session is taken
//! only from a life that is on record as ended, and an end is final.

use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, Scope, ServerName, SessionKey, ThreadId, UserId};
use caribou_core::session::{Life, Owner, Ownership, SessionRow};
use caribou_ports::BoxFuture;
use caribou_ports::store::{Resumption, Sessions, StoreError, StoredSession, TakeSession, Taken};
use sqlx::Connection as _;
use uuid::Uuid;

use super::SqlStore;
use super::pools::{change, read};
use super::replicas::{duration, milliseconds, uuid};
use super::statement::{Statement, statement};

const FIND: Statement = statement!(
    "SELECT epoch, owner, state, " (MS_SINCE dead_at) "
     FROM mcp_session LEFT JOIN replica ON boot_id = owner WHERE session = $1"
);

/// Whoever drains or is dead takes nothing; what a living one holds stays its own, and that of one whose end is too
/// young. An owner of whom there is no record any more ended long ago.
const TAKE: Statement = statement!(
    "INSERT INTO mcp_session (session, server, user_id, thread_id, owner, epoch, taken_at)
     SELECT $1, $2, $3, $4, boot_id, 1, " NOW " FROM replica WHERE boot_id = $5 AND state = 1
     ON CONFLICT (session) DO UPDATE
        SET owner = excluded.owner, epoch = mcp_session.epoch + 1, taken_at = excluded.taken_at, resumption_ct = NULL
        WHERE mcp_session.owner IS NULL OR mcp_session.owner = excluded.owner
           OR NOT EXISTS (SELECT 1 FROM replica AS held WHERE held.boot_id = mcp_session.owner
                             AND (held.state < 3 OR held.dead_at > " (MS_AGO 6) "))
     RETURNING epoch"
);

/// The conditions keep what somebody else has taken meanwhile, and what was taken again.
const FREE: Statement = statement!(
    "UPDATE mcp_session SET owner = NULL, resumption_ct = NULL WHERE session = $1 AND owner = $2 AND epoch = $3"
);

/// What was kept of it stays.
const LEAVE: Statement =
    statement!("UPDATE mcp_session SET owner = NULL WHERE session = $1 AND owner = $2 AND epoch = $3");

const KEEP: Statement =
    statement!("UPDATE mcp_session SET resumption_ct = $4 WHERE session = $1 AND owner = $2 AND epoch = $3");

const KEPT: Statement =
    statement!("SELECT epoch, resumption_ct FROM mcp_session WHERE session = $1 AND resumption_ct IS NOT NULL");

const TOLD: Statement = statement!("SELECT told_epoch FROM mcp_session WHERE session = $1" LOCKED);

const TELL: Statement = statement!("UPDATE mcp_session SET told_epoch = $2 WHERE session = $1 AND told_epoch < $2");

const LIST: Statement = statement!(
    "SELECT server, user_id, thread_id, owner, epoch, " (MS_SINCE taken_at) "
     FROM mcp_session WHERE owner IS NOT NULL ORDER BY taken_at DESC LIMIT $1"
);

const LIST_OF: Statement = statement!(
    "SELECT server, user_id, thread_id, owner, epoch, " (MS_SINCE taken_at) "
     FROM mcp_session WHERE owner = $2 ORDER BY taken_at DESC LIMIT $1"
);

impl Sessions for SqlStore {
    fn find_session(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Ownership>, StoreError>> {
        Box::pin(async move {
            let row = read!(self, |connection, word| {
                sqlx::query_as(word(FIND)).bind(&session.0[..]).fetch_optional(connection).await
            })?;
            Ok(row.map(ownership))
        })
    }

    fn take_session(&self, taking: TakeSession, gap: Duration) -> BoxFuture<'_, Result<Taken, StoreError>> {
        Box::pin(async move {
            let (owner, scope) = (uuid(&taking.owner)?, &taking.key.scope);
            let epoch: Option<i64> = change!(self, |connection, word| {
                let take = sqlx::query_scalar(word(TAKE)).bind(&taking.session.0[..]).bind(taking.key.server.as_str());
                let take = take.bind(scope.user.as_str()).bind(scope.thread.as_str());
                take.bind(owner).bind(milliseconds(gap)).fetch_optional(connection).await
            })?;
            if let Some(given) = epoch {
                return Ok(Taken::Taken(self::epoch(given)));
            }
            let held = self.find_session(taking.session).await?;
            Ok(Taken::Held(held.unwrap_or(Ownership { owner: None, epoch: Epoch(0) })))
        })
    }

    fn free_session(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.give_back(FREE, session, owner, epoch))
    }

    fn leave_session(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.give_back(LEAVE, session, owner, epoch))
    }

    fn keep_resumption(
        &self,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
        sealed: Vec<u8>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let (owner, epoch) = (uuid(&owner)?, number(epoch));
            change!(self, |connection, word| {
                let keep = sqlx::query(word(KEEP)).bind(&session.0[..]).bind(owner).bind(epoch).bind(&sealed[..]);
                keep.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn find_resumption(&self, session: SessionRow) -> BoxFuture<'_, Result<Option<Resumption>, StoreError>> {
        Box::pin(async move {
            let kept: Option<(i64, Vec<u8>)> = read!(self, |connection, word| {
                sqlx::query_as(word(KEPT)).bind(&session.0[..]).fetch_optional(connection).await
            })?;
            Ok(kept.map(|(epoch, sealed)| Resumption { epoch: self::epoch(epoch), sealed }))
        })
    }

    fn told_epoch(&self, session: SessionRow, epoch: Epoch) -> BoxFuture<'_, Result<Option<Epoch>, StoreError>> {
        Box::pin(async move {
            let epoch = number(epoch);
            let before: Option<i64> = change!(self, |connection, word| {
                let mut held = connection.begin().await?;
                let told = sqlx::query_scalar(word(TOLD)).bind(&session.0[..]).fetch_optional(&mut *held).await?;
                sqlx::query(word(TELL)).bind(&session.0[..]).bind(epoch).execute(&mut *held).await?;
                held.commit().await.map(|()| told)
            })?;
            Ok(before.filter(|before| *before > 0).map(self::epoch))
        })
    }

    fn list_sessions(
        &self,
        owner: Option<BootId>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>> {
        Box::pin(async move {
            let (owner, limit) = (owner.as_ref().map(uuid).transpose()?, i64::from(limit));
            let rows = read!(self, |connection, word| match owner {
                None => sqlx::query_as(word(LIST)).bind(limit).fetch_all(connection).await,
                Some(owner) => sqlx::query_as(word(LIST_OF)).bind(limit).bind(owner).fetch_all(connection).await,
            })?;
            Ok(rows.into_iter().map(stored).collect())
        })
    }
}

impl SqlStore {
    /// Gives a session back by this statement, if it is still held so.
    async fn give_back(
        &self,
        statement: Statement,
        session: SessionRow,
        owner: BootId,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        let (owner, epoch) = (uuid(&owner)?, number(epoch));
        change!(self, |connection, word| {
            let free = sqlx::query(word(statement)).bind(&session.0[..]).bind(owner).bind(epoch);
            free.execute(connection).await.map(|done| done.rows_affected() > 0)
        })
    }
}

fn number(epoch: Epoch) -> i64 {
    i64::try_from(epoch.0).unwrap_or(i64::MAX)
}

fn epoch(number: i64) -> Epoch {
    Epoch(u64::try_from(number).unwrap_or(0))
}

type Found = (i64, Option<Uuid>, Option<i16>, Option<i64>);

fn ownership((epoch, owner, state, ended_ms): Found) -> Ownership {
    let life = match state {
        Some(1) => Life::Up,
        Some(2) => Life::Draining,
        // Of a life that is not on record any more nothing is left.
        _ => Life::Ended(ended_ms.map_or(Duration::MAX, duration)),
    };
    let owner = owner.map(|boot| Owner { boot: BootId::new(boot.to_string()), life });
    Ownership { owner, epoch: self::epoch(epoch) }
}

type Listed = (String, String, String, Uuid, i64, i64);

fn stored((server, user, thread, owner, epoch, age_ms): Listed) -> StoredSession {
    let scope = Scope { user: UserId::new(user), thread: ThreadId::new(thread) };
    StoredSession {
        key: SessionKey { server: ServerName::new(server), scope, credential: None },
        owner: BootId::new(owner.to_string()),
        epoch: self::epoch(epoch),
        age: duration(age_ms),
    }
}
