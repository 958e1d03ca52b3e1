//! Which schema the database has, and how it gets the one this version needs.
//!
//! Each migration is one commit, together with its own row in `caribou_migration`, and the lock of the database is
//! held for its length: however many migrate at once, each step is done once, and a crash leaves whole steps. A
//! schema made by a newer version is never touched.

use std::time::Duration;

use caribou_core::bounds;
use caribou_core::failure::Class;
use caribou_ports::store::StoreError;
use sqlx::PgConnection;

use super::SqlStore;
use super::errors;
use super::pools::{Pools, REQUEST};
use crate::migrations::{MIGRATIONS, Migration};

/// Why a database cannot be used by this version as it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A newer Caribou has migrated it.
    #[error(
        "the schema of the database is version {database}, made by a newer Caribou; this one knows {known}: \
         start the newer one, or restore a copy of the database from before its migration"
    )]
    Newer {
        /// The version of the database.
        database: i32,
        /// The newest version this Caribou knows.
        known: i32,
    },
    /// It waits for `caribou migrate`.
    #[error(
        "the schema of the database is version {database} and this Caribou needs {known}: run `caribou migrate` with \
         the same `database_url`"
    )]
    Older {
        /// The version of the database; 0 = no schema.
        database: i32,
        /// The version this Caribou needs.
        known: i32,
    },
    /// It was migrated by something that is not a predecessor of this Caribou.
    #[error("migration {version} of the database is not the one this Caribou knows: is it another product's database?")]
    Foreign {
        /// The first version that differs.
        version: i32,
    },
    /// Somebody else is at it.
    #[error("another migration runs on this database: wait until it has ended and run `caribou migrate` again")]
    Busy,
    /// The database cannot be asked, or refuses a step.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SchemaError {
    /// What may be done about it.
    pub fn class(&self) -> Class {
        match self {
            Self::Store(error) => error.class(),
            Self::Busy => Class::Retry,
            Self::Newer { .. } | Self::Older { .. } | Self::Foreign { .. } => Class::Invalid,
        }
    }
}

const MAKE_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS caribou_migration (version integer PRIMARY KEY, name text NOT NULL)";

pub(super) const APPLIED: &str = "SELECT version, name FROM caribou_migration ORDER BY version";

const RECORD: &str = "INSERT INTO caribou_migration (version, name) VALUES ($1, $2)";

/// Held until the transaction ends. One lock for each schema, because each has its own tables.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('caribou_migration ' || current_schema(), 0))";

/// Until the transaction ends.
const SET: &str = "SELECT set_config($1, $2, true)";

/// Takes the next step in the transaction `$step`, in which nobody else can take one.
macro_rules! take_step {
    ($step:ident, $script:ident) => {{
        sqlx::query(MAKE_TABLE).execute(&mut *$step).await?;
        let applied: Vec<(i32, String)> = sqlx::query_as(APPLIED).fetch_all(&mut *$step).await?;
        let Some(next) = pending(&applied)? else { return Ok(None) };
        sqlx::raw_sql(next.$script).execute(&mut *$step).await?;
        sqlx::query(RECORD).bind(next.version).bind(next.name).execute(&mut *$step).await?;
        $step.commit().await?;
        Ok(Some(next))
    }};
}

impl SqlStore {
    /// Makes the store usable: an embedded database is migrated, that of a server is only looked at, because other
    /// replicas may be using it.
    ///
    /// # Errors
    /// When the schema is not, or cannot be made, the one this version needs.
    pub async fn make_ready(&self) -> Result<(), SchemaError> {
        match &self.pools {
            Pools::Postgres(pool) => within(REQUEST, async { check(&mut *pool.acquire().await?).await }).await,
            Pools::Sqlite { .. } => {
                while self.migrate_next().await?.is_some() {}
                Ok(())
            }
        }
    }

    /// The version of the schema that this Caribou needs.
    pub fn schema_version() -> i32 {
        newest()
    }

    /// Takes the next step towards the schema this version needs and tells which it was; `None` = there was none
    /// left. Safe to call at any time, and again after any error.
    ///
    /// # Errors
    /// When the schema is a newer or a foreign one, or the step cannot be taken now. Nothing of it is left then.
    pub async fn migrate_next(&self) -> Result<Option<&'static Migration>, SchemaError> {
        within(bounds::MIGRATION_STEP, async {
            match &self.pools {
                Pools::Postgres(pool) => {
                    let mut step = pool.begin().await?;
                    hold(&mut step).await?;
                    take_step!(step, postgres)
                }
                Pools::Sqlite { writer, .. } => {
                    let mut step = writer.begin_with("BEGIN IMMEDIATE").await?;
                    take_step!(step, sqlite)
                }
            }
        })
        .await
    }
}

/// Keeps other migrations out, and gives the step the time it needs. Only the wait for another migration is long: a
/// step that waits for a table would make everybody else wait behind it.
async fn hold(step: &mut PgConnection) -> Result<(), SchemaError> {
    let ms = |bound: Duration| bound.as_millis().to_string();
    let set =
        async |step: &mut PgConnection, name, bound| sqlx::query(SET).bind(name).bind(ms(bound)).execute(step).await;
    set(step, "statement_timeout", bounds::MIGRATION_STEP).await?;
    set(step, "lock_timeout", bounds::MIGRATION_WAIT).await?;
    sqlx::query(LOCK).execute(&mut *step).await.map_err(errors::at_the_lock)?;
    set(step, "lock_timeout", bounds::STORE_LOCK).await?;
    Ok(())
}

/// Whether the schema is the one this version needs.
async fn check(connection: &mut PgConnection) -> Result<(), SchemaError> {
    let applied = match sqlx::query_as(APPLIED).fetch_all(connection).await {
        Err(error) if errors::is_no_such_table(&error) => Vec::new(),
        applied => applied?,
    };
    match pending(&applied)? {
        None => Ok(()),
        Some(next) => Err(SchemaError::Older { database: next.version - 1, known: newest() }),
    }
}

/// The step that comes after those applied.
pub(super) fn pending(applied: &[(i32, String)]) -> Result<Option<&'static Migration>, SchemaError> {
    if let Some((database, _)) = applied.last().filter(|(version, _)| *version > newest()) {
        return Err(SchemaError::Newer { database: *database, known: newest() });
    }
    let strange = applied
        .iter()
        .zip(&MIGRATIONS)
        .find(|((version, name), known)| (*version, &**name) != (known.version, known.name));
    match strange {
        Some((_, known)) => Err(SchemaError::Foreign { version: known.version }),
        None => Ok(MIGRATIONS.get(applied.len())),
    }
}

fn newest() -> i32 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

async fn within<T>(bound: Duration, step: impl Future<Output = Result<T, SchemaError>>) -> Result<T, SchemaError> {
    let late = |_| StoreError::Unavailable(format!("no answer within {} s", bound.as_secs()));
    tokio::time::timeout(bound, step).await.map_err(late)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(versions: &[(i32, &str)]) -> Vec<(i32, String)> {
        versions.iter().map(|(version, name)| (*version, (*name).to_owned())).collect()
    }

    #[test]
    fn steps_follow_one_another_until_none_is_left() {
        let mut done = Vec::new();
        while let Some(next) = pending(&done).unwrap() {
            done.push((next.version, next.name.to_owned()));
        }
        assert_eq!(done.len(), MIGRATIONS.len());
    }

    #[test]
    fn a_newer_schema_and_a_foreign_one_are_refused() {
        let newer = pending(&applied(&[(1, "0001_create_replica"), (99, "0099_from_the_future")])).unwrap_err();
        assert_eq!(newer, SchemaError::Newer { database: 99, known: newest() });
        let foreign = pending(&applied(&[(1, "0001_create_other")])).unwrap_err();
        assert_eq!(foreign, SchemaError::Foreign { version: 1 });
        let gap = pending(&applied(&[(2, "0002_create_promotion")])).unwrap_err();
        assert_eq!(gap, SchemaError::Foreign { version: 1 });
    }
}
