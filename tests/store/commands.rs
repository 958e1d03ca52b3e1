//! What an operator sees of the store: `caribou migrate`, and what `caribou serve` does with the database.

use std::process::Output;
use std::time::Duration;

use caribou_ports::store::Replicas as _;
use caribou_store::{Location, SqlStore};
use caribou_tests::Setup;

use crate::opened::Database;

async fn run(database: &Database, verb: &[&str]) -> Output {
    let setup = Setup::new().variable("CARIBOU_DATABASE_URL", &database.address());
    setup.command(verb).output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_postgres_serves_after_it_was_migrated_and_holds_the_record_of_each_life() {
    let database = Database::postgres().await;
    let early = run(&database, &["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(early.status.code(), Some(1));
    assert!(early.stdout.is_empty() && text(&early.stderr).contains("run `caribou migrate`"), "{early:?}");

    let migrated = run(&database, &["migrate"]).await;
    let lines = text(&migrated.stdout);
    assert!(lines.starts_with("applied 0001_create_replica\napplied 0002_create_promotion\n"), "{migrated:?}");
    let again = run(&database, &["migrate"]).await;
    assert_eq!(text(&again.stdout), format!("the schema is version {}\n", SqlStore::schema_version()));

    let setup = Setup::new().variable("CARIBOU_DATABASE_URL", &database.address());
    let serving = setup.start().await;
    let store = database.open().await;
    let alive = store.list().await.unwrap();
    assert_eq!(alive.len(), 1);
    assert_eq!(alive[0].replica.version, env!("CARGO_PKG_VERSION"));
    assert!(!alive[0].replica.host.is_empty());
    serving.stop().await;
    assert_eq!(store.list().await.unwrap(), []);
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 1, "its end is on record");
}

#[tokio::test]
async fn a_newer_database_is_refused_by_every_command_with_the_next_step() {
    let database = Database::sqlite();
    database.migrated().await.close().await;
    database.run("INSERT INTO caribou_migration (version, name) VALUES (9999, '9999_come_later')").await;
    for verb in [&["migrate"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let refused = run(&database, verb).await;
        assert_eq!(refused.status.code(), Some(1), "{verb:?}");
        assert!(text(&refused.stderr).contains("start the newer one"), "{refused:?}");
    }
}

#[tokio::test]
async fn nothing_needs_to_be_set_up_for_a_file_in_the_data_folder() {
    let serving = Setup::new().start().await;
    let file = serving.home().join("data/caribou.db");
    let (status, home) = serving.stop().await;
    assert!(status.success(), "{status}");
    let store = SqlStore::open(&Location::Sqlite(file)).await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 1, "its end is on record");
    store.close().await;
    drop(home);
}

#[tokio::test]
async fn an_address_is_never_printed() {
    // Invariant O3.
    let address = "postgres://mallory:hunter2@127.0.0.1:1/secret";
    for verb in [&["migrate"][..], &["serve", "--listen", "127.0.0.1:0"], &["check"]] {
        for address in [address, "mysql://mallory:hunter2@127.0.0.1:1/secret"] {
            let setup = Setup::new().variable("CARIBOU_DATABASE_URL", address).variable("RUST_LOG", "trace");
            let ran = setup.command(verb).output().await.unwrap();
            let said = format!("{}{}", text(&ran.stdout), text(&ran.stderr));
            assert!(!said.contains("hunter2") && !said.contains("mallory"), "{said}");
        }
    }
}
