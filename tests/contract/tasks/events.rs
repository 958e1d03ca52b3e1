//! Who is told about a task, when, and with which words (contract 6.9), with a real receiver.

use serde_json::{Value, json};

use super::receiver::{Receiver, Reply, Told};
use super::stand::{FAST, Stand, running, says, script};

const OK: Reply = Reply::With(200, "");

/// Before a receiver that answers like this.
async fn before(receiver: &Receiver, script: Value, settings: &str) -> Stand {
    Stand::http_with(script, &receiver.settings(settings, true), json!({})).await
}

fn completes() -> Value {
    script(json!([running(), says("completed", json!({ "result": { "n": 1 } }))]), json!([]))
}

/// What an event says of its task.
fn event(told: &Told) -> &Value {
    &told.body["data"]["event"]
}

fn statuses(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| event(told)["status"].as_str().unwrap()).collect()
}

async fn delivered(stand: &Stand, task: &str) -> Value {
    stand.until_that(task, "delivered", |shown| shown["notification_status"] == "delivered").await
}

#[tokio::test]
async fn an_end_is_told_once_signed_and_in_the_words_of_the_contract() {
    // Contract 6.9, event content, key, launched run; architecture.md §2, task events.
    let receiver = Receiver::start(&[OK], &[]).await;
    let stand = before(&receiver, completes(), FAST).await;
    let body = json!({ "name": "s_submit", "arguments": {}, "user_id": "ann", "thread_id": "t1", "run_id": "run-7" });
    let answer = stand.caribou.post("/api/mcp/tools/call", body.to_string()).await;
    let task = super::stand::task_of(&answer);
    let [told] = &receiver.until_told(1).await[..] else { panic!("one event") };
    assert_eq!(told.key, format!("mcp-task:{task}:3:0"), "submitted, working, completed");
    assert_eq!(told.headers["content-type"], "application/json");
    assert!(told.headers["user-agent"].starts_with("caribou/"));
    assert_eq!(told.body["type"], "mcp_task.event");
    let data = &told.body["data"];
    for (member, value) in [("user_id", "ann"), ("thread_id", "t1"), ("server", "s"), ("run_id", "run-7")] {
        assert_eq!(data[member], value, "{data}");
    }
    let launch = json!({ "task_id": task, "dispatch_version": 3, "dispatch_attempt": 0 });
    assert_eq!(data["mcp_task_notification"], launch);
    let members: Vec<&String> = event(told).as_object().unwrap().keys().collect();
    let expected = [
        "task_id",
        "task_name",
        "status",
        "result",
        "result_preview",
        "result_truncated",
        "result_artifact",
        "error",
        "input_required",
        "tracking_degraded",
        "last_poll_error",
    ];
    assert_eq!(members, expected);
    assert_eq!((&event(told)["status"], &event(told)["result"]), (&json!("completed"), &json!({ "n": 1 })));
    let message = data["agent_message"].as_str().unwrap();
    assert!(message.contains("--- BEGIN USER INPUT ---") && message.contains(r#""status":"completed""#), "{message}");
    assert!(!String::from_utf8_lossy(&told.raw).contains("remote-1"));
    let path = format!("/api/threads/t1/mcp-tasks/{task}?user_id=ann");
    caribou_tests::eventually(super::stand::SOON, "delivered", async || {
        let shown = stand.caribou.get(&path).await.json();
        (shown["notification_status"] == "delivered").then_some(shown)
    })
    .await;
    assert_eq!(receiver.told().len(), 1);
}

#[tokio::test]
async fn what_asks_for_attention_is_told_once_and_in_order() {
    // Contract 6.2, attention; 6.9, fingerprint: a repeated question is no news, another one is.
    let asks = |question: &str| says("input_required", json!({ "input_required": { "q": question } }));
    let turns = json!([running(), asks("a"), asks("a"), asks("b"), says("failed", json!({ "error": "melted" }))]);
    let receiver = Receiver::start(&[OK], &[]).await;
    let settings = "poll_interval_seconds: 1, input_required_poll_interval_seconds: 5";
    let stand = before(&receiver, script(turns, json!([])), settings).await;
    let ended = stand.ended().await;
    let task = ended["task_id"].as_str().unwrap();
    assert_eq!(ended["status"], "failed");
    let told = receiver.until_told(3).await;
    delivered(&stand, task).await;
    assert_eq!(
        statuses(&receiver.told()),
        ["input_required", "input_required", "failed"],
        "neither submitted nor working"
    );
    let questions: Vec<&Value> = told.iter().map(|told| &event(told)["input_required"]).collect();
    assert_eq!(questions, [&json!({ "q": "a" }), &json!({ "q": "b" }), &Value::Null]);
    assert_eq!(event(&told[2])["error"], "melted");
}

#[tokio::test]
async fn a_task_that_is_hard_to_follow_is_told_with_its_last_error() {
    // Contract 6.9, tracking degraded.
    let turns = json!([json!([{ "failure": "down" }]), json!([{ "failure": "down" }]), says("completed", json!({}))]);
    let receiver = Receiver::start(&[OK], &[]).await;
    let settings = "poll_interval_seconds: 1, tracking_degraded_after_errors: 2";
    let stand = before(&receiver, script(turns, json!([])), settings).await;
    stand.ended().await;
    let told = receiver.until_told(2).await;
    assert_eq!(statuses(&told), ["submitted", "completed"]);
    assert_eq!(event(&told[0])["tracking_degraded"], true);
    assert!(event(&told[0])["last_poll_error"].as_str().unwrap().ends_with("down"));
    assert_eq!(
        (&event(&told[1])["tracking_degraded"], &event(&told[1])["last_poll_error"]),
        (&json!(false), &Value::Null)
    );
}

#[tokio::test]
async fn a_run_is_looked_up_until_it_has_succeeded() {
    // Contract 6.9, dispatched: still active, success; delivered only then.
    let active = Reply::With(200, r#"{"status":"running"}"#);
    let receiver = Receiver::start(&[Reply::With(202, r#"{"run_id":"run 1/a"}"#)], &[active]).await;
    let stand = before(&receiver, completes(), FAST).await;
    let task = stand.submit().await;
    let shown = stand.until_that(&task, "launched", |shown| shown["notification_status"] == "dispatched").await;
    assert_eq!((&shown["status"], &shown["notification_attempt_count"]), (&json!("completed"), &json!(0)));
    caribou_tests::eventually(super::stand::SOON, "three looks", async || (receiver.asked().len() >= 3).then_some(()))
        .await;
    assert_eq!(stand.shown(&task).await["notification_status"], "dispatched", "looking counts nothing");
    receiver.runs(&[Reply::With(200, r#"{"status":"success"}"#)]);
    let done = delivered(&stand, &task).await;
    assert_eq!((&done["notification_attempt_count"], &done["notification_error"]), (&json!(0), &Value::Null));
    assert_eq!(receiver.asked()[0], "/threads/t1/runs/run%201%2Fa?user=default");
    assert_eq!(receiver.told().len(), 1, "launched once");
}

#[tokio::test]
async fn a_run_that_failed_or_is_not_there_is_launched_anew_under_the_next_key() {
    // Contract 6.9, dispatched: run error, run not found; the attempt advances after a launched run failed.
    let launched = Reply::With(202, r#"{"run_id":"r"}"#);
    let (failed, gone) = (Reply::With(200, r#"{"status":"error"}"#), Reply::With(404, ""));
    let success = Reply::With(200, r#"{"status":"success"}"#);
    let receiver = Receiver::start(&[launched], &[failed, gone, success]).await;
    let stand = before(&receiver, completes(), FAST).await;
    let task = stand.submit().await;
    delivered(&stand, &task).await;
    let keys: Vec<String> = receiver.told().into_iter().map(|told| told.key).collect();
    assert_eq!(keys, [0, 1, 2].map(|attempt| format!("mcp-task:{task}:3:{attempt}")));
    let bodies: Vec<Value> = receiver.told().iter().map(|told| event(told).clone()).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
}

#[tokio::test]
async fn without_a_look_up_address_a_launched_run_counts_as_delivered() {
    // architecture.md §2, task events.
    let receiver = Receiver::start(&[Reply::With(202, r#"{"run_id":"r"}"#)], &[]).await;
    let stand = Stand::http_with(completes(), &receiver.settings(FAST, false), json!({})).await;
    let task = stand.submit().await;
    delivered(&stand, &task).await;
    assert_eq!((receiver.told().len(), receiver.asked().len()), (1, 0));
}

#[tokio::test]
async fn nothing_is_told_when_nobody_is_named() {
    // Contract 2.3, notification_status none.
    let stand = Stand::http(completes()).await;
    let ended = stand.ended().await;
    assert_eq!((&ended["notification_status"], &ended["notification_attempt_count"]), (&json!("none"), &json!(0)));
}
