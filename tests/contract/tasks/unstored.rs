//! A handle that the store does not take in time, and a record that speaks of what this replica does not have (contract
//! 6.4, failure table; 6.5, driver missing). The store is held up from outside, as a full disk or a backup would.

use std::path::PathBuf;
use std::time::Instant;

use caribou_tests::{Caribou, eventually};
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};

use super::stand::{SOON, Stand, but, endless, says, script};

/// A submit tool that answers once `file` is there.
fn held(file: &std::path::Path) -> Value {
    json!([{ "until_file": file }, { "structured": { "task_id": "remote-$TURN", "status": "running" } }])
}

/// The database of a running Caribou.
async fn database(caribou: &Caribou) -> SqliteConnection {
    let file: PathBuf = caribou.home().join("data/caribou.db");
    SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap()
}

/// A stand whose submits wait for the file.
async fn waiting(cancel: Value) -> (Stand, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let script = but(endless(), "submit", held(&folder.path().join("go")));
    (Stand::http(but(script, "cancel", cancel)).await, folder)
}

#[tokio::test]
async fn what_the_store_does_not_take_within_five_seconds_is_cancelled_at_the_server() {
    // Contract 6.4: any other persistence error is compensated, and the error is told.
    let (stand, folder) = waiting(says("cancelled", json!({}))).await;
    let mut database = database(&stand.caribou).await;
    let (answer, begun) = futures::join!(stand.try_submit(), async {
        stand.until_called("submit", 1).await;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut database).await.unwrap();
        std::fs::write(folder.path().join("go"), "").unwrap();
        Instant::now()
    });
    let waited = begun.elapsed();
    assert_eq!((answer.status, answer.code().as_str()), (503, "unavailable"), "{answer:?}");
    assert!(answer.detail().contains("cannot be stored, so it is cancelled"), "{answer:?}");
    assert_eq!(stand.log().calls("cancel")[0].message()["params"]["arguments"], json!({ "task_id": "remote-1" }));
    assert!(waited.as_secs_f64() < 12.0, "{waited:?}");
    sqlx::query("ROLLBACK").execute(&mut database).await.unwrap();
    assert_eq!(stand.listed().await, [] as [Value; 0], "nobody was told of it");
    assert_eq!((stand.calls("cancel"), stand.calls("status")), (1, 0));
}

#[tokio::test]
async fn a_caller_that_goes_away_while_its_task_is_stored_leaves_none_that_goes_on() {
    // Contract 6.4, caller cancelled while persisting: compensated, and the commit that landed converges by polling.
    let ended = json!([says("cancelled", json!({}))]);
    let folder = tempfile::tempdir().unwrap();
    let script = but(script(ended.clone(), ended), "submit", held(&folder.path().join("go")));
    let stand = Stand::http(script).await;
    let mut database = database(&stand.caribou).await;
    {
        let mut call = std::pin::pin!(stand.try_submit());
        let held_up = async {
            stand.until_called("submit", 1).await;
            sqlx::query("BEGIN IMMEDIATE").execute(&mut database).await.unwrap();
            std::fs::write(folder.path().join("go"), "").unwrap();
            eventually(SOON, "the answer", async || stand.log().events("finished").first().map(|_| ())).await;
        };
        tokio::select! {
            answer = &mut call => panic!("it is not stored yet: {answer:?}"),
            () = held_up => {}
        }
    }
    sqlx::query("ROLLBACK").execute(&mut database).await.unwrap();
    stand.until_called("cancel", 1).await;
    let listed = eventually(SOON, "the end of the task", async || {
        let listed = stand.listed().await;
        listed
            .iter()
            .all(|task| !["submitted", "working"].contains(&task["status"].as_str().unwrap()))
            .then_some(listed)
    })
    .await;
    assert!(listed.iter().all(|task| task["status"] == "cancelled"), "{listed:?}");
    assert_eq!(stand.calls("cancel"), 1);
}

#[tokio::test]
async fn a_task_whose_driver_is_missing_waits_for_a_replica_that_has_it() {
    // Contract 6.5, driver missing: the error counts, and it is tried again.
    let stand = Stand::http(endless()).await;
    let task = stand.submit().await;
    stand.until(&task, "working").await;
    let mut database = database(&stand.caribou).await;
    sqlx::query("UPDATE mcp_task SET driver = 'of-tomorrow'").execute(&mut database).await.unwrap();
    let missing = |shown: &Value| shown["last_poll_error"].as_str().is_some_and(|error| error.contains("of-tomorrow"));
    let shown = stand.until_that(&task, "the missing driver", missing).await;
    assert_eq!(shown["status"], "working", "it is not over");
    let asked = stand.calls("status");
    sqlx::query("UPDATE mcp_task SET driver = 'ordinary-tools'").execute(&mut database).await.unwrap();
    stand.until_that(&task, "a poll", |shown| shown["last_poll_error"].is_null()).await;
    assert!(stand.calls("status") > asked);
}
