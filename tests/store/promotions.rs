//! Promotions mean the same in every store (contract 9.3).

use std::sync::Arc;

use caribou_core::ids::Scope;
use caribou_core::tool::Promotion;
use rstest::rstest;

use crate::opened::{Kind, Opened, Store};

fn scope(user: &str, thread: &str) -> Scope {
    Scope::new(Some(user), Some(thread))
}

fn promotion(catalog: &str, names: &[&str]) -> Promotion {
    Promotion { catalog: catalog.into(), names: names.iter().map(|name| Arc::from(*name)).collect() }
}

async fn promoted(store: &dyn Store, user: &str, thread: &str) -> Option<Promotion> {
    store.promoted(scope(user, thread)).await.unwrap()
}

#[rstest]
#[tokio::test]
async fn promotions_add_up_in_one_catalogue_and_are_replaced_by_another(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    assert_eq!(promoted(&*store, "ann", "t").await, None);
    for (now, after) in [
        (promotion("one", &["b"]), promotion("one", &["b"])),
        (promotion("one", &["a", "b", "\"ü\0"]), promotion("one", &["b", "a", "\"ü\0"])),
        (promotion("one", &[]), promotion("one", &["b", "a", "\"ü\0"])),
        (promotion("two", &["c"]), promotion("two", &["c"])),
    ] {
        store.promote(scope("ann", "t"), now).await.unwrap();
        assert_eq!(promoted(&*store, "ann", "t").await, Some(after));
    }
}

#[rstest]
#[tokio::test]
async fn a_promotion_is_seen_in_its_own_thread_of_its_own_user_only(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    store.promote(scope("ann", "t"), promotion("one", &["a"])).await.unwrap();
    assert_eq!(promoted(&*store, "ann", "u").await, None);
    assert_eq!(promoted(&*store, "bob", "t").await, None);
    assert_eq!(promoted(&*store, "t", "ann").await, None);
}

#[rstest]
#[tokio::test]
async fn of_promotions_at_the_same_time_none_is_lost(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    let names: Vec<String> = (0..20).map(|number| format!("tool_{number:02}")).collect();
    let all = names.iter().map(|name| store.promote(scope("ann", "t"), promotion("one", &[name])));
    for done in futures::future::join_all(all).await {
        done.unwrap();
    }
    let mut kept = promoted(&*store, "ann", "t").await.unwrap().names;
    kept.sort();
    assert_eq!(kept.iter().map(|name| &**name).collect::<Vec<_>>(), names);
}
