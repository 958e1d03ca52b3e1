//! Sessions that clients opened with us. Asked for with each request of a client, so a use is written down only now and
//! then: the time of the last one is as exact as the end of an idle session needs it to be.

use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::store::{ClientSession, ClientSessions, StoreError};

use super::SqlStore;
use super::pools::{change, read};
use super::replicas::{duration, milliseconds};
use super::statement::{Statement, statement};

/// A use is written down when the last one that was is older than this, and than a fraction of the time a session may
/// be idle.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// The bound is about what there is: of several at once each may still see room.
const BEGIN: Statement = statement!(
    "INSERT INTO mcp_client_session (id, principal, server, version, capabilities, log_level, used_at)
     SELECT $1, $2, $3, $4, $5, $6, " NOW " WHERE (SELECT count(*) FROM mcp_client_session) < $7
     ON CONFLICT (id) DO NOTHING"
);

const FIND: Statement = statement!(
    "SELECT principal, server, version, capabilities, log_level, subscriptions, " (MS_SINCE used_at) "
     FROM mcp_client_session WHERE id = $1"
);

const USED: Statement = statement!("UPDATE mcp_client_session SET used_at = " NOW " WHERE id = $1");

const AGREE: Statement = statement!("UPDATE mcp_client_session SET version = $2, capabilities = $3 WHERE id = $1");

const SET_LEVEL: Statement = statement!("UPDATE mcp_client_session SET log_level = $2 WHERE id = $1");

/// One statement for both: taken off, and put at the end again if it is wanted. So two at once lose nothing of each
/// other. $2 is the URI between line ends, $3 what is put at the end.
const SUBSCRIBE: Statement = statement!(
    "UPDATE mcp_client_session SET subscriptions = replace(subscriptions, $2, '') || $3
     WHERE id = $1 AND length(replace(subscriptions, $2, '')) + length($3) <= $4"
);

const END: Statement = statement!("DELETE FROM mcp_client_session WHERE id = $1");

/// The time is compared again: one of them may have been used meanwhile.
const FORGET: Statement = statement!(
    "DELETE FROM mcp_client_session WHERE used_at < " (MS_AGO 1) " AND id IN
        (SELECT id FROM mcp_client_session WHERE used_at < " (MS_AGO 1) " ORDER BY used_at LIMIT $2)"
);

impl ClientSessions for SqlStore {
    fn begin_client_session(&self, session: ClientSession, most: u32) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            change!(self, |connection, word| {
                let begin = sqlx::query(word(BEGIN)).bind(&session.id).bind(&*session.principal);
                let begin = begin.bind(session.server.as_deref()).bind(&session.version).bind(&session.capabilities);
                let begin = begin.bind(session.log_level.as_deref()).bind(i64::from(most));
                begin.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn use_client_session(
        &self,
        id: String,
        idle: Duration,
    ) -> BoxFuture<'_, Result<Option<ClientSession>, StoreError>> {
        Box::pin(async move {
            let found: Option<Found> = read!(self, |connection, word| {
                sqlx::query_as(word(FIND)).bind(&id).fetch_optional(connection).await
            })?;
            let Some((principal, server, version, capabilities, log_level, uris, unused_ms)) = found else {
                return Ok(None);
            };
            let unused = duration(unused_ms);
            if unused > idle {
                return Ok(None);
            }
            if unused > NOTED_EVERY.min(idle / 4) {
                change!(self, |connection, word| {
                    sqlx::query(word(USED)).bind(&id).execute(connection).await.map(drop)
                })?;
            }
            let subscriptions = uris.split('\n').filter(|uri| !uri.is_empty()).map(str::to_owned).collect();
            let principal = principal.into();
            Ok(Some(ClientSession { id, principal, server, version, capabilities, log_level, subscriptions }))
        })
    }

    fn agree_with_client(
        &self,
        id: String,
        version: String,
        capabilities: String,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            change!(self, |connection, word| {
                let agree = sqlx::query(word(AGREE)).bind(&id).bind(&version).bind(&capabilities);
                agree.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn set_client_log_level(&self, id: String, level: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            change!(self, |connection, word| {
                let set = sqlx::query(word(SET_LEVEL)).bind(&id).bind(&level);
                set.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn subscribe_client(
        &self,
        id: String,
        uri: String,
        is_wanted: bool,
        most_chars: u32,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let line = format!("\n{uri}\n");
            let put = if is_wanted { line.as_str() } else { "" };
            change!(self, |connection, word| {
                let set = sqlx::query(word(SUBSCRIBE)).bind(&id).bind(&line).bind(put).bind(i64::from(most_chars));
                set.execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn end_client_session(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            change!(self, |connection, word| {
                sqlx::query(word(END)).bind(&id).execute(connection).await.map(|done| done.rows_affected() > 0)
            })
        })
    }

    fn forget_client_sessions(&self, idle: Duration, limit: u32) -> BoxFuture<'_, Result<u32, StoreError>> {
        Box::pin(async move {
            let forgotten = change!(self, |connection, word| {
                let forget = sqlx::query(word(FORGET)).bind(milliseconds(idle)).bind(i64::from(limit));
                forget.execute(connection).await.map(|done| done.rows_affected())
            })?;
            Ok(u32::try_from(forgotten).unwrap_or(limit))
        })
    }
}

/// Principal, server, revision, capabilities, log level, subscriptions, and for how long it was not used.
type Found = (String, Option<String>, String, String, Option<String>, String, i64);
