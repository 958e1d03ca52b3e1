//! Requests to cancel (contract 6.10): what a request changes, and how the server is asked.

use futures::future::join_all;
use serde_json::{Value, json};

use super::stand::{FAST, Stand, THREAD, but, endless, running, says, script};

#[tokio::test]
async fn ten_requests_at_once_are_one_call_of_the_server_and_one_outcome() {
    // Contract 6.10, request: repeats change nothing, no concurrent remote cancels. Over HTTP and over stdio.
    let slow = json!([{ "pause_ms": 1_000 }, { "structured": { "task_id": "$TASK", "status": "cancelled" } }]);
    let script = script(json!([running()]), json!([slow]));
    for stand in [Stand::http(script.clone()).await, Stand::stdio(script, FAST, json!({})).await] {
        let task = stand.submit().await;
        stand.until(&task, "working").await;
        for answer in join_all((0..10).map(|_| stand.cancel(&task))).await {
            assert_eq!((answer.status, &answer.json()["cancel_requested"]), (200, &json!(true)), "{answer:?}");
            assert_eq!(answer.json()["status"], "working", "answered at once, before the server");
        }
        stand.until_called("cancel", 1).await;
        join_all((0..10).map(|_| stand.cancel(&task))).await;
        let ended = stand.until(&task, "cancelled").await;
        assert_eq!(ended["cancel_attempt_count"], 1, "{ended}");
        assert_eq!((stand.calls("cancel"), stand.log().overlap("cancel")), (1, 1));
    }
}

#[tokio::test]
async fn a_request_for_what_has_ended_or_never_was_asks_nobody() {
    // Contract 6.10, request.
    let stand = Stand::http(script(json!([says("completed", json!({}))]), json!([]))).await;
    let ended = stand.ended().await;
    let answer = stand.cancel(ended["task_id"].as_str().unwrap()).await;
    assert_eq!((answer.status, answer.json()), (200, ended), "returned unchanged");
    for unknown in ["mcp-task-00000000000000000000000000000000", "nothing"] {
        let answer = stand.cancel(unknown).await;
        assert_eq!((answer.status, answer.detail().as_str()), (404, "MCP task not found"));
    }
    // A cancel of another task would have come after one of these.
    let other = stand.ended().await;
    assert_eq!((&other["status"], stand.calls("cancel")), (&json!("completed"), 0));
}

#[tokio::test]
async fn what_was_completed_or_failed_meanwhile_is_told_as_that() {
    // Contract 6.10, remote result terminal: the real status.
    for (word, more) in [("completed", json!({ "result": 7 })), ("failed", json!({ "error": "melted" }))] {
        let stand = Stand::http(script(json!([running()]), json!([says(word, more.clone())]))).await;
        let task = stand.submit().await;
        stand.cancel(&task).await;
        let ended = stand.until(&task, word).await;
        assert_eq!((&ended["result"], &ended["error"]), (&more["result"], &more["error"]));
        assert_eq!(ended["cancel_requested"], true);
    }
}

#[tokio::test]
async fn a_cancel_that_fails_or_ends_nothing_is_tried_again_ever_more_slowly() {
    // Contract 6.10, non-terminal or error; 6.7, column cancel and its note: a protocol error is tried again too.
    let turns = json!([
        json!([{ "failure": "not now" }]),
        says("running", json!({})),
        json!([{ "structured": { "task_id": "other", "status": "cancelled" } }]),
        says("cancelled", json!({ "error_code": "task_not_found" })),
    ]);
    let stand = Stand::http_with(
        script(json!([running()]), turns),
        "poll_interval_seconds: 1, max_poll_backoff_seconds: 2",
        json!({}),
    )
    .await;
    let task = stand.submit().await;
    stand.until(&task, "working").await;
    stand.cancel(&task).await;
    let failed = stand.until_that(&task, "an error", |shown| shown["last_cancel_error"].is_string()).await;
    assert!(failed["last_cancel_error"].as_str().unwrap().contains("not now"), "{failed}");
    assert_eq!(failed["status"], "working", "{failed}");
    let ended = stand.until(&task, "cancelled").await;
    assert_eq!((&ended["cancel_attempt_count"], &ended["last_cancel_error"]), (&json!(4), &Value::Null), "{ended}");
    let asked: Vec<u64> = stand.log().calls("cancel").iter().map(|seen| seen.at_ms).collect();
    for (at, least) in [(1, 1_000), (2, 2_000), (3, 2_000)] {
        assert!(asked[at] - asked[at - 1] >= least - 20, "{asked:?}");
    }
    assert_eq!(stand.log().overlap("cancel"), 1);
}

#[tokio::test]
async fn after_a_request_nothing_is_polled_and_the_poll_under_way_writes_nothing() {
    // Contract 6.10, effect: the request fences the result in flight (invariant C2).
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let late = json!([
        { "until_file": &go }, { "structured": { "task_id": "$TASK", "status": "completed", "result": "late" } },
    ]);
    let held = json!([{ "until_file": &go }, { "structured": { "task_id": "$TASK", "status": "cancelled" } }]);
    let stand = Stand::http(script(json!([running(), late]), json!([held]))).await;
    let task = stand.submit().await;
    stand.until_called("status", 2).await;
    assert_eq!(stand.cancel(&task).await.status, 200);
    // The server is told although its answer to the poll is outstanding.
    stand.until_called("cancel", 1).await;
    std::fs::write(go, "").unwrap();
    let ended = stand
        .until_that(&task, "an end", |shown| !["working", "submitted"].contains(&shown["status"].as_str().unwrap()))
        .await;
    assert_eq!((&ended["status"], &ended["result"]), (&json!("cancelled"), &Value::Null), "{ended}");
    assert_eq!(stand.calls("status"), 2);
    let told: Vec<Value> = stand.events(&task).await.into_iter().map(|event| event["status"].clone()).collect();
    assert_eq!(told, ["submitted", "working", "cancelled"]);
}

#[tokio::test]
async fn one_cancel_that_fails_holds_up_no_other_and_no_poll() {
    // Contract 6.5, per-task exceptions are isolated.
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    let cancel = json!([[{ "if_file": {
        "path": &broken,
        "steps": ["hang"],
        "otherwise": [{ "structured": { "task_id": "$TASK", "status": "cancelled" } }],
    } }]]);
    let stand = Stand::http(script(json!([running()]), cancel)).await;
    let (first, second, third) = (stand.submit().await, stand.submit().await, stand.submit().await);
    std::fs::write(&broken, "").unwrap();
    stand.cancel(&first).await;
    stand.until_called("cancel", 1).await;
    std::fs::remove_file(&broken).unwrap();
    stand.cancel(&second).await;
    stand.until(&second, "cancelled").await;
    let polls = stand.calls("status");
    stand.until_called("status", polls + 3).await;
    stand.until(&third, "working").await;
    let held_up = stand.shown(&first).await;
    assert!(["submitted", "working"].contains(&held_up["status"].as_str().unwrap()), "{held_up}");
}

#[tokio::test]
async fn a_task_that_waits_for_an_answer_can_be_cancelled_too() {
    // Contract 6.2 and 6.10.
    let asks = says("input_required", json!({ "input_required": { "q": 1 } }));
    let stand = Stand::http(script(json!([asks]), json!([says("cancelled", json!({}))]))).await;
    let task = stand.submit().await;
    stand.until(&task, "input_required").await;
    stand.cancel(&task).await;
    stand.until(&task, "cancelled").await;
    let late = stand.caribou.post(&format!("{THREAD}/{task}/input"), r#"{"input_id":"a","answers":{}}"#).await;
    assert_eq!(late.status, 409, "{late:?}");
}

#[tokio::test]
async fn a_cancel_without_a_result_at_all_is_tried_again_while_the_server_is_away() {
    // Contract 6.10, error; no attempt limit.
    let turns = json!([json!([{ "status": { "code": 502 } }]), json!(["reset"]), says("cancelled", json!({}))]);
    let mut script = but(endless(), "cancel", json!([{ "turns": turns }]));
    script["http"] = json!({ "answers": "sse" });
    let stand = Stand::http_with(script, "poll_interval_seconds: 1, max_poll_backoff_seconds: 1", json!({})).await;
    let task = stand.submit().await;
    stand.cancel(&task).await;
    let ended = stand.until(&task, "cancelled").await;
    assert_eq!(ended["cancel_attempt_count"], 3, "{ended}");
    assert_eq!(stand.calls("cancel"), 3);
}
