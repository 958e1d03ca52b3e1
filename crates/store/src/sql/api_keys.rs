//! API keys, one row each.
//!
//! Whether a key has expired is decided by the database's clock when it is asked for; a revoked one keeps its row.

use std::time::Duration;

use caribou_core::identity::{Role, ToolRules};
use caribou_core::ids::UserId;
use caribou_ports::BoxFuture;
use caribou_ports::store::{ApiKey, ApiKeys, StoreError, StoredApiKey};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SqlStore;
use super::pools::{change, read};
use super::statement::{Statement, statement};

const CREATE: Statement = statement!(
    "INSERT INTO mcp_api_key (id, hash, label, user_id, roles, allowed, denied, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, " (MS_AGO 8) ")"
);

const FIND: Statement = statement!(
    "SELECT id, hash, label, user_id, roles, allowed, denied, -(" (MS_SINCE expires_at) ") FROM mcp_api_key
     WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > " NOW ")"
);

/// The condition keeps the first time: revoked is final.
const REVOKE: Statement =
    statement!("UPDATE mcp_api_key SET revoked_at = " NOW " WHERE id = $1 AND revoked_at IS NULL");

const ALL: Statement = statement!(
    "SELECT id, hash, label, user_id, roles, allowed, denied, -(" (MS_SINCE expires_at) "), " (MS_SINCE created_at) ",
            revoked_at IS NOT NULL
     FROM mcp_api_key ORDER BY created_at, id"
);

impl ApiKeys for SqlStore {
    fn create(&self, key: ApiKey) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (roles, denied) = (json(&key.roles)?, json(&key.tools.denied)?);
            let allowed = key.tools.allowed.as_ref().map(json).transpose()?;
            // Minus so many milliseconds ago.
            let expires = key.expires_in.map(|left| -i64::try_from(left.as_millis()).unwrap_or(i64::MAX));
            change!(self, |connection, word| {
                let create = sqlx::query(word(CREATE)).bind(&key.id).bind(&key.hash[..]).bind(&key.label);
                let create = create.bind(key.user.as_str()).bind(roles).bind(allowed).bind(denied).bind(expires);
                create.execute(connection).await.map(drop)
            })
        })
    }

    fn find(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<ApiKey>, StoreError>> {
        Box::pin(async move {
            let row: Option<Row> = read!(self, |connection, word| {
                sqlx::query_as(word(FIND)).bind(&hash[..]).fetch_optional(connection).await
            })?;
            row.map(key).transpose()
        })
    }

    fn revoke(&self, id: String) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let done = change!(self, |connection, word| {
                let revoke = sqlx::query(word(REVOKE)).bind(&id);
                revoke.execute(connection).await.map(|done| done.rows_affected())
            })?;
            Ok(done > 0)
        })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<StoredApiKey>, StoreError>> {
        Box::pin(async move {
            let rows: Vec<StoredRow> =
                read!(self, |connection, word| sqlx::query_as(word(ALL)).fetch_all(connection).await)?;
            rows.into_iter().map(stored).collect()
        })
    }
}

type Row = (String, Vec<u8>, String, String, String, Option<String>, String, Option<i64>);

type StoredRow = (String, Vec<u8>, String, String, String, Option<String>, String, Option<i64>, i64, bool);

fn key((id, hash, label, user, roles, allowed, denied, expires): Row) -> Result<ApiKey, StoreError> {
    let roles: Vec<Role> = read_json(&roles)?;
    let tools = ToolRules { allowed: allowed.as_deref().map(read_json).transpose()?, denied: read_json(&denied)? };
    let hash = hash.try_into().map_err(|_| unreadable())?;
    Ok(ApiKey { id, hash, label, user: UserId::new(user), roles, tools, expires_in: expires.map(milliseconds) })
}

fn stored(
    (id, hash, label, user, roles, allowed, denied, expires, age, revoked): StoredRow,
) -> Result<StoredApiKey, StoreError> {
    let key = key((id, hash, label, user, roles, allowed, denied, expires))?;
    Ok(StoredApiKey { key, age: milliseconds(age), revoked })
}

/// Negative when it is over, or when the machine's clock was set back.
fn milliseconds(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| unreadable())
}

fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| unreadable())
}

fn unreadable() -> StoreError {
    StoreError::Mismatch("an API key that this version cannot read".to_owned())
}
