//! How a task is followed (contract 6.2, 6.5): what each answer of its server means for it, and when it is asked again.

use caribou_tests::fake::Seen;
use caribou_tests::process::is_alive;
use serde_json::{Value, json};

use super::stand::{FAST, Stand, THREAD, but, running, says, script};

/// When each call of the status tool came, in milliseconds.
fn times(stand: &Stand) -> Vec<u64> {
    stand.log().calls("status").iter().map(|seen| seen.at_ms).collect()
}

fn statuses(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_word_of_the_server_is_a_state_and_the_last_one_stays() {
    // Contract 6.2.
    for (word, more) in
        [("completed", json!({ "result": [1, 2] })), ("failed", json!({ "error": "no ice" })), ("cancelled", json!({}))]
    {
        let asks = says("input_required", json!({ "input_required": { "q": 1 } }));
        let stand = Stand::http_with(
            script(json!([running(), asks, says(word, more.clone()), running()]), json!([])),
            "poll_interval_seconds: 1, input_required_poll_interval_seconds: 5",
            json!({}),
        )
        .await;
        let ended = stand.ended().await;
        assert_eq!((&ended["status"], &ended["result"]), (&json!(word), &more["result"]), "{ended}");
        assert_eq!(ended["error"], more["error"]);
        let task = ended["task_id"].as_str().unwrap();
        let told = stand.events(task).await;
        assert_eq!(statuses(&told), ["submitted", "working", "input_required", word]);
        // Another task goes through all of its states meanwhile.
        stand.ended().await;
        let of_first = stand.log().calls("status");
        let of_first = of_first.iter().filter(|seen| seen.message()["params"]["arguments"]["task_id"] == "remote-1");
        assert_eq!(of_first.count(), 3, "what has ended is not asked about");
        assert_eq!(stand.shown(task).await, ended);
        let asked = times(&stand);
        assert!(asked[2] - asked[1] >= 5_000, "a question is asked about slowly: {asked:?}");
    }
}

#[tokio::test]
async fn an_error_is_tried_again_ever_more_slowly_and_forgotten_with_the_next_answer() {
    // Contract 6.5, any other error, backoff; 6.7, isError; 2.3, tracking_degraded.
    let fails = json!([{ "failure": "x".repeat(600) }]);
    let turns = json!([fails, fails, fails, running(), running(), says("completed", json!({}))]);
    let stand = Stand::http_with(
        script(turns, json!([])),
        "poll_interval_seconds: 1, tracking_degraded_after_errors: 2",
        json!({}),
    )
    .await;
    let task = stand.submit().await;
    let first = stand.until_that(&task, "an error", |shown| shown["last_poll_error"].is_string()).await;
    assert_eq!((&first["tracking_degraded"], &first["status"]), (&json!(false), &json!("submitted")), "{first}");
    let said = first["last_poll_error"].as_str().unwrap();
    let whole = format!("MCP task status tool returned an error: {}", "x".repeat(500));
    assert!(said.chars().count() == 500 && whole.starts_with(said), "contract 2.3, first 500 characters: {said}");
    let degraded = stand.until_that(&task, "the second", |shown| shown["tracking_degraded"] == true).await;
    assert_eq!(degraded["status"], "submitted", "{degraded}");
    let working = stand.until(&task, "working").await;
    assert_eq!((&working["tracking_degraded"], &working["last_poll_error"]), (&json!(false), &Value::Null));
    stand.until(&task, "completed").await;
    let asked = times(&stand);
    for (at, least) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        // The clock of the log has hundredths of a second.
        assert!(asked[at] - asked[at - 1] >= least - 20, "{asked:?}");
    }
    let told = stand.events(&task).await;
    let hard: Vec<&Value> = told.iter().filter(|event| event["tracking_degraded"] == true).collect();
    assert_eq!(hard.len(), 1, "told once: {told:?}");
    assert!(hard[0]["last_poll_error"].as_str().unwrap().starts_with("MCP task status tool"), "{told:?}");
}

#[tokio::test]
async fn what_breaks_the_contract_ends_the_task_at_once() {
    // Contract 6.5, protocol error; 6.7, column status. The whole table is the drivers' own test.
    for (answer, said) in [
        (json!([{ "text": "working on it" }]), "structuredContent is missing"),
        (json!([{ "structured": { "task_id": "other", "status": "running" } }]), "task_id is another one"),
        (says("paused", json!({})), "the status is none"),
        (says("input_required", json!({})), "input_required is missing"),
        (says("running", json!({ "poll_after_seconds": -1 })), "poll_after_seconds"),
        (says("completed", json!({ "result_artifact": { "uri": "u" } })), "result_artifact.mime_type"),
    ] {
        let stand = Stand::http(script(json!([answer, running()]), json!([]))).await;
        let ended = stand.ended().await;
        assert_eq!(ended["status"], "failed", "{ended}");
        let error = ended["error"].as_str().unwrap();
        assert!(error.contains(said), "{said}: {ended}");
        assert_eq!((stand.calls("status"), stand.calls("cancel")), (1, 0), "{said}");
    }
}

#[tokio::test]
async fn a_task_that_its_server_does_not_know_has_failed_in_its_words() {
    // Contract 6.7, error_code.
    let gone = says("running", json!({ "error_code": "task_not_found", "error": "swept away" }));
    let stand = Stand::http(script(json!([gone]), json!([]))).await;
    let ended = stand.ended().await;
    assert_eq!((&ended["status"], &ended["error"]), (&json!("failed"), &json!("swept away")));
}

#[tokio::test]
async fn numbers_that_json_does_not_have_end_the_task_and_not_the_session() {
    // Contract 6.7, NaN and infinities.
    let bare = |value: &str| {
        let result = format!(
            r#"{{"content":[],"structuredContent":{{"task_id":"remote-1","status":"completed","result":{value}}}}}"#
        );
        json!([{ "bytes": format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{result}}}\n") }])
    };
    for value in ["NaN", "[-Infinity]"] {
        let script = script(json!([bare(value)]), json!([]));
        let stand = Stand::stdio(script, FAST, json!({ "tool_call_timeout": 20 })).await;
        let ended = stand.ended().await;
        assert_eq!(ended["status"], "failed", "{ended}");
        assert!(ended["error"].as_str().unwrap().contains("not valid JSON"), "{ended}");
        assert_eq!((stand.calls("status"), stand.log().pids().len()), (1, 1 + 1), "the catalogue's, and the thread's");
    }
}

#[tokio::test]
async fn a_status_that_takes_too_long_leaves_session_and_process_alone() {
    // Contract 4.4, not a disconnect; 6.5, any other error.
    let slow = json!([{ "pause_ms": 3_000 }, { "structured": { "task_id": "$TASK", "status": "running" } }]);
    let turns = json!([slow, running(), says("completed", json!({ "result": "$PID" }))]);
    let stand = Stand::stdio(script(turns, json!([])), FAST, json!({ "tool_call_timeout": 1 })).await;
    let task = stand.submit().await;
    let failed = stand.until_that(&task, "the bound", |shown| shown["last_poll_error"].is_string()).await;
    assert!(failed["last_poll_error"].as_str().unwrap().contains("did not answer within 1 s"), "{failed}");
    let done = stand.until(&task, "completed").await;
    let pids: Vec<u32> =
        ["submit", "status"].iter().flat_map(|tool| stand.log().calls(tool)).map(|seen| seen.pid).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0] && is_alive(*pid)), "{pids:?}");
    assert_eq!(done["result"], pids[0].to_string());
}

#[tokio::test]
async fn a_task_of_a_process_that_died_is_lost_and_said_to_be() {
    // Contract 4.4, a disconnect ends the session; architecture.md §10, pinned tasks.
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    std::fs::write(&kept, "").unwrap();
    let forgotten = says("failed", json!({ "error_code": "task_not_found" }));
    let known = json!([{ "if_file": { "path": kept, "steps": running(), "otherwise": forgotten } }]);
    let dies = json!([{ "if_file": { "path": kept, "steps": running(), "otherwise": [{ "die": 3 }] } }]);
    let turns = json!([known, dies]);
    let accepted = json!([{ "structured": { "task_id": "remote-$PID", "status": "running" } }]);
    let stand = Stand::stdio(but(script(turns, json!([])), "submit", accepted), FAST, json!({})).await;
    let task = stand.submit().await;
    stand.until(&task, "working").await;
    std::fs::remove_file(&kept).unwrap();
    let ended = stand.until(&task, "failed").await;
    assert!(ended["error"].as_str().unwrap().starts_with("task lost: server restarted"), "{ended}");
    std::fs::write(&kept, "").unwrap();
    let after = stand.submit().await;
    stand.until(&after, "working").await;
}

#[tokio::test]
async fn an_answer_to_a_question_reaches_the_server_once_with_its_name() {
    // architecture.md §10, input_tool; contract 6.2, input_required is left by polling.
    let asks = says("input_required", json!({ "input_required": { "prompt": "Which?" }, "poll_after_seconds": 1 }));
    let turns = json!([asks, says("completed", json!({}))]);
    let stand = Stand::http(script(turns, json!([]))).await;
    let task = stand.submit().await;
    stand.until(&task, "input_required").await;
    let body = json!({ "input_id": "a", "answers": { "which": 9_007_199_254_740_993_u64 } }).to_string();
    let path = format!("{THREAD}/{task}/input");
    let answered = stand.caribou.post(&path, body.clone()).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    stand.until(&task, "completed").await;
    assert_eq!(stand.caribou.post(&path, body).await.status, 200, "a repeat changes nothing");
    let [call] = &stand.log().calls("input")[..] else { panic!("one call") };
    let expected = r#"{"task_id":"remote-1","input_id":"a","response":{"which":9007199254740993}}"#;
    assert!(call.raw.contains(expected), "{}", call.raw);
}

#[tokio::test]
async fn a_server_that_is_away_costs_its_task_nothing_but_time() {
    // Contract 6.5, any other error, no attempt limit.
    let turns = json!([
        json!([{ "status": { "code": 503 } }]),
        json!([{ "error": { "code": -32603, "message": "later" } }]),
        json!(["reset"]),
        says("completed", json!({})),
    ]);
    let mut script = script(turns, json!([]));
    script["http"] = json!({ "answers": "sse" });
    let stand = Stand::http_with(script, "poll_interval_seconds: 1, max_poll_backoff_seconds: 1", json!({})).await;
    let ended = stand.ended().await;
    assert_eq!((&ended["status"], &ended["last_poll_error"]), (&json!("completed"), &Value::Null), "{ended}");
    assert_eq!(stand.calls("status"), 4);
}

#[tokio::test]
async fn the_interval_holds_for_a_server_that_names_none_and_a_day_for_one_that_names_more() {
    // Contract 6.5, intervals.
    let silent = says("running", json!({}));
    let far = says("running", json!({ "poll_after_seconds": 1e20 }));
    let stand = Stand::http(script(json!([silent, silent, far]), json!([]))).await;
    let task = stand.submit().await;
    stand.until_called("status", 3).await;
    let asked = times(&stand);
    assert!(asked.windows(2).all(|two| two[1] - two[0] >= 980), "{asked:?}");
    let shown = stand.until(&task, "working").await;
    assert_eq!(shown["last_poll_error"], Value::Null, "{shown}");
    // One that is to be asked about in a day goes through the same second as another one that goes on.
    let other = stand.submit().await;
    stand.until(&other, "working").await;
    let of_first = |seen: &Seen| seen.message()["params"]["arguments"]["task_id"] == "remote-1";
    assert_eq!(stand.log().calls("status").into_iter().filter(of_first).count(), 3);
}
