//! Sessions that hold unfinished tasks (architecture.md §10, idle reap and LRU; pinned tasks).

use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::task::{LOST, Status, TaskLimits};
use caribou_ports::store::StoredTask;
use caribou_runtime::Options;
use serde_json::{Value, json};

use super::{Does, Scripted, Tasking, task_server, until};
use crate::fake::call;

const TOOLS: [&str; 4] = ["submit", "status", "cancel", "other"];

/// A task server that is a child process.
fn child(more: &Value) -> Value {
    let mut server = task_server(more);
    let entry = server.as_object_mut().unwrap();
    entry.remove("url");
    entry.insert("type".to_owned(), "stdio".into());
    entry.insert("command".to_owned(), "fake".into());
    json!({ "r": server })
}

/// Polls come far apart, sessions are closed soon.
fn rare_polls() -> Options {
    let tasks = TaskLimits { poll_interval_seconds: 300, ..TaskLimits::default() };
    Options { session_idle: Duration::from_secs(60), tasks, ..Options::default() }
}

async fn submitted(servers: Value, options: Options) -> Tasking {
    let tasking = Tasking::with(Scripted::new(Does::Accept("one".to_owned())), servers, options, &TOOLS).await;
    tasking.submit().await.unwrap();
    tasking
}

async fn polled(tasking: &Tasking, times: usize) {
    until("the polls", async || tasking.driver.polled.load(Ordering::SeqCst) >= times).await;
}

async fn ended(tasking: &Tasking) -> StoredTask {
    until("the end", async || tasking.stored().await[0].ended_us.is_some()).await;
    tasking.stored().await.remove(0)
}

#[tokio::test(start_paused = true)]
async fn a_session_with_an_unfinished_task_is_not_reaped_and_is_when_the_task_has_ended() {
    let tasking = submitted(child(&json!({})), rare_polls()).await;
    polled(&tasking, 1).await;
    let fake = &tasking.setting.fake;
    let opened = fake.opened.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(250)).await;
    assert_eq!(fake.alive.load(Ordering::SeqCst), 1, "that of the thread; the catalogue's is gone");
    *tasking.driver.status.lock().unwrap() = Status::Completed;
    assert_eq!(ended(&tasking).await.snapshot.status, Status::Completed);
    assert_eq!(fake.opened.load(Ordering::SeqCst), opened, "in the session that it was submitted in");
    until("the session is reaped", async || fake.alive.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_with_an_unfinished_task_is_not_evicted_and_a_full_pool_is_busy() {
    let options = Options { max_live_sessions: 1, ..Options::default() };
    let tasking = submitted(child(&json!({ "session_init_timeout": 2 })), options).await;
    let runtime = &tasking.setting.runtime;
    for _ in 0..3 {
        let refused = runtime.call_tool(call("r_other", "another")).await.map(|_| ()).unwrap_err();
        assert_eq!(refused.code, Code::Busy);
    }
    runtime.call_tool(call("r_other", "t")).await.unwrap();
    *tasking.driver.status.lock().unwrap() = Status::Completed;
    assert_eq!(ended(&tasking).await.snapshot.status, Status::Completed);
    runtime.call_tool(call("r_other", "another")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_no_task_is_bound_to_is_reaped_between_two_polls() {
    let tasking = submitted(json!({ "r": task_server(&json!({})) }), rare_polls()).await;
    polled(&tasking, 1).await;
    let opened = tasking.setting.fake.opened.load(Ordering::SeqCst);
    polled(&tasking, 2).await;
    assert_eq!(tasking.setting.fake.opened.load(Ordering::SeqCst), opened + 1, "opened anew for the poll");
    *tasking.driver.status.lock().unwrap() = Status::Completed;
    assert_eq!(ended(&tasking).await.snapshot.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_slow_status_leaves_the_session_alone_and_the_task_completes_in_it() {
    // Contract 4.4: a timeout or an error of a tool is no disconnect.
    let tasking = submitted(child(&json!({ "tool_call_timeout": 1 })), Options::default()).await;
    *tasking.driver.status_tool.lock().unwrap() = "hang";
    until("a poll that failed", async || tasking.stored().await[0].poll_errors > 0).await;
    let error = tasking.stored().await.remove(0).last_poll_error.unwrap();
    assert!(error.contains("did not answer within 1 s"), "{error}");
    *tasking.driver.status_tool.lock().unwrap() = "error";
    until("another one", async || tasking.stored().await[0].poll_errors > 1).await;
    let opened = tasking.setting.fake.opened.load(Ordering::SeqCst);
    *tasking.driver.status_tool.lock().unwrap() = "status";
    *tasking.driver.status.lock().unwrap() = Status::Completed;
    assert_eq!(ended(&tasking).await.snapshot.status, Status::Completed);
    assert_eq!(tasking.setting.fake.opened.load(Ordering::SeqCst), opened, "no other process was started");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_process_that_dies_under_each_question_is_lost() {
    let tasking = submitted(child(&json!({})), Options::default()).await;
    let opened = tasking.setting.fake.opened.load(Ordering::SeqCst);
    *tasking.driver.status_tool.lock().unwrap() = "die";
    let done = ended(&tasking).await;
    assert_eq!((done.snapshot.status, done.snapshot.error.as_deref()), (Status::Failed, Some(LOST)));
    assert_eq!(tasking.setting.fake.opened.load(Ordering::SeqCst), opened + 3, "three others were asked");
}
