//! What a restart and a stop mean for tasks (contract 6.5: the first pass is the recovery, a hung call blocks no exit).

use std::time::Instant;

use caribou_tests::{Home, HttpFake, Setup, eventually};
use serde_json::json;

use super::stand::{FAST, SOON, Stand, mcp_tasks, running, says, script};

/// A setup that keeps its data beyond one Caribou.
fn kept(data: &Home) -> Setup {
    let data = data.join("data");
    Setup::new().settings(&mcp_tasks(FAST)).variable("CARIBOU_DATA_DIR", data.to_str().unwrap())
}

#[tokio::test]
async fn tasks_of_a_caribou_that_was_killed_are_followed_to_their_ends_by_the_next_one() {
    // Contract 6.5, start; invariant T4.
    let data = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let ended = says("completed", json!({ "result": "done" }));
    let status = json!([[{ "if_file": { "path": ready, "steps": ended, "otherwise": running() } }]]);
    let fake = HttpFake::start(script(status, json!([]))).await;
    let stand = Stand::before(fake, kept(&data), json!({})).await;
    let tasks = [stand.submit().await, stand.submit().await];
    for task in &tasks {
        stand.until(task, "working").await;
    }
    let (caribou, fake) = stand.parted();
    let _home = caribou.kill().await;
    std::fs::write(ready, "").unwrap();
    let stand = Stand::before(fake, kept(&data), json!({})).await;
    for task in &tasks {
        let done = stand.until(task, "completed").await;
        assert_eq!(done["result"], "done", "{done}");
    }
    assert_eq!(stand.calls("submit"), 2);
}

#[tokio::test]
async fn a_task_of_a_child_process_outlives_caribou_only_if_its_server_keeps_it() {
    // architecture.md §10, pinned tasks.
    for is_kept in [true, false] {
        let data = Home::new();
        let folder = tempfile::tempdir().unwrap();
        let known = folder.path().join("known");
        std::fs::write(&known, "").unwrap();
        let forgotten = says("failed", json!({ "error_code": "task_not_found" }));
        let first = json!([{ "if_file": { "path": known, "steps": running(), "otherwise": forgotten } }]);
        let turns = json!([first, running(), says("completed", json!({ "result": "done" }))]);
        let fake = caribou_tests::StdioFake::new(&data, "fake", script(turns, json!([])));
        let stand = Stand::before_child(fake, kept(&data), json!({})).await;
        let task = stand.submit().await;
        stand.until(&task, "working").await;
        let (caribou, fake) = stand.parted_child();
        let _home = caribou.kill().await;
        if !is_kept {
            std::fs::remove_file(&known).unwrap();
        }
        let stand = Stand::before_child(fake, kept(&data), json!({})).await;
        if is_kept {
            assert_eq!(stand.until(&task, "completed").await["result"], "done");
        } else {
            let ended = stand.until(&task, "failed").await;
            let error = ended["error"].as_str().unwrap();
            assert!(error.starts_with("task lost: server restarted") && error.contains("submit it again"), "{ended}");
        }
        assert_eq!(stand.calls("submit"), 1);
    }
}

#[tokio::test]
async fn a_status_call_that_hangs_keeps_nobody_from_stopping() {
    // Contract 6.5, stop.
    let stand = Stand::http(script(json!([["hang"]]), json!([]))).await;
    stand.submit().await;
    stand.until_called("status", 1).await;
    let begun = Instant::now();
    let (caribou, _fake) = stand.parted();
    let (status, _home) = caribou.stop().await;
    assert!(status.success() && begun.elapsed() < SOON / 4, "{status} after {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_poll_that_was_under_way_at_a_stop_is_no_error_of_its_task() {
    // Contract 6.5: a cancelled poll gives back its own lease, and is never stored as an error.
    let data = Home::new();
    let turns = json!([["hang"], says("completed", json!({}))]);
    let fake = HttpFake::start(script(turns, json!([]))).await;
    let stand = Stand::before(fake, kept(&data), json!({})).await;
    let task = stand.submit().await;
    stand.until_called("status", 1).await;
    let (caribou, fake) = stand.parted();
    caribou.stop().await;
    let begun = Instant::now();
    let stand = Stand::before(fake, kept(&data), json!({})).await;
    let done = stand.until(&task, "completed").await;
    assert!(begun.elapsed() < SOON / 2, "given back, not waited out: {:?}", begun.elapsed());
    let told = stand.events(&task).await;
    assert!(told.iter().all(|event| event["last_poll_error"].is_null()), "{told:?}");
    assert!(done["last_poll_error"].is_null(), "{done}");
    eventually(SOON, "two polls", async || (stand.calls("status") == 2).then_some(())).await;
}
