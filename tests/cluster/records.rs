//! The database of a run, and how it is read from outside.

use std::time::Duration;

use caribou_tests::{Home, Postgres, Setup};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::audit;
use crate::scale::Scale;

const MIGRATE: Duration = Duration::from_secs(60);

/// Where the product keeps its records.
pub(crate) enum Records {
    Postgres(Postgres),
    Sqlite(Home),
}

impl Records {
    /// A PostgreSQL with the product's schema and our audit.
    pub(crate) async fn postgres(scale: &Scale) -> Self {
        Self::Postgres(Postgres::start().await).prepared(scale, audit::POSTGRES).await
    }

    /// A SQLite file with both.
    pub(crate) async fn sqlite(scale: &Scale) -> Self {
        Self::Sqlite(Home::new()).prepared(scale, audit::SQLITE).await
    }

    async fn prepared(self, scale: &Scale, audit: &'static str) -> Self {
        let setup = Setup::new().variable("CARIBOU_DATABASE_URL", &self.url(0));
        let setup = scale.program.iter().fold(setup, |setup, program| setup.program(program.clone()));
        let migrate = setup.command(&["migrate"]).output();
        let done = tokio::time::timeout(MIGRATE, migrate).await.expect("a migration ends").unwrap();
        assert!(done.status.success(), "migrate: {}", String::from_utf8_lossy(&done.stderr));
        match &self {
            Self::Postgres(postgres) => drop(postgres.ask(audit).await.unwrap()),
            Self::Sqlite(_) => {
                let mut connection = SqliteConnection::connect(&self.url(0)).await.unwrap();
                sqlx::raw_sql(audit).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
        }
        self
    }

    /// The address for the process with this number, which the audit knows it by.
    pub(crate) fn url(&self, life: u32) -> String {
        match self {
            Self::Postgres(postgres) => {
                format!("{}?options=-c%20run.life%3D{life}", postgres.url("postgres"))
            }
            Self::Sqlite(home) => format!("sqlite:{}", home.join("caribou.db").display()),
        }
    }

    /// The first column, texts all, of what is asked.
    pub(crate) async fn ask(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Postgres(postgres) => postgres.ask(sql).await.unwrap(),
            Self::Sqlite(_) => {
                let mut connection = SqliteConnection::connect(&self.url(0)).await.unwrap();
                let rows = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await.unwrap();
                connection.close().await.unwrap();
                rows
            }
        }
    }

    /// One number.
    pub(crate) async fn count(&self, sql: &str) -> u64 {
        let rows = self.ask(&format!("SELECT CAST(({sql}) AS text)")).await;
        rows.first().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number: {sql}: {rows:?}"))
    }

    /// The name of a task without its prefix, as SQL of the column `task_id`.
    pub(crate) fn task_name(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "replace(CAST(task_id AS text), '-', '')",
            Self::Sqlite(_) => "lower(hex(task_id))",
        }
    }
}
