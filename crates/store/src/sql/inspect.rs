//! What a database is and how far its schema is, for people who look for what is wrong. Changes nothing, not even an
//! embedded database that a start would migrate.

use caribou_ports::store::StoreError;

use super::SqlStore;
use super::pools::{Pools, read};
use super::schema::{APPLIED, SchemaError, pending};
use super::statement::Statement;

/// How many tables of applied migrations there are.
const TABLES: Statement = Statement {
    postgres: "SELECT count(to_regclass('caribou_migration'))",
    sqlite: "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'caribou_migration'",
};

const VERSION: Statement =
    Statement { postgres: "SELECT current_setting('server_version')", sqlite: "SELECT sqlite_version()" };

/// A database as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// `PostgreSQL` or `SQLite`.
    pub product: &'static str,
    /// The version of that product.
    pub version: String,
    /// The version of the schema; 0 = none was ever made.
    pub schema: i32,
    /// Why this version of Caribou cannot use the schema as it stands. [`SchemaError::Older`] is no reason for an
    /// embedded database: a start mends it.
    pub unfit: Option<SchemaError>,
}

impl SqlStore {
    /// Looks at the database.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn inspect(&self) -> Result<Inspected, StoreError> {
        let version = read!(self, |connection, word| sqlx::query_scalar(word(VERSION)).fetch_one(connection).await)?;
        let tables: i64 = read!(self, |connection, word| sqlx::query_scalar(word(TABLES)).fetch_one(connection).await)?;
        let applied: Vec<(i32, String)> = match tables {
            0 => Vec::new(),
            _ => read!(self, |connection, _word| sqlx::query_as(APPLIED).fetch_all(connection).await)?,
        };
        let schema = applied.last().map_or(0, |(version, _)| *version);
        let unfit = match pending(&applied) {
            Ok(None) => None,
            Ok(Some(_)) => Some(SchemaError::Older { database: schema, known: Self::schema_version() }),
            Err(error) => Some(error),
        };
        let product = match &self.pools {
            Pools::Postgres(_) => "PostgreSQL",
            Pools::Sqlite { .. } => "SQLite",
        };
        Ok(Inspected { product, version, schema, unfit })
    }
}
