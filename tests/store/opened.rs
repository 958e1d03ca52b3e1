//! One store of each kind, ready for one test.

use std::ops::Deref;

use caribou_ports::store::{
    ApiKeys, Audit, ClientSessions, ConfigRevisions, Connections, Generations, Notifications, OAuthChains, Promotions,
    Replicas, Sessions, Tasks, ThreadVolumes, Wakeups,
};
use caribou_store::{Location, Memory, SqlStore};
use caribou_tests::{Home, Postgres};

/// Which store a test is given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Postgres,
}

/// All that is stored.
pub(crate) trait Store:
    ApiKeys
    + Replicas
    + Promotions
    + Audit
    + Connections
    + Tasks
    + Notifications
    + OAuthChains
    + Sessions
    + ClientSessions
    + Generations
    + ConfigRevisions
    + ThreadVolumes
    + Wakeups
{
}

impl<
    T: ApiKeys
        + Replicas
        + Promotions
        + Audit
        + Connections
        + Tasks
        + Notifications
        + OAuthChains
        + Sessions
        + ClientSessions
        + Generations
        + ConfigRevisions
        + ThreadVolumes
        + Wakeups,
> Store for T
{
}

/// A store and what it lives in.
pub(crate) struct Opened {
    store: Box<dyn Store>,
    _database: Option<Database>,
}

impl Opened {
    /// An empty one.
    pub(crate) async fn new(kind: Kind) -> Self {
        let database = match kind {
            Kind::Memory => return Self { store: Box::new(Memory::default()), _database: None },
            Kind::Sqlite => Database::sqlite(),
            Kind::Postgres => Database::postgres().await,
        };
        let store = database.migrated().await;
        Self { store: Box::new(store), _database: Some(database) }
    }
}

impl Deref for Opened {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

/// A database without a schema of ours.
pub(crate) enum Database {
    Sqlite(Home),
    Postgres(Box<Postgres>),
}

/// The schema of a test, and the only one that its connections see.
const SCHEMA: &str = "of_this_test";

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(Home::new())
    }

    pub(crate) async fn postgres() -> Self {
        let postgres = Postgres::start().await;
        postgres.ask(&format!("CREATE SCHEMA {SCHEMA}")).await.unwrap();
        Self::Postgres(Box::new(postgres))
    }

    pub(crate) async fn of(kind: Kind) -> Self {
        match kind {
            Kind::Postgres => Self::postgres().await,
            Kind::Sqlite | Kind::Memory => Self::sqlite(),
        }
    }

    /// Its address.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Sqlite(home) => format!("sqlite:{}", home.join("data/caribou.db").display()),
            Self::Postgres(postgres) => {
                format!("{}?options=-c%20search_path%3D{SCHEMA}", postgres.url("postgres"))
            }
        }
    }

    /// Connections of their own.
    pub(crate) async fn open(&self) -> SqlStore {
        SqlStore::open(&Location::parse(&self.address()).unwrap()).await.unwrap()
    }

    /// The same, with the schema of this version.
    pub(crate) async fn migrated(&self) -> SqlStore {
        let store = self.open().await;
        while store.migrate_next().await.unwrap().is_some() {}
        store
    }

    /// Runs statements past the store.
    pub(crate) async fn run(&self, sql: &'static str) {
        use sqlx::Connection as _;
        match self {
            Self::Sqlite(_) => {
                let mut connection = sqlx::SqliteConnection::connect(&self.address()).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
            Self::Postgres(_) => drop(self.ask(sql).await),
        }
    }

    /// Asks PostgreSQL past the store: the first column of each row.
    pub(crate) async fn ask(&self, sql: &str) -> Vec<String> {
        self.server().ask(&format!("SET search_path = {SCHEMA}; {sql}")).await.unwrap()
    }

    /// The PostgreSQL that it is in.
    pub(crate) fn server(&self) -> &Postgres {
        let Self::Postgres(postgres) = self else { panic!("only PostgreSQL is a server") };
        postgres
    }
}
