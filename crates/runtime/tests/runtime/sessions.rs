//! What holds of sessions whatever their transport, under virtual time (contract 4; invariants L2, S2, S3, S4, B1).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::fake::{Fake, anybody, call, server, start};
use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_runtime::{CallTool, Options, Runtime};
use futures::future::join_all;

async fn text(runtime: &Runtime, tool: &str, thread: &str) -> String {
    runtime.call_tool(call(tool, thread)).await.unwrap().result.get().to_owned()
}

#[tokio::test(start_paused = true)]
async fn concurrent_first_calls_of_one_thread_share_one_session() {
    // Contract 4.2, point 4.
    let fake = Arc::new(Fake { open_takes: Duration::from_secs(1), ..Fake::default() });
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let before = fake.opened.load(Ordering::SeqCst);
    let calls = join_all((0..20).map(|_| runtime.call_tool(call("s_count", "t")))).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(fake.opened.load(Ordering::SeqCst) - before, 1);
}

#[tokio::test(start_paused = true)]
async fn each_thread_keeps_its_own_state_between_calls() {
    // Contract 4.1, scope.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    let (first, second) = (text(&runtime, "s_count", "a").await, text(&runtime, "s_count", "a").await);
    let other = text(&runtime, "s_count", "b").await;
    assert!(first.ends_with(",1]") && second.ends_with(",2]") && other.ends_with(",1]"));
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_never_passed_and_everybody_is_served_within_the_bring_up_bound() {
    // Contract 4.1, capacity; 4.3, different keys at capacity.
    let fake = Arc::new(Fake { open_takes: Duration::from_millis(500), ..Fake::default() });
    let options = Options { max_live_sessions: 4, ..Options::default() };
    let runtime = start(&fake, vec![server("s", |_| ())], options).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let threads: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
    let calls = join_all(threads.iter().map(|thread| runtime.call_tool(call("s_count", thread)))).await;
    assert_eq!(calls.iter().filter(|c| c.is_ok()).count(), 100);
    assert_eq!(fake.most_alive.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn failed_bring_ups_leak_no_place() {
    // Contract 4.3, creation fails.
    let fake = Arc::new(Fake { fail_every: 3, ..Fake::default() });
    let options = Options { max_live_sessions: 4, ..Options::default() };
    let runtime = start(&fake, vec![server("s", |_| ())], options).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let threads: Vec<String> = (0..60).map(|n| format!("t{n}")).collect();
    let calls = join_all(threads.iter().map(|thread| runtime.call_tool(call("s_count", thread)))).await;
    assert!(calls.iter().any(Result::is_err) && calls.iter().any(Result::is_ok));
    assert_eq!(fake.most_alive.load(Ordering::SeqCst), 4);
    // All four places are still there.
    let held = join_all((0..4).map(|n| {
        let runtime = runtime.clone();
        async move { while runtime.call_tool(call("s_slow", &format!("again{n}"))).await.is_err() {} }
    }));
    held.await;
    runtime.stop().await;
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn children_are_brought_up_only_so_many_at_once() {
    let fake = Arc::new(Fake { open_takes: Duration::from_secs(1), ..Fake::default() });
    let options = Options { max_spawns: 3, ..Options::default() };
    let runtime = start(&fake, vec![server("s", |_| ())], options).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let threads: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
    let calls = join_all(threads.iter().map(|thread| runtime.call_tool(call("s_count", thread)))).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(fake.most_opening.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_a_call_in_flight_is_not_evicted_and_a_full_pool_is_busy_in_the_end() {
    // Contract 4.4 as architecture.md §10 amends it.
    let fake = Arc::new(Fake::default());
    let options = Options { max_live_sessions: 1, ..Options::default() };
    let servers = vec![server("s", |s| s.session_init_timeout = Some(Duration::from_secs(2)))];
    let runtime = start(&fake, servers, options).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let held = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.call_tool(call("s_hang", "a")).await.map(|_| ()) }
    });
    while fake.calls.load(Ordering::SeqCst) == 0 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let refused = runtime.call_tool(call("s_count", "b")).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.code, Code::Busy);
    assert!(!held.is_finished());
    held.abort();
    let _ = held.await;
    assert!(runtime.call_tool(call("s_count", "b")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_a_session_takes_are_busy_at_once() {
    let fake = Arc::new(Fake::default());
    let options = Options { max_calls_per_session: 2, ..Options::default() };
    let runtime = start(&fake, vec![server("s", |_| ())], options).await;
    text(&runtime, "s_count", "t").await;
    let calls = join_all((0..5).map(|_| runtime.call_tool(call("s_slow", "t")))).await;
    let busy = calls.iter().filter(|c| c.as_ref().is_err_and(|error| error.code == Code::Busy)).count();
    assert_eq!(busy, 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_dies_fails_its_calls_is_not_replayed_and_is_followed_by_a_restarted_one() {
    // Contract 4.4, disconnect during a tool call.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    let first = runtime.call_tool(call("s_count", "t")).await.unwrap().session.unwrap();
    assert!(!first.restarted);
    let calls = fake.calls.load(Ordering::SeqCst);
    let (hanging, dying) = tokio::join!(runtime.call_tool(call("s_hang", "t")), runtime.call_tool(call("s_die", "t")));
    for failed in [hanging, dying] {
        let error = failed.map(|_| ()).unwrap_err();
        assert_eq!(error.code, Code::OutcomeUnknown);
        assert!(error.detail.contains("connection closed") && error.detail.contains("exit code 7"));
    }
    assert_eq!(fake.calls.load(Ordering::SeqCst) - calls, 2);
    let next = runtime.call_tool(call("s_count", "t")).await.unwrap();
    let seen = next.session.unwrap();
    assert!(seen.restarted && seen.epoch > first.epoch);
    assert!(next.result.get().ends_with(",1]"));
    assert!(!runtime.call_tool(call("s_count", "t")).await.unwrap().session.unwrap().restarted);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_surely_never_left_is_sent_once_more_in_a_new_session() {
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    assert!(runtime.call_tool(call("s_unsent", "t")).await.is_ok());
    assert_eq!(fake.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_reopened_in_place_is_told_as_restarted() {
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    let first = runtime.call_tool(call("s_reopen", "t")).await.unwrap().session.unwrap();
    fake.reopen.store(true, Ordering::SeqCst);
    let second = runtime.call_tool(call("s_reopen", "t")).await.unwrap().session.unwrap();
    assert!(second.restarted && second.epoch > first.epoch);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_or_too_late_is_cancelled_upstream_and_leaves_the_session() {
    // Contract 4.5, `tool_call_timeout`; 4.4, what is no disconnect.
    let fake = Arc::new(Fake::default());
    let servers = vec![server("s", |s| s.tool_call_timeout = Some(Duration::from_secs(3)))];
    let runtime = start(&fake, servers, Options::default()).await;
    text(&runtime, "s_count", "t").await;
    let late = runtime.call_tool(call("s_hang", "t")).await.map(|_| ()).unwrap_err();
    assert_eq!(late.code, Code::Timeout);
    assert_eq!(fake.cancelled.load(Ordering::SeqCst), 1);
    let left = tokio::time::timeout(Duration::from_secs(1), runtime.call_tool(call("s_hang", "t"))).await;
    assert!(left.is_err());
    assert_eq!(fake.cancelled.load(Ordering::SeqCst), 2);
    assert!(text(&runtime, "s_count", "t").await.ends_with(",2]"));
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_reaped_and_the_thread_is_told_of_the_restart() {
    // Contract 4.4 as architecture.md §10 amends it.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    text(&runtime, "s_count", "t").await;
    assert_eq!(runtime.sessions(&anybody()).await.len(), 1);
    tokio::time::advance(Duration::from_secs(31 * 60)).await;
    while !runtime.sessions(&anybody()).await.is_empty() {
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
    assert!(runtime.call_tool(call("s_count", "t")).await.unwrap().session.unwrap().restarted);
}

#[tokio::test(start_paused = true)]
async fn closing_a_scope_closes_its_live_and_opening_sessions_and_no_others() {
    // Contract 4.4, explicit close; 4.3, close during creation; 4.2, point 5.
    let fake = Arc::new(Fake { open_takes: Duration::from_secs(1), ..Fake::default() });
    let runtime = start(&fake, vec![server("s", |_| ()), server("u", |_| ())], Options::default()).await;
    text(&runtime, "s_count", "mine").await;
    text(&runtime, "s_count", "other").await;
    let opening = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.call_tool(call("u_count", "mine")).await.map(|_| ()) }
    });
    while runtime.sessions(&anybody()).await.len() < 3 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let closed = runtime.close_sessions(&anybody(), &Scope::new(Some("ann"), Some("mine")), None).await.unwrap();
    assert_eq!(closed, 2);
    assert_eq!(opening.await.unwrap().unwrap_err().code, Code::SessionEnded);
    let left = runtime.sessions(&anybody()).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].scope.thread.as_str(), "other");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_failing_is_left_alone_for_growing_whiles() {
    let fake = Arc::new(Fake { failing: vec!["s"], ..Fake::default() });
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    for _ in 0..100 {
        let error = runtime.call_tool(call("s_count", "t")).await.map(|_| ()).unwrap_err();
        assert!(error.detail.contains("ImportError: fake") && error.detail.contains("exit code 7"), "{error}");
    }
    assert_eq!(fake.opened.load(Ordering::SeqCst), 3);
    tokio::time::advance(Duration::from_secs(2)).await;
    let _ = runtime.call_tool(call("s_count", "t")).await;
    assert_eq!(fake.opened.load(Ordering::SeqCst), 4);
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_end_before_any_answer_count_as_failed_starts_for_their_user_alone() {
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let opened = fake.opened.load(Ordering::SeqCst);
    for thread in 0..15 {
        let error = runtime.call_tool(call("s_die", &thread.to_string())).await.map(|_| ()).unwrap_err();
        assert!(error.detail.contains("ImportError: fake"), "{error}");
    }
    assert_eq!(fake.opened.load(Ordering::SeqCst) - opened, 3);
    let of_another = CallTool { scope: Scope::new(Some("bob"), Some("t")), ..call("s_count", "t") };
    assert!(runtime.call_tool(of_another).await.is_ok(), "nobody blocks others");
    tokio::time::advance(Duration::from_secs(2)).await;
    for _ in 0..10 {
        runtime.call_tool(call("s_count", "t")).await.expect("what has answered did start");
        assert!(runtime.call_tool(call("s_die", "t")).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_bring_up_that_queued_its_time_away_does_not_blame_its_server() {
    let fake = Arc::new(Fake { open_takes: Duration::from_secs(1), ..Fake::default() });
    let options = Options { max_spawns: 2, ..Options::default() };
    let bound = Some(Duration::from_secs(5));
    let runtime = start(&fake, vec![server("s", |s| s.session_init_timeout = bound)], options).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let threads: Vec<String> = (0..40).map(|n| format!("t{n}")).collect();
    let calls = join_all(threads.iter().map(|thread| runtime.call_tool(call("s_count", thread)))).await;
    let refused: Vec<_> = calls.into_iter().filter_map(Result::err).collect();
    assert!(refused.len() > 20 && refused.iter().all(|error| error.code == Code::Busy), "{refused:?}");
    assert!(runtime.call_tool(call("s_count", "later")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_up_before_it_could_be_sent_says_so() {
    let fake = Arc::new(Fake { open_takes: Duration::from_secs(2), hanging: vec!["hang"], ..Fake::default() });
    let runtime = start(&fake, vec![server("s", |_| ()), server("hang", |_| ())], Options::default()).await;
    runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    for tool in ["s_count", "hang_count"] {
        let mut short = call(tool, "t");
        short.timeout = Some(Duration::from_secs(1));
        let began = tokio::time::Instant::now();
        let error = runtime.call_tool(short).await.map(|_| ()).unwrap_err();
        assert_eq!((error.code, began.elapsed().as_secs()), (Code::Timeout, 1), "{error}");
        assert!(error.detail.contains("was not called"), "{error}");
    }
    assert_eq!(fake.calls.load(Ordering::SeqCst), 0);
}
