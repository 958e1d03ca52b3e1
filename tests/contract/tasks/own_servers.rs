//! Tasks of servers that users bring for themselves (contract 6.12, personal; architecture.md §10): an edit, a switch
//! and a deletion end what runs there, for good.

use caribou_tests::{Caribou, HttpFake, Setup, eventually};
use serde_json::{Value, json};

use super::stand::{FAST, SOON, THREAD, endless, mcp_tasks, task_of, with_toolset};

const CONNECTION: &str = "/api/users/ann/mcp/connections/mine";

async fn put(caribou: &Caribou, definition: &Value) {
    let answer = caribou.send(caribou.request("PUT", CONNECTION).json(definition)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Caribou with a task of ann's own server that runs, the server, and the definition of it.
async fn with_task() -> (Caribou, HttpFake, Value, String) {
    let fake = HttpFake::start(endless()).await;
    let setup = Setup::new().settings(&mcp_tasks(FAST)).variable("CARIBOU_NETWORK_ALLOW_CIDRS", "127.0.0.0/8");
    let caribou = setup.start().await;
    let definition = with_toolset(fake.entry());
    put(&caribou, &definition).await;
    let body = json!({ "name": "mine_submit", "arguments": {}, "user_id": "ann", "thread_id": "t1" });
    let task = task_of(&caribou.post("/api/mcp/tools/call", body.to_string()).await);
    until(&caribou, &task, "working").await;
    (caribou, fake, definition, task)
}

async fn until(caribou: &Caribou, task: &str, status: &str) -> Value {
    eventually(SOON, status, async || {
        let shown = caribou.get(&format!("{THREAD}/{task}?user_id=ann")).await.json();
        (shown["status"] == status).then_some(shown)
    })
    .await
}

/// How its owner may take a server away.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Edited,
    SwitchedOff,
    Deleted,
}

#[rstest::rstest]
#[tokio::test]
async fn what_its_owner_changes_ends_the_tasks_that_run_there_for_good(
    #[values(Change::Edited, Change::SwitchedOff, Change::Deleted)] change: Change,
    #[values(false, true)] was_to_be_cancelled: bool,
) {
    let (caribou, fake, definition, task) = with_task().await;
    let mut other = definition.clone();
    match change {
        Change::Edited => other["tool_call_timeout"] = json!(7),
        Change::SwitchedOff => other["enabled"] = json!(false),
        Change::Deleted => {}
    }
    if change == Change::Deleted {
        assert_eq!(caribou.delete(CONNECTION).await.status, 204);
    } else {
        put(&caribou, &other).await;
    }
    if was_to_be_cancelled {
        let cancel = caribou.post(&format!("{THREAD}/{task}/cancel?user_id=ann"), "").await;
        assert_eq!(cancel.status, 200, "{cancel:?}");
    }
    let ended = until(&caribou, &task, "failed").await;
    let error = "the personal connection of this task was changed, disabled or deleted";
    assert_eq!(ended["error"], error, "{ended}");
    assert_eq!(fake.log().calls("cancel").len(), 0);

    put(&caribou, &definition).await;
    let body = json!({ "name": "mine_submit", "arguments": {}, "user_id": "ann", "thread_id": "t1" });
    let next = task_of(&caribou.post("/api/mcp/tools/call", body.to_string()).await);
    until(&caribou, &next, "working").await;
    let still = until(&caribou, &task, "failed").await;
    assert_eq!(still, ended, "restoring it revives nothing");
}

#[tokio::test]
async fn presentation_counts_too_and_another_users_server_is_nobodys_business() {
    // A definition is the name of its server: an edit of any field makes another one.
    let (caribou, _fake, mut definition, task) = with_task().await;
    let bobs = "/api/users/bob/mcp/connections/mine";
    let made = caribou.send(caribou.request("PUT", bobs).json(&definition)).await;
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(caribou.delete(bobs).await.status, 204);
    let shown = caribou.get(&format!("{THREAD}/{task}?user_id=ann")).await.json();
    assert_eq!(shown["status"], "working");
    definition["description"] = json!("mine alone");
    put(&caribou, &definition).await;
    until(&caribou, &task, "failed").await;
}
