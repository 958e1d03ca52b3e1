//! The audit log, one row a call.
//!
//! A batch is one statement with one parameter. Pages are read from an index whoever asks: rows of a party are the
//! newest of its two kinds, each from its own index.

use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::store::{Audit, AuditFilter, AuditRow, StoreError, StoredAuditRow};

use super::SqlStore;
use super::pools::{change, read};
use super::statement::{Statement, statement};

/// Rows as JSON arrays, in the order of the columns.
macro_rules! append {
    ($rows:literal) => {
        concat!(
            "INSERT INTO mcp_audit (at_ms, duration_ms, principal, user_id, thread_id, action, server, tool, outcome, \
                                    request_id, door)
             SELECT CAST(value->>0 AS bigint), CAST(value->>1 AS bigint), value->>2, value->>3, value->>4, value->>5,
                    value->>6, value->>7, value->>8, value->>9, value->>10
             FROM ",
            $rows
        )
    };
}

const APPEND: Statement = Statement {
    postgres: append!("json_array_elements(CAST($1 AS json)) AS given(value)"),
    sqlite: append!("json_each($1)"),
};

/// Rows before `$1`, at most `$2`. An absent condition compares a column with itself, and none of them is ever null.
/// `$own` comes first where it has an index to go by.
macro_rules! page {
    ($columns:literal, $own:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM mcp_audit WHERE ",
            $own,
            "id < $1 AND principal = COALESCE($3, principal) AND user_id = COALESCE($4, user_id)
             AND server = COALESCE($5, server) AND tool = COALESCE($6, tool) AND outcome = COALESCE($7, outcome)
             ORDER BY id DESC LIMIT $2"
        )
    };
    ($own:literal) => {
        page!(
            "id, at_ms, duration_ms, principal, user_id, thread_id, action, server, tool, outcome, request_id, door",
            $own
        )
    };
}

const PAGE: Statement = same(page!(""));

const PAGE_OF_USER: Statement = same(page!("user_id = $4 AND "));

const PAGE_OF_PRINCIPAL: Statement = same(page!("principal = $3 AND "));

/// Of the principal `$8` or the user `$9`. Each half is a page of its own, so that neither reads the other's rows.
const PAGE_OF_PARTY: Statement = same(concat!(
    "SELECT id, at_ms, duration_ms, principal, user_id, thread_id, action, server, tool, outcome, request_id, door
     FROM mcp_audit WHERE id IN (SELECT id FROM (",
    page!("id", "principal = $8 AND "),
    ") AS caller UNION SELECT id FROM (",
    page!("id", "user_id = $9 AND "),
    ") AS called_for) ORDER BY id DESC LIMIT $2"
));

/// PostgreSQL takes a set of unknown size for a reason to read the whole table, and an array for none.
macro_rules! forget {
    ($before:literal, $after:literal) => {
        statement!("DELETE FROM mcp_audit WHERE id " $before "SELECT id FROM mcp_audit WHERE at < " (MS_AGO 1)
                   " ORDER BY at LIMIT $2" $after)
    };
}

const FORGET: Statement =
    Statement { postgres: forget!("= ANY(ARRAY(", "))").postgres, sqlite: forget!("IN (", ")").sqlite };

const fn same(text: &'static str) -> Statement {
    Statement { postgres: text, sqlite: text }
}

impl Audit for SqlStore {
    fn append(&self, rows: Vec<AuditRow>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if rows.is_empty() {
                return Ok(());
            }
            let rows = written(&rows)?;
            change!(self, |connection, word| sqlx::query(word(APPEND)).bind(rows).execute(connection).await.map(drop))
        })
    }

    fn read(&self, filter: AuditFilter, limit: u32) -> BoxFuture<'_, Result<Vec<StoredAuditRow>, StoreError>> {
        Box::pin(async move {
            let page = match &filter {
                AuditFilter { party: Some(_), .. } => PAGE_OF_PARTY,
                AuditFilter { user: Some(_), .. } => PAGE_OF_USER,
                AuditFilter { principal: Some(_), .. } => PAGE_OF_PRINCIPAL,
                _ => PAGE,
            };
            let AuditFilter { principal, user, server, tool, outcome, before_id, party } = filter;
            let before = before_id.unwrap_or(i64::MAX);
            let rows: Vec<Row> = read!(self, |connection, word| {
                let asked = sqlx::query_as(word(page)).bind(before).bind(i64::from(limit)).bind(principal).bind(user);
                let asked = asked.bind(server).bind(tool).bind(outcome);
                let asked = match party {
                    Some(party) => asked.bind(party.principal).bind(party.user),
                    None => asked,
                };
                asked.fetch_all(connection).await
            })?;
            Ok(rows.into_iter().map(stored).collect())
        })
    }

    fn forget(&self, age: Duration, limit: u32) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            change!(self, |connection, word| {
                let forget = sqlx::query(word(FORGET)).bind(age_ms).bind(i64::from(limit));
                forget.execute(connection).await.map(|done| done.rows_affected())
            })
        })
    }
}

/// The rows as [`APPEND`] takes them.
fn written(rows: &[AuditRow]) -> Result<String, StoreError> {
    let row = |row: &AuditRow| {
        serde_json::json!([
            row.at_ms,
            row.duration_ms,
            row.principal,
            row.user,
            row.thread,
            row.action,
            row.server,
            row.tool,
            row.outcome,
            row.request_id,
            row.door
        ])
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    serde_json::to_string(&rows).map_err(|_| StoreError::Mismatch("an audit row that is no JSON".to_owned()))
}

type Row = (i64, i64, i64, String, String, String, String, String, String, String, String, String);

fn stored(
    (id, at_ms, duration_ms, principal, user, thread, action, server, tool, outcome, request_id, door): Row,
) -> StoredAuditRow {
    StoredAuditRow {
        id,
        row: AuditRow { at_ms, principal, user, thread, action, server, tool, outcome, duration_ms, request_id, door },
    }
}
