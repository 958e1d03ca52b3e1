//! Bring-ups that fail, are left or never end, and evictions that must hit nobody else, under virtual time (contract
//! 4.1 to 4.5; invariants S3, S4, B1).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::fake::{Fake, anybody, call, server, start};
use caribou_core::failure::Code;
use caribou_core::ids::{Scope, ServerName};
use caribou_runtime::{Options, Runtime};
use futures::future::join_all;

/// A replica with one server `s` whose tools are known.
async fn discovered(fake: &Arc<Fake>, options: Options) -> Runtime {
    let servers = vec![server("s", |s| s.session_init_timeout = Some(Duration::from_secs(2)))];
    let runtime = start(fake, servers, options).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    runtime
}

async fn count(runtime: &Runtime, thread: &str) -> String {
    runtime.call_tool(call("s_count", thread)).await.unwrap().result.get().to_owned()
}

async fn failure(runtime: &Runtime, tool: &str, thread: &str) -> (Code, String) {
    let error = runtime.call_tool(call(tool, thread)).await.map(|_| ()).unwrap_err();
    (error.code, error.detail)
}

async fn threads(runtime: &Runtime) -> Vec<String> {
    let mut threads: Vec<String> =
        runtime.sessions(&anybody()).await.iter().map(|session| session.scope.thread.to_string()).collect();
    threads.sort();
    threads
}

/// Lets time go by, a little at a time.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
}

#[test]
fn the_pool_holds_256_children_unless_told_otherwise() {
    // Contract 4.1, capacity.
    assert_eq!(Options::default().max_live_sessions, 256);
}

#[tokio::test(start_paused = true)]
async fn the_session_called_longest_ago_makes_room() {
    // Contract 4.1, capacity; 4.4, LRU.
    let fake = Arc::new(Fake::default());
    let runtime = discovered(&fake, Options { max_live_sessions: 2, ..Options::default() }).await;
    for thread in ["old", "older", "old", "new"] {
        count(&runtime, thread).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(threads(&runtime).await, ["new", "old"]);
}

#[tokio::test(start_paused = true)]
async fn every_caller_of_a_failing_bring_up_hears_the_error_and_nothing_is_left() {
    // Contract 4.3, creation fails.
    let fake = Arc::new(Fake::default());
    let runtime = discovered(&fake, Options::default()).await;
    let opened = fake.opened.load(Ordering::SeqCst);
    fake.down.store(true, Ordering::SeqCst);
    for (code, detail) in join_all((0..5).map(|_| failure(&runtime, "s_count", "t"))).await {
        assert!(code == Code::Unavailable && detail.contains("ImportError: fake"), "{code:?}: {detail}");
    }
    assert_eq!(fake.opened.load(Ordering::SeqCst) - opened, 1);
    assert_eq!((fake.alive.load(Ordering::SeqCst), threads(&runtime).await.len()), (0, 0));
    fake.down.store(false, Ordering::SeqCst);
    until(|| fake.alive.load(Ordering::SeqCst) == 0).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    count(&runtime, "t").await;
}

#[tokio::test(start_paused = true)]
async fn a_bring_up_whose_caller_left_is_counted_and_serves_the_next() {
    // Contract 4.3, cancelled during init: nothing leaks. Callers join, so the bring-up belongs to none of them.
    let fake = Arc::new(Fake { open_takes: Duration::from_secs(1), ..Fake::default() });
    let runtime = discovered(&fake, Options { max_live_sessions: 1, ..Options::default() }).await;
    let leaving = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.call_tool(call("s_count", "t")).await.map(|_| ()) }
    });
    until(|| fake.opening.load(Ordering::SeqCst) == 1).await;
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    let opened = fake.opened.load(Ordering::SeqCst);
    assert!(count(&runtime, "t").await.ends_with(",1]"));
    assert_eq!((fake.opened.load(Ordering::SeqCst), threads(&runtime).await), (opened, vec!["t".to_owned()]));
    count(&runtime, "other").await;
    assert_eq!((fake.alive.load(Ordering::SeqCst), threads(&runtime).await), (1, vec!["other".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn closing_the_session_with_one_server_leaves_its_siblings() {
    // Contract 4.4, explicit close of scope and server.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ()), server("u", |_| ())], Options::default()).await;
    for (tool, thread) in [("s_count", "t"), ("u_count", "t"), ("s_count", "v")] {
        runtime.call_tool(call(tool, thread)).await.unwrap();
    }
    let scope = Scope::new(Some("ann"), Some("t"));
    assert_eq!(runtime.close_sessions(&anybody(), &scope, Some(&ServerName::from("s"))).await.unwrap(), 1);
    let mut left: Vec<_> = runtime
        .sessions(&anybody())
        .await
        .iter()
        .map(|session| format!("{} {}", session.server, session.scope))
        .collect();
    left.sort();
    assert_eq!(left, ["s ann:v", "u ann:t"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_failure_of_an_old_session_leaves_its_successor() {
    // Contract 4.4: only if the registered session is the very one that failed.
    let fake = Arc::new(Fake::default());
    fake.tools.lock().unwrap().push("linger".into());
    let runtime = discovered(&fake, Options::default()).await;
    let first = count(&runtime, "t").await;
    let late = tokio::spawn({
        let runtime = runtime.clone();
        async move { failure(&runtime, "s_linger", "t").await }
    });
    until(|| fake.calls.load(Ordering::SeqCst) == 2).await;
    assert_eq!(failure(&runtime, "s_die", "t").await.0, Code::OutcomeUnknown);
    let second = count(&runtime, "t").await;
    assert!(second != first && second.ends_with(",1]"), "{second}");
    assert_eq!(late.await.unwrap().0, Code::OutcomeUnknown);
    assert_eq!(count(&runtime, "t").await, second.replace(",1]", ",2]"));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_server_is_no_disconnect() {
    // Contract 4.4, what is no disconnect.
    let fake = Arc::new(Fake::default());
    let runtime = discovered(&fake, Options::default()).await;
    let first = count(&runtime, "t").await;
    assert_eq!(failure(&runtime, "s_error", "t").await.0, Code::UpstreamError);
    assert_eq!(count(&runtime, "t").await, first.replace(",1]", ",2]"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_come_up_in_time_fails_its_callers_by_name_and_leaves_nothing() {
    // Contract 4.5, `session_init_timeout`.
    let fake = Arc::new(Fake::default());
    let runtime = discovered(&fake, Options::default()).await;
    fake.stalled.store(true, Ordering::SeqCst);
    let began = tokio::time::Instant::now();
    let (code, detail) = failure(&runtime, "s_count", "t").await;
    assert!(code == Code::Timeout && detail.contains("server `s`"), "{code:?}: {detail}");
    assert_eq!(began.elapsed().as_secs(), 2);
    assert_eq!((fake.alive.load(Ordering::SeqCst), threads(&runtime).await.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_bound_may_take_its_time_to_come_up() {
    // Contract 4.5, null.
    let fake = Arc::new(Fake { open_takes: Duration::from_secs(600), ..Fake::default() });
    let runtime = start(&fake, vec![server("s", |s| s.session_init_timeout = None)], Options::default()).await;
    assert!(count(&runtime, "t").await.ends_with(",1]"));
}

#[tokio::test(start_paused = true)]
async fn a_bring_up_that_panics_is_told_and_holds_no_place() {
    // Invariant B1.
    let fake = Arc::new(Fake { panicking: vec!["broken"], ..Fake::default() });
    let servers = vec![server("broken", |_| ()), server("good", |_| ())];
    let runtime = start(&fake, servers, Options { max_live_sessions: 1, ..Options::default() }).await;
    let began = tokio::time::Instant::now();
    let error = runtime.call_tool(call("broken_count", "t")).await.err().unwrap();
    assert!(error.detail.contains("fault of Caribou"), "{error}");
    runtime.call_tool(call("good_count", "t")).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "nobody waited for it");
}
