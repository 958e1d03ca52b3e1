//! API keys mean the same in every store.

use std::time::Duration;

use caribou_core::identity::{Role, ToolRules};
use caribou_ports::store::{ApiKey, ApiKeys as _};
use caribou_tests::eventually;
use rstest::rstest;

use crate::opened::{Database, Kind, Opened};
use crate::plans::last_plan;

fn key(id: &str) -> ApiKey {
    let mut hash = [0; 32];
    hash[..id.len()].copy_from_slice(id.as_bytes());
    ApiKey {
        id: id.to_owned(),
        hash,
        label: "\"ü\" laptop".to_owned(),
        user: "ann@example.org".into(),
        roles: vec![Role::Admin, Role::Agent],
        tools: ToolRules { allowed: Some(vec!["memory_*".to_owned()]), denied: vec!["*_delete".to_owned()] },
        expires_in: None,
    }
}

#[rstest]
#[tokio::test]
async fn a_key_is_found_by_its_hash_until_it_is_revoked_for_good(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Opened::new(kind).await;
    let plain = ApiKey { roles: vec![], tools: ToolRules::default(), label: String::new(), ..key("b") };
    let nothing = ToolRules { allowed: Some(vec![]), denied: vec![] };
    let none = ApiKey { tools: nothing, ..key("c") };
    for key in [key("a"), plain.clone(), none.clone()] {
        store.create(key.clone()).await.unwrap();
        assert_eq!(store.find(key.hash).await.unwrap(), Some(key));
    }
    assert_eq!(store.find([9; 32]).await.unwrap(), None);
    assert!(store.revoke("a".to_owned()).await.unwrap());
    assert!(!store.revoke("a".to_owned()).await.unwrap() && !store.revoke("x".to_owned()).await.unwrap());
    assert_eq!(store.find(key("a").hash).await.unwrap(), None);
    assert!(store.create(key("a")).await.is_err(), "an id is never given out again");
    let all = store.all().await.unwrap();
    let mut listed: Vec<_> = all.iter().map(|stored| (stored.key.clone(), stored.revoked)).collect();
    // Those created within one millisecond are in any order.
    listed.sort_by(|(one, _), (other, _)| one.id.cmp(&other.id));
    assert_eq!(listed, [(key("a"), true), (plain, false), (none, false)]);
    assert!(all.iter().all(|stored| stored.age < Duration::from_secs(60)));
}

#[rstest]
#[tokio::test]
async fn a_key_expires_by_the_clock_of_the_store(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Opened::new(kind).await;
    let brief = ApiKey { expires_in: Some(Duration::from_millis(300)), ..key("a") };
    let long = ApiKey { expires_in: Some(Duration::from_secs(86_400)), ..key("b") };
    for key in [&brief, &long] {
        store.create(key.clone()).await.unwrap();
    }
    let hash = brief.hash;
    eventually(Duration::from_secs(30), "it expires", async || store.find(hash).await.unwrap().is_none().then_some(()))
        .await;
    let left = store.find(long.hash).await.unwrap().unwrap().expires_in.unwrap();
    assert!((Duration::from_secs(86_300)..Duration::from_secs(86_400)).contains(&left), "{left:?}");
    let listed = store.all().await.unwrap();
    let brief = listed.iter().find(|stored| stored.key.id == "a").unwrap();
    assert_eq!((brief.key.expires_in, brief.revoked), (Some(Duration::ZERO), false));
}

#[rstest]
#[tokio::test]
async fn what_another_version_wrote_is_told_and_lets_nobody_in(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let database = Database::of(kind).await;
    let store = database.migrated().await;
    store.create(key("a")).await.unwrap();
    database.run("UPDATE mcp_api_key SET roles = '[\"hunter2\"]'").await;
    let error = store.find(key("a").hash).await.unwrap_err().to_string();
    assert!(error.contains("API key") && !error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_key_is_found_by_the_index_on_its_hash() {
    let database = Database::postgres().await;
    let store = database.migrated().await;
    let rows = "INSERT INTO mcp_api_key (id, hash, label, user_id, roles, denied) SELECT 'k' || n, \
                decode(lpad(to_hex(n), 64, '0'), 'hex'), '', 'ann', '[]', '[]' FROM generate_series(1, 20000) n";
    database.ask(&format!("{rows}; ANALYZE mcp_api_key")).await;
    let mut hash = [0; 32];
    hash[31] = 7;
    assert_eq!(store.find(hash).await.unwrap().unwrap().id, "k7");
    let plan = last_plan(&database).await;
    assert!(plan.contains("mcp_api_key_hash_key") && !plan.contains("Seq Scan"), "{plan}");
}
