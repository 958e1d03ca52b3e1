//! Sessions that a remote server keeps: whichever replica holds them next goes on with the very same one (durability.md
//! 2.2), and never with one from before a reset (invariant G1).

use std::time::Duration;

use caribou_tests::{Caribou, HttpFake, Postgres, Setup, eventually, process};
use rustix::process::Signal;
use serde_json::json;

const SOON: Duration = Duration::from_secs(60);

const SECRET: &str = "a-secret-of-these-tests-alone-and-long-enough";

struct Stand {
    database: Postgres,
    fake: HttpFake,
}

impl Stand {
    async fn new() -> Self {
        let database = Postgres::start().await;
        let url = database.url("postgres");
        let migrate = Setup::new().variable("CARIBOU_DATABASE_URL", &url);
        let migrated = migrate.command(&["migrate"]).output().await.unwrap();
        assert!(migrated.status.success(), "{migrated:?}");
        let script = json!({ "calls": { "bump": [{ "text": "$SN" }] }, "http": { "sessions": true } });
        Self { database, fake: HttpFake::start(script).await }
    }

    async fn replica(&self) -> Caribou {
        let setup = Setup::new().variable("CARIBOU_DATABASE_URL", &self.database.url("postgres"));
        let setup = setup.variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0").variable("CARIBOU_CLUSTER_SECRET", SECRET);
        let key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
        let setup = setup.variable("CARIBOU_CREDENTIALS_KEY", key).settings("cluster: {profile: fast}\n");
        setup.server("fake", self.fake.entry()).start().await
    }
}

/// What a call answers: how many calls the server has counted in its session, the epoch, and whether the caller is told
/// that its state is lost. `None` = not now.
async fn bump(caribou: &Caribou) -> Option<(String, u64, bool)> {
    let answer = caribou.call_in("kitchen", "fake_bump", json!({})).await;
    if answer.status != 200 {
        return None;
    }
    let told = answer.json();
    let text = told["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    Some((text, told["session"]["epoch"].as_u64().unwrap(), told["session"]["restarted"] == true))
}

async fn bumped(caribou: &Caribou) -> (String, u64, bool) {
    eventually(SOON, "an answer", async || bump(caribou).await).await
}

fn counted(count: &str, epoch: u64, restarted: bool) -> (String, u64, bool) {
    (count.to_owned(), epoch, restarted)
}

#[tokio::test]
async fn a_remote_session_outlives_the_replica_that_held_it() {
    let stand = Stand::new().await;
    let (first, second) = (stand.replica().await, stand.replica().await);
    assert_eq!(bumped(&first).await, counted("1", 1, false));
    assert_eq!(bumped(&second).await, counted("2", 1, false), "it is reached from everywhere");
    let opened = stand.fake.sessions();

    process::signal(first.pid(), Signal::KILL);
    assert_eq!(bumped(&second).await, counted("3", 2, false), "the same session goes on under another owner");
    assert!(stand.fake.sessions() <= opened, "no other one was opened for the thread");

    // One that was gone on with and is forgotten then is lost like any other, and that is told.
    stand.fake.expire_sessions();
    // Its next epoch is told once it is on record.
    let later = async || bump(&second).await.filter(|(_, epoch, _)| *epoch == 3);
    let (count, _, is_told) = eventually(SOON, "the next epoch", later).await;
    assert!(is_told, "its thread is not told that its state is lost");

    // In order, too: whoever leaves does not end it.
    let third = stand.replica().await;
    second.stop().await;
    let next = (count.parse::<u64>().unwrap() + 1).to_string();
    assert_eq!(bumped(&third).await, counted(&next, 4, false));

    // A server that forgot it meanwhile says so, and callers are told.
    let fourth = stand.replica().await;
    stand.fake.expire_sessions();
    third.stop().await;
    assert_eq!(bumped(&fourth).await, counted("1", 5, true));
}

#[tokio::test]
async fn what_was_opened_before_a_reset_is_not_gone_on_with() {
    let stand = Stand::new().await;
    let (first, second) = (stand.replica().await, stand.replica().await);
    assert_eq!(bumped(&first).await, counted("1", 1, false));
    // Its owner stands still while everything is reset, and is gone before it hears of it.
    process::signal(first.pid(), Signal::STOP);
    let reset = second.post("/api/mcp/cache/reset", "").await;
    assert_eq!(reset.status, 200, "{reset:?}");
    process::signal(first.pid(), Signal::KILL);
    assert_eq!(bumped(&second).await, counted("1", 2, true));
}
