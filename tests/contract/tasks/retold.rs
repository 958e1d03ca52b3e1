//! Deliveries that go wrong (contract 6.9, phases): what is waited for, tried again, given up and taken up again.

use serde_json::{Value, json};

use super::receiver::{Receiver, Reply, Told};
use super::stand::{FAST, Stand, running, says, script};

const OK: Reply = Reply::With(200, "");

/// Waits between failures that a test can await.
const QUICK: &str = "poll_interval_seconds: 1, max_poll_backoff_seconds: 1";

async fn before(receiver: &Receiver, script: Value, settings: &str) -> Stand {
    Stand::http_with(script, &receiver.settings(settings, true), json!({})).await
}

fn completes() -> Value {
    script(json!([says("completed", json!({}))]), json!([]))
}

async fn notified(stand: &Stand, task: &str, status: &str) -> Value {
    stand.until_that(task, status, |shown| shown["notification_status"] == status).await
}

fn keys(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.key.as_str()).collect()
}

#[tokio::test]
async fn a_busy_thread_is_waited_for_and_counts_nothing() {
    // Contract 6.9, launch: thread busy; the same key, since no run was launched.
    let busy = Reply::With(409, "");
    let receiver =
        Receiver::start(&[busy.clone(), busy.clone(), busy.clone(), busy.clone(), busy.clone(), busy, OK], &[]).await;
    let stand = before(&receiver, completes(), FAST).await;
    let task = stand.submit().await;
    receiver.until_told(2).await;
    assert_eq!(stand.shown(&task).await["notification_attempt_count"], 0);
    let done = notified(&stand, &task, "delivered").await;
    assert_eq!(done["notification_attempt_count"], 0);
    let told = receiver.told();
    assert_eq!(keys(&told), vec![format!("mcp-task:{task}:2:0"); 7], "more often than failures would be borne");
    assert!(told.windows(2).all(|two| two[1].at_ms - two[0].at_ms >= 900), "after the interval");
}

#[tokio::test]
async fn a_newer_event_takes_the_place_of_one_that_waits_for_a_busy_thread() {
    // Contract 6.9, thread busy: back to pending with the latest event.
    let asks = says("input_required", json!({ "input_required": { "q": 1 } }));
    let receiver = Receiver::start(&[Reply::With(409, "")], &[]).await;
    let stand = before(&receiver, script(json!([asks, running()]), json!([says("cancelled", json!({}))])), FAST).await;
    let task = stand.submit().await;
    receiver.until_told(1).await;
    stand.cancel(&task).await;
    stand.until(&task, "cancelled").await;
    receiver.now(&[OK]);
    notified(&stand, &task, "delivered").await;
    let told = receiver.told();
    let last = told.last().unwrap();
    assert_eq!(
        (last.key.as_str(), &last.body["data"]["event"]["status"]),
        (format!("mcp-task:{task}:3:0").as_str(), &json!("cancelled"))
    );
    let accepted = told.iter().filter(|told| told.key.ends_with(":3:0")).count();
    assert!(accepted >= 1 && told.iter().all(|told| told.key.ends_with(":2:0") || told.key.ends_with(":3:0")));
}

#[tokio::test]
async fn a_thread_that_is_gone_is_given_up_at_once_until_somebody_asks() {
    // Contract 6.9, launch: thread missing; architecture.md §2: 404 and 410. Taken up by an admin under the same key.
    for status in [404, 410, 400, 401, 403, 422, 501] {
        let receiver = Receiver::start(&[Reply::With(status, "")], &[]).await;
        let stand = before(&receiver, completes(), QUICK).await;
        let task = stand.submit().await;
        let dead = notified(&stand, &task, "dead_letter").await;
        assert_eq!(dead["notification_attempt_count"], 1, "{status}: {dead}");
        assert!(dead["notification_error"].as_str().unwrap().contains(&status.to_string()), "{dead}");
        assert_eq!(receiver.told().len(), 1, "{status}");
        receiver.now(&[OK]);
        let retold = stand.caribou.post(&format!("/api/mcp-tasks/{task}/redeliver"), "").await;
        assert_eq!((retold.status, retold.json()), (200, json!({ "redelivered": true })), "{retold:?}");
        let done = notified(&stand, &task, "delivered").await;
        assert_eq!((&done["notification_attempt_count"], &done["notification_error"]), (&json!(0), &Value::Null));
        let told = receiver.told();
        assert_eq!(keys(&told), vec![format!("mcp-task:{task}:2:0"); 2]);
        assert_eq!(told[0].raw, told[1].raw, "the same words");
        let again = stand.caribou.post(&format!("/api/mcp-tasks/{task}/redeliver"), "").await;
        assert_eq!((again.status, again.code().as_str()), (409, "conflict"), "{again:?}");
    }
}

#[tokio::test]
async fn a_later_event_takes_up_what_was_given_up() {
    // Contract 6.9, dead letter: a later new event re-arms it.
    let asks = says("input_required", json!({ "input_required": { "q": 1 } }));
    let receiver = Receiver::start(&[Reply::With(404, ""), OK], &[]).await;
    let stand = before(&receiver, script(json!([asks]), json!([says("cancelled", json!({}))])), FAST).await;
    let task = stand.submit().await;
    notified(&stand, &task, "dead_letter").await;
    stand.cancel(&task).await;
    let done = notified(&stand, &task, "delivered").await;
    assert_eq!((&done["status"], &done["notification_attempt_count"]), (&json!("cancelled"), &json!(0)), "{done}");
    assert_eq!(keys(&receiver.told()), [format!("mcp-task:{task}:2:0"), format!("mcp-task:{task}:3:0")]);
}

#[tokio::test]
async fn a_refused_launch_is_tried_five_times_ever_more_slowly_and_then_given_up() {
    // Contract 6.9: other launch errors count, the key stays; five failures are a dead letter before another launch.
    let receiver = Receiver::start(&[Reply::With(418, "")], &[]).await;
    let settings = "poll_interval_seconds: 1, max_poll_backoff_seconds: 2";
    let stand = before(&receiver, completes(), settings).await;
    let task = stand.submit().await;
    let dead = notified(&stand, &task, "dead_letter").await;
    assert_eq!(dead["notification_attempt_count"], 5, "{dead}");
    let told = receiver.told();
    assert_eq!(keys(&told), vec![format!("mcp-task:{task}:2:0"); 5]);
    for (two, least) in told.windows(2).zip([900, 1_900, 1_900, 1_900]) {
        assert!(two[1].at_ms - two[0].at_ms >= least, "{least}: {} to {}", two[0].at_ms, two[1].at_ms);
    }
}

#[tokio::test]
async fn runs_that_keep_failing_are_given_up_after_the_fifth() {
    // Contract 6.9, failed delivery: retry, attempt + 1, failure + 1.
    let receiver =
        Receiver::start(&[Reply::With(202, r#"{"run_id":"r"}"#)], &[Reply::With(200, r#"{"status":"interrupted"}"#)])
            .await;
    let stand = before(&receiver, completes(), QUICK).await;
    let task = stand.submit().await;
    let dead = notified(&stand, &task, "dead_letter").await;
    assert_eq!(dead["notification_attempt_count"], 5);
    assert!(dead["notification_error"].as_str().unwrap().contains("interrupted"), "{dead}");
    let told = receiver.told();
    let expected: Vec<String> = (0..5).map(|attempt| format!("mcp-task:{task}:2:{attempt}")).collect();
    assert_eq!(keys(&told), expected);
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_again_with_the_same_key_and_words() {
    // Contract 6.9, launching: 408, 429, 5xx and a broken connection may have launched it; nothing is counted.
    let unclear = [Reply::With(500, ""), Reply::Torn, Reply::With(429, ""), Reply::With(408, ""), Reply::With(503, "")];
    let replies: Vec<Reply> = unclear.iter().cloned().chain([Reply::Torn, OK]).collect();
    let receiver = Receiver::start(&replies, &[]).await;
    let stand = before(&receiver, completes(), QUICK).await;
    let task = stand.submit().await;
    receiver.until_told(2).await;
    let shown = stand.shown(&task).await;
    assert_eq!((&shown["notification_attempt_count"], &shown["notification_status"]), (&json!(0), &json!("claimed")));
    let done = notified(&stand, &task, "delivered").await;
    assert_eq!(done["notification_attempt_count"], 0);
    let told = receiver.told();
    assert_eq!(keys(&told), vec![format!("mcp-task:{task}:2:0"); 7]);
    assert!(told.iter().all(|each| each.raw == told[0].raw), "the same words each time");
}

#[tokio::test]
async fn a_launch_that_may_have_arrived_keeps_its_words_though_there_is_news() {
    // Contract 6.9, a recovered launching row keeps its event and key; the newer event follows.
    let asks = says("input_required", json!({ "input_required": { "q": 1 } }));
    let receiver = Receiver::start(&[Reply::Torn], &[]).await;
    let stand = before(&receiver, script(json!([asks]), json!([says("cancelled", json!({}))])), QUICK).await;
    let task = stand.submit().await;
    receiver.until_told(1).await;
    stand.cancel(&task).await;
    stand.until(&task, "cancelled").await;
    let before_news = receiver.told().len();
    receiver.until_told(before_news + 1).await;
    receiver.now(&[OK]);
    notified(&stand, &task, "delivered").await;
    let told = receiver.told();
    let (last, earlier) = told.split_last().unwrap();
    assert_eq!(last.key, format!("mcp-task:{task}:3:0"));
    assert!(earlier.iter().all(|each| each.key == format!("mcp-task:{task}:2:0") && each.raw == told[0].raw));
}

#[tokio::test]
async fn a_look_up_that_fails_counts_and_a_run_that_cannot_be_found_out_is_given_up() {
    // Contract 6.9, dispatched: lookup throws: phase unchanged, counted, backoff; five failures are the end.
    let launched = Reply::With(202, r#"{"run_id":"r"}"#);
    let receiver = Receiver::start(&[launched], &[Reply::With(500, "")]).await;
    let stand = before(&receiver, completes(), QUICK).await;
    let task = stand.submit().await;
    let counted = |shown: &Value| shown["notification_attempt_count"].as_u64().unwrap() >= 2;
    let shown = stand.until_that(&task, "two failures", counted).await;
    assert_eq!(shown["notification_status"], "dispatched", "{shown}");
    let dead = notified(&stand, &task, "dead_letter").await;
    assert_eq!(dead["notification_attempt_count"], 5, "{dead}");
    assert_eq!((receiver.told().len(), receiver.asked().len()), (1, 5));
}

#[tokio::test]
async fn a_refusal_of_one_task_touches_no_other() {
    // Contract 6.9: one failure releases its own row alone.
    let receiver = Receiver::start(&[Reply::With(418, ""), OK], &[]).await;
    let stand = before(&receiver, completes(), "poll_interval_seconds: 1").await;
    let (first, second) = (stand.submit().await, stand.submit().await);
    notified(&stand, &first, "delivered").await;
    notified(&stand, &second, "delivered").await;
    assert_eq!(receiver.told().len(), 3, "{:?}", keys(&receiver.told()));
}
