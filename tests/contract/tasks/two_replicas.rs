//! Tasks in two replicas that share a database (contract 6.10, invariant C1): whichever is asked, one of them acts.

use caribou_tests::{Answer, Caribou, HttpFake, Postgres, Setup, eventually};
use futures::future::join_all;
use serde_json::{Value, json};

use super::stand::{FAST, SOON, THREAD, mcp_tasks, running, script, task_of, with_toolset};

async fn shown(caribou: &Caribou, task: &str) -> Value {
    caribou.get(&format!("{THREAD}/{task}")).await.json()
}

#[tokio::test]
async fn ten_requests_at_two_replicas_are_one_call_of_the_server_and_one_outcome() {
    // Contract 6.10, request: no concurrent remote cancels; both replicas tell of the same end.
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let slow =
        json!([{ "pause_ms": 1_000 }, { "structured": { "task_id": "$TASK", "status": "completed", "result": 7 } }]);
    let fake = HttpFake::start(script(json!([running()]), json!([slow]))).await;
    let replica = async || {
        let setup = Setup::new().settings(&mcp_tasks(FAST)).variable("CARIBOU_DATABASE_URL", &url);
        setup.server("s", with_toolset(fake.entry())).start().await
    };
    let replicas = [replica().await, replica().await];
    let cancel =
        async |at: usize, task: &str| -> Answer { replicas[at % 2].post(&format!("{THREAD}/{task}/cancel"), "").await };
    let mut submitted = Vec::new();
    for at in 0..4 {
        submitted.push(task_of(&replicas[at % 2].call_in("t1", "s_submit", json!({})).await));
    }
    for task in &submitted {
        for answer in join_all((0..10).map(|at| cancel(at, task))).await {
            assert_eq!((answer.status, &answer.json()["cancel_requested"]), (200, &json!(true)), "{answer:?}");
        }
    }
    for task in &submitted {
        for replica in &replicas {
            let ended = eventually(SOON, "the end", async || {
                Some(shown(replica, task).await).filter(|shown| shown["status"] == "completed")
            })
            .await;
            assert_eq!((&ended["result"], &ended["cancel_attempt_count"]), (&json!(7), &json!(1)), "{ended}");
        }
        join_all((0..10).map(|at| cancel(at, task))).await;
    }
    let asked: Vec<Value> = fake
        .log()
        .calls("cancel")
        .iter()
        .map(|seen| seen.message()["params"]["arguments"]["task_id"].clone())
        .collect();
    let mut each = asked.clone();
    each.sort_by_key(ToString::to_string);
    each.dedup();
    assert_eq!((asked.len(), each.len()), (4, 4), "one for each task: {asked:?}");
}
