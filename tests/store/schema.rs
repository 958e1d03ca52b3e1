//! A database gets the schema of this version, step by step, whoever else is at it; a newer one is left alone.

use std::os::unix::fs::PermissionsExt as _;

use caribou_store::{SchemaError, SqlStore};
use rstest::rstest;

use crate::opened::{Database, Kind};

async fn steps(store: &SqlStore) -> Vec<&'static str> {
    let mut taken = Vec::new();
    while let Some(step) = store.migrate_next().await.unwrap() {
        taken.push(step.name);
    }
    taken
}

#[rstest]
#[tokio::test]
async fn each_step_is_taken_once(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let database = Database::of(kind).await;
    let store = database.open().await;
    assert_eq!(steps(&store).await[..2], ["0001_create_replica", "0002_create_promotion"]);
    assert_eq!(steps(&store).await, Vec::<&str>::new());
    store.make_ready().await.unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn many_may_migrate_at_once(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let database = Database::of(kind).await;
    let mut migrators = Vec::new();
    for _ in 0..4 {
        let store = database.open().await;
        migrators.push(tokio::spawn(async move { steps(&store).await }));
    }
    let mut taken = Vec::new();
    for migrator in migrators {
        taken.extend(migrator.await.unwrap());
    }
    taken.sort_unstable();
    let again = Database::sqlite();
    assert_eq!(taken, steps(&again.open().await).await, "all steps, each by one of them");
}

#[rstest]
#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let database = Database::of(kind).await;
    let store = database.migrated().await;
    database.run("INSERT INTO caribou_migration (version, name) VALUES (9999, '9999_come_later')").await;
    for refused in [store.make_ready().await.unwrap_err(), store.migrate_next().await.unwrap_err()] {
        assert!(matches!(refused, SchemaError::Newer { database: 9999, .. }), "{refused:?}");
        assert!(refused.to_string().contains("start the newer one"), "{refused}");
    }
}

#[rstest]
#[tokio::test]
async fn a_look_tells_how_far_the_schema_is_and_changes_nothing(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let database = Database::of(kind).await;
    let store = database.open().await;
    let known = SqlStore::schema_version();
    for version in [0, 1] {
        for _ in 0..2 {
            let found = store.inspect().await.unwrap();
            assert!(!found.version.is_empty(), "{found:?}");
            let older = Some(SchemaError::Older { database: version, known });
            assert_eq!((found.schema, found.unfit), (version, older), "looking takes no step");
        }
        assert_eq!(store.migrate_next().await.unwrap().unwrap().version, version + 1);
    }
    steps(&store).await;
    let found = store.inspect().await.unwrap();
    assert_eq!((found.schema, found.unfit), (known, None));
    database.run("INSERT INTO caribou_migration (version, name) VALUES (9999, '9999_come_later')").await;
    let found = store.inspect().await.unwrap();
    assert!(matches!(found.unfit, Some(SchemaError::Newer { database: 9999, .. })), "{found:?}");
}

#[rstest]
#[tokio::test]
async fn a_step_that_fails_leaves_nothing(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let database = Database::of(kind).await;
    let store = database.open().await;
    database.run("CREATE TABLE mcp_promotion (of_another_product integer)").await;
    assert_eq!(store.migrate_next().await.unwrap().unwrap().version, 1);
    let refused = store.migrate_next().await.unwrap_err().to_string();
    assert!(refused.contains("mcp_promotion"), "{refused}");
    database.run("DROP TABLE mcp_promotion").await;
    assert_eq!(store.migrate_next().await.unwrap().unwrap().version, 2);
}

#[tokio::test]
async fn a_postgres_without_a_schema_is_refused_with_the_next_step() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let refused = store.make_ready().await.unwrap_err();
    assert!(matches!(refused, SchemaError::Older { database: 0, .. }), "{refused:?}");
    assert!(refused.to_string().contains("`caribou migrate`"), "{refused}");
    assert_eq!(database.ask("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").await, [""; 0]);
}

#[tokio::test]
async fn a_sqlite_file_migrates_itself_and_is_its_owners_only() {
    let database = Database::sqlite();
    let store = database.open().await;
    store.make_ready().await.unwrap();
    let Database::Sqlite(home) = &database else { panic!("not SQLite") };
    for (name, mode) in [("data", 0o700), ("data/caribou.db", 0o600), ("data/caribou.db-wal", 0o600)] {
        let found = std::fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}");
    }
    store.close().await;
    assert!(!home.join("data/caribou.db-wal").exists(), "the last connection tidies up");
}
