//! Lives of replicas mean the same in every store.

use std::time::Duration;

use caribou_core::ids::BootId;
use caribou_ports::store::Replica;
use caribou_tests::eventually;
use rstest::rstest;

use crate::opened::{Kind, Opened};

const FIRST: &str = "019ad000-0000-7000-8000-000000000001";
const SECOND: &str = "019ad000-0000-7000-8000-000000000002";
const THIRD: &str = "019ad000-0000-7000-8000-000000000003";

fn replica(boot: &str) -> Replica {
    Replica { boot: boot.into(), host: "pod-7".to_owned(), version: "0.1.0".to_owned() }
}

#[rstest]
#[tokio::test]
async fn a_life_is_recorded_once_and_its_end_is_final(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.begin(replica(FIRST)).await.unwrap();
    store.begin(replica(SECOND)).await.unwrap();
    store.end(FIRST.into()).await.unwrap();
    store.begin(replica(FIRST)).await.unwrap();
    store.end(FIRST.into()).await.unwrap();
    store.end("019ad000-0000-7000-8000-00000000000f".into()).await.unwrap();
    let found: Vec<_> = store.list().await.unwrap().into_iter().map(|life| life.replica).collect();
    assert_eq!(found, [replica(SECOND)]);
    store.begin(replica(THIRD)).await.unwrap();
    let found: Vec<_> = store.list().await.unwrap().into_iter().map(|life| life.replica).collect();
    assert_eq!(found, [replica(THIRD), replica(SECOND)], "the youngest first");
}

#[rstest]
#[tokio::test]
async fn the_record_of_a_life_is_kept_for_a_while_after_its_end(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    for boot in [FIRST, SECOND] {
        store.begin(replica(boot)).await.unwrap();
    }
    store.end(FIRST.into()).await.unwrap();
    assert_eq!(store.forget_replicas(Duration::from_secs(60)).await.unwrap(), 0);
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(store.forget_replicas(Duration::ZERO).await.unwrap(), 0);
    assert_eq!(store.list().await.unwrap().len(), 1, "one that lives is not forgotten");
}

#[rstest]
#[tokio::test]
async fn the_age_of_a_life_is_told_by_the_store_and_grows(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.begin(replica(FIRST)).await.unwrap();
    let within = Duration::from_secs(30);
    let age = eventually(within, "a millisecond passes", async || {
        let age = store.list().await.unwrap()[0].age;
        (age >= Duration::from_millis(1)).then_some(age)
    });
    assert!(age.await <= within);
}

#[rstest]
#[tokio::test]
async fn a_boot_id_that_is_no_uuid_is_refused_by_databases(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    let error = store.end(BootId::new("pod-7")).await.unwrap_err();
    assert!(error.to_string().contains("UUID"), "{error}");
}
