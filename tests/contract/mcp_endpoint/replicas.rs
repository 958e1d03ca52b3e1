//! Sessions of clients that any replica serves (mcp.md §17, S19).

use caribou_tests::{Answer, Postgres, Setup, StdioFake, know_one_another};
use serde_json::json;

use super::client::{Session, messages};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn text(answer: &Answer) -> String {
    messages(answer).pop().unwrap()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_is_served_by_every_replica_and_its_end_is_its_end_everywhere() {
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let first = Setup::new();
    let fake = StdioFake::new(first.home(), "fake", json!({ "calls": { "bump": [{ "text": "$N" }] } }));
    let replica = async |setup: Setup| {
        let setup = setup.variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0");
        setup.variable("CARIBOU_CLUSTER_SECRET", SECRET).server("fake", fake.entry()).start().await
    };
    let replicas = [replica(first).await, replica(Setup::new()).await];
    know_one_another(&replicas).await;
    let opened = Session::open(&replicas[0], "/mcp").await;
    let there = opened.at(&replicas[1]);
    for n in 1..=4 {
        let session: &Session<'_> = if n % 2 == 0 { &opened } else { &there };
        let answer = session.call("fake_bump", json!({})).await;
        assert_eq!(text(&answer), n.to_string(), "one child counts them all: {answer:?}");
    }
    assert_eq!(there.ask("logging/setLevel", json!({ "level": "error" })).await.json()["result"], json!({}));
    assert_eq!(there.end().await.status, 200);
    for session in [&opened, &there] {
        assert_eq!(session.ask("ping", json!({})).await.status, 404);
    }
}
