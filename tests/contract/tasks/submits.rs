//! Submits (contract 6.4): what the caller hears, what the server is asked, and what becomes of a submit that brings no
//! handle or one that cannot be kept.

use std::collections::BTreeSet;
use std::time::Instant;

use caribou_tests::fake::Seen;
use rstest::rstest;
use serde_json::{Value, json};

use super::stand::{FAST, SOON, Stand, THREAD, but, endless, running, says, script, task_of};
use caribou_tests::eventually;

/// The arguments of each call of a tool.
fn arguments(calls: &[Seen]) -> Vec<Value> {
    calls.iter().map(|seen| seen.message()["params"]["arguments"].clone()).collect()
}

#[rstest]
#[tokio::test]
async fn the_caller_hears_four_members_and_the_server_is_asked_by_its_own_name(#[values(false, true)] by_stdio: bool) {
    // Contract 6.4, 4; 6.6, arguments; 2.3, never exposed.
    let ends = json!([running(), says("completed", json!({ "result": { "pages": 3 } }))]);
    let script = script(ends, json!([]));
    let stand = if by_stdio { Stand::stdio(script, FAST, json!({})).await } else { Stand::http(script).await };
    let answer = stand.try_submit().await;
    let task = task_of(&answer);
    let hex = task.strip_prefix("mcp-task-").unwrap();
    assert!(hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{task}");
    let told = answer.json()["result"].clone();
    let members: Vec<&String> = told["structuredContent"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["task_id", "task_name", "status", "message"]);
    assert_eq!(told["structuredContent"]["task_name"], "report");
    assert_eq!(told["structuredContent"]["status"], "submitted");
    let text: Value = serde_json::from_str(told["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, told["structuredContent"], "for clients that read text alone");

    let done = stand.until(&task, "completed").await;
    assert_eq!(done["result"], json!({ "pages": 3 }));
    let log = stand.log();
    assert_eq!(arguments(&log.calls("submit")), [json!({ "topic": "ice" })]);
    let about: BTreeSet<String> = arguments(&log.calls("status")).iter().map(Value::to_string).collect();
    assert_eq!(about, BTreeSet::from([r#"{"task_id":"remote-1"}"#.to_owned()]));

    let mut shown = vec![answer.body, done.to_string(), stand.caribou.log()];
    for path in [THREAD, &format!("{THREAD}/{task}/events"), "/api/mcp-tasks", "/api/mcp/audit", "/metrics"] {
        shown.push(stand.caribou.get(path).await.body);
    }
    for text in shown {
        assert!(!text.contains("remote-1"), "{text}");
    }
}

#[tokio::test]
async fn a_refusal_and_an_answer_that_is_none_leave_nothing_behind() {
    // Contract 6.7, column submit.
    let long = "x".repeat(600);
    let steps = json!([{ "turns": [
        [{ "failure": long }],
        [{ "result": { "content": [], "isError": true } }],
        [{ "text": r#"{"task_id":"r","status":"running"}"# }],
        [{ "structured": ["r"] }],
        [{ "structured": { "status": "running" } }],
        [{ "structured": { "task_id": "", "status": "running" } }],
        [{ "structured": { "task_id": "r", "status": "queued" } }],
        [{ "error": { "code": -32603, "message": "down" } }],
    ] }]);
    let stand = Stand::http(but(endless(), "submit", steps)).await;
    let kept = format!("MCP task submit tool returned an error: {}", "x".repeat(500));
    for said in [
        kept.as_str(),
        "MCP task submit tool returned an error",
        "MCP task protocol error: structuredContent is missing",
        "MCP task protocol error: structuredContent is not an object",
        "MCP task protocol error: task_id is missing or empty",
        "MCP task protocol error: task_id is missing or empty",
        "MCP task protocol error: the status of a submitted task must be running",
    ] {
        let refused = stand.try_submit().await;
        assert_eq!((refused.code().as_str(), refused.detail().as_str()), ("upstream_error", said), "{refused:?}");
    }
    let refused = stand.try_submit().await;
    assert!(refused.code() == "upstream_error" && refused.detail().contains("down"), "{refused:?}");
    assert_eq!(stand.listed().await, [] as [Value; 0]);
    assert_eq!((stand.calls("cancel"), stand.calls("status")), (0, 0));
}

#[tokio::test]
async fn a_submit_that_broke_off_is_on_record_as_unknown_and_is_not_repeated() {
    // Contract 6.4 with invariants T1 and S2.
    let steps = json!(["reset"]);
    let mut script = but(endless(), "submit", steps);
    script["http"] = json!({ "answers": "sse" });
    let stand = Stand::http(script).await;
    let lost = stand.try_submit().await;
    assert_eq!(lost.code(), "outcome_unknown", "{lost:?}");
    let [task] = &stand.listed().await[..] else { panic!("one task") };
    assert_eq!((&task["status"], &task["error_code"]), (&json!("failed"), &json!("outcome_unknown")));
    assert!(lost.detail().contains(task["task_id"].as_str().unwrap()), "{lost:?}");
    assert_eq!((stand.calls("submit"), stand.calls("status"), stand.calls("cancel")), (1, 0, 0));
}

#[tokio::test]
async fn a_handle_that_is_followed_already_is_refused_and_its_task_goes_on() {
    // Contract 6.4, unique conflict: no compensation; another user's handle of the same name is another task.
    let ends = json!([running(), running(), says("completed", json!({}))]);
    let same = json!([{ "structured": { "task_id": "same", "status": "running" } }]);
    let stand = Stand::http(but(script(ends, json!([])), "submit", same)).await;
    let first = stand.submit().await;
    let second = stand.try_submit().await;
    assert_eq!((second.status, second.code().as_str()), (409, "conflict"), "{second:?}");
    assert!(second.detail().contains("duplicate remote task"), "{second:?}");
    let body = json!({ "name": "s_submit", "arguments": {}, "user_id": "bob", "thread_id": "b1" });
    task_of(&stand.caribou.post("/api/mcp/tools/call", body.to_string()).await);
    stand.until(&first, "completed").await;
    assert_eq!(stand.calls("cancel"), 0);
    assert!(!second.body.contains("same"), "{second:?}");
}

#[tokio::test]
async fn a_name_that_cannot_be_stored_is_cancelled_under_that_name() {
    // Contract 6.4, 3 and compensation; 255 characters fit.
    let named = |name: String| json!([{ "structured": { "task_id": name, "status": "running" } }]);
    let (fits, long) = ("é".repeat(255), "é".repeat(256));
    let steps = json!([{ "turns": [named(long.clone()), named(fits.clone())] }]);
    let stand = Stand::http(but(endless(), "submit", steps)).await;
    let refused = stand.try_submit().await;
    assert_eq!(refused.code(), "upstream_error", "{refused:?}");
    assert!(refused.detail().contains("255") && !refused.body.contains(&long), "{refused:?}");
    assert_eq!(arguments(&stand.log().calls("cancel")), [json!({ "task_id": long })]);
    assert_eq!(stand.listed().await, [] as [Value; 0]);
    let task = stand.submit().await;
    stand.until(&task, "working").await;
    assert_eq!(stand.calls("cancel"), 1);
}

#[tokio::test]
async fn the_first_error_is_told_although_the_cancellation_failed_too() {
    // Contract 6.4: the original error is raised, the failed cancellation is logged.
    let steps = json!([{ "structured": { "task_id": "r".repeat(256), "status": "running" } }]);
    let script = but(endless(), "submit", steps);
    let stand = Stand::http(but(script, "cancel", json!([{ "failure": "no such luck" }]))).await;
    let refused = stand.try_submit().await;
    assert!(refused.code() == "upstream_error" && refused.detail().contains("255"), "{refused:?}");
    assert!(!refused.body.contains("luck"), "{refused:?}");
    let log = stand.caribou.log();
    assert!(log.contains("a task that could not be stored goes on") && log.contains("no such luck"), "{log}");
    assert_eq!(stand.calls("cancel"), 1, "once and without more ado");
}

#[tokio::test]
async fn a_slow_cancellation_is_waited_for_five_seconds_and_goes_on() {
    // Contract 6.4, slow compensation.
    let steps = json!([{ "structured": { "task_id": "r".repeat(256), "status": "running" } }]);
    let slow = json!([{ "pause_ms": 8_000 }, { "structured": { "task_id": "$TASK", "status": "cancelled" } }]);
    let stand = Stand::http(but(but(endless(), "submit", steps), "cancel", slow)).await;
    let begun = Instant::now();
    let refused = stand.try_submit().await;
    let waited = begun.elapsed();
    assert!(refused.detail().contains("255"), "{refused:?}");
    assert!((5.0..7.5).contains(&waited.as_secs_f64()), "{waited:?}");
    let told = "a task that could not be stored was cancelled at its server";
    eventually(SOON, told, async || stand.caribou.log().contains(told).then_some(())).await;
}
