//! A database that cannot be used is told with its reason and the next step, and without its address (invariant O3).

use caribou_core::failure::Class;
use caribou_ports::store::{Replicas as _, StoreError};
use caribou_store::{Location, SqlStore};
use caribou_tests::{Home, network};

use crate::opened::Database;

async fn refused(address: &str) -> StoreError {
    let location = Location::parse(address).unwrap();
    let error = SqlStore::open(&location).await.unwrap_err();
    for secret in ["hunter2", "mallory", "127.0.0.1"] {
        assert!(!format!("{error} {error:?} {location:?}").contains(secret), "{error:?}");
    }
    error
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_by_its_reason_only() {
    let port = network::free_port();
    let error = refused(&format!("postgres://mallory:hunter2@127.0.0.1:{port}/caribou")).await;
    assert_eq!(error.class(), Class::Retry, "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_wrong_user_and_a_missing_database_are_named_by_their_reason_only() {
    let Database::Postgres(postgres) = Database::postgres().await else { panic!("not PostgreSQL") };
    let port = postgres.port();
    for (address, reason) in [
        (format!("postgres://mallory:hunter2@127.0.0.1:{port}/postgres"), "user or password"),
        (format!("postgres://postgres:hunter2@127.0.0.1:{port}/hunter2"), "database of `database_url`"),
    ] {
        let error = refused(&address).await;
        assert_eq!(error.class(), Class::Denied, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_folder_that_is_a_file_and_a_file_that_is_no_database_are_refused() {
    let home = Home::new();
    let file = home.write("mallory.txt", "this is no database, however long the text in it may become; hunter2");
    let below = refused(&format!("sqlite:{}/caribou.db", file.display())).await;
    assert!(below.to_string().contains("`data_dir`"), "{below}");
    let broken = refused(&format!("sqlite:{}", file.display())).await;
    assert!(broken.to_string().contains("no database"), "{broken}");
}

#[tokio::test]
async fn a_connection_that_was_ended_is_replaced() {
    let database = Database::postgres().await;
    let store = database.migrated().await;
    store.list().await.unwrap();
    database.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'caribou'").await;
    assert_eq!(store.list().await.unwrap(), []);
}
