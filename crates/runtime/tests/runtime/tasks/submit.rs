//! Submitting (contract 6.4; invariant T1).

use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::task::Status;
use tokio::time::Instant;

use super::{Does, Scripted, Tasking, until};
use crate::fake::call;

fn accepting(remote: &str) -> Scripted {
    Scripted::new(Does::Accept(remote.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn the_handle_is_stored_before_the_caller_hears_the_local_name_and_never_the_remote_one() {
    // Contract 6.4, steps 1 to 4.
    let tasking = Tasking::new(accepting("remote-7")).await;
    let told = tasking.submit().await.unwrap();
    let task = &told["structuredContent"];
    let keys: Vec<&String> = task.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["task_id", "task_name", "status", "message"]);
    assert_eq!((&task["task_name"], &task["status"]), (&"report".into(), &"submitted".into()));
    assert!(!told.to_string().contains("remote-7"), "{told}");
    assert_eq!(told["content"][0]["text"].as_str().unwrap(), task.to_string());
    let stored = tasking.stored().await;
    assert_eq!(stored.len(), 1);
    assert_eq!(task["task_id"], stored[0].task.to_string().as_str());
    assert_eq!((stored[0].scope.to_string().as_str(), stored[0].server.as_str()), ("ann:t", "r"));
    // The remote's own hint decides when it is asked first.
    let began = Instant::now();
    until("the first poll", async || tasking.driver.polled.load(Ordering::SeqCst) > 0).await;
    assert!(began.elapsed() >= Duration::from_secs(6), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_submit_that_was_refused_or_makes_no_sense_leaves_nothing() {
    // Contract 6.7, column submit.
    for (does, what) in [(Does::Refuse, "no paper"), (Does::Unreadable, "structuredContent is missing")] {
        let tasking = Tasking::new(Scripted::new(does)).await;
        let error = tasking.submit().await.unwrap_err();
        assert_eq!(error.code, Code::UpstreamError);
        assert!(error.detail.contains(what), "{error}");
        assert!(tasking.stored().await.is_empty());
        assert!(tasking.driver.cancelled.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_submit_of_which_nobody_can_tell_is_on_record_as_unknown_and_is_never_repeated() {
    // Invariants T1, S2.
    let tasking = Tasking::new(Scripted::new(Does::Ambiguous)).await;
    let error = tasking.submit().await.unwrap_err();
    assert_eq!(error.code, Code::OutcomeUnknown);
    let stored = tasking.stored().await;
    assert_eq!(stored[0].snapshot.status, Status::Unknown);
    assert!(error.detail.contains(&stored[0].task.to_string()), "{error}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(tasking.driver.submits.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_does_not_fit_is_cancelled_at_the_remote_and_not_stored() {
    // Contract 6.4, remote id of more than 255 characters.
    let long = "r".repeat(256);
    let tasking = Tasking::new(accepting(&long)).await;
    let error = tasking.submit().await.unwrap_err();
    assert_eq!(error.code, Code::UpstreamError);
    assert_eq!(*tasking.driver.cancelled.lock().unwrap(), [long]);
    assert!(tasking.stored().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_task_that_is_followed_is_refused_and_not_cancelled() {
    // Contract 6.4, unique conflict.
    let tasking = Tasking::new(accepting("one")).await;
    tasking.submit().await.unwrap();
    let error = tasking.submit().await.unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.detail.contains("duplicate"), "{error}");
    assert!(tasking.driver.cancelled.lock().unwrap().is_empty());
    assert_eq!(tasking.stored().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_cancellation_is_waited_for_five_seconds_and_goes_on() {
    // Contract 6.4, slow compensation.
    let long = "r".repeat(256);
    let driver = Scripted { cancel_takes: Duration::from_secs(20), ..accepting(&long) };
    let tasking = Tasking::new(driver).await;
    tasking.setting.runtime.list_tools(&crate::fake::anybody(), &super::ann()).await.unwrap();
    let began = Instant::now();
    tasking.submit().await.unwrap_err();
    let waited = began.elapsed().as_secs_f64();
    assert!((4.9..6.0).contains(&waited), "{waited}");
    assert!(tasking.driver.cancelled.lock().unwrap().is_empty());
    until("the cancellation", async || !tasking.driver.cancelled.lock().unwrap().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_leaves_a_task_of_unknown_outcome() {
    // Contract 6.4, caller cancelled.
    let tasking = Tasking::new(Scripted::new(Does::Hang)).await;
    let submit = tasking.setting.runtime.call_tool(call("r_submit", "t"));
    assert!(tokio::time::timeout(Duration::from_secs(2), submit).await.is_err());
    until("the record", async || tasking.stored().await.iter().any(|task| task.snapshot.status == Status::Unknown))
        .await;
    assert_eq!(tasking.driver.submits.load(Ordering::SeqCst), 1);
}
