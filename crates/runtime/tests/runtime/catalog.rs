//! What holds of the catalogue (contract 5.1 to 5.3), under virtual time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::fake::{Fake, anybody, call, remote, server, start};
use crate::tasks::until;
use caribou_core::config::ServerEntry;
use caribou_core::failure::Code;
use caribou_core::ids::{Scope, ServerName};
use caribou_ports::mcp::{Oddity, SessionEvent};
use caribou_runtime::{Options, Runtime, ServerState};
use futures::future::join_all;

async fn names(runtime: &Runtime) -> Vec<String> {
    runtime
        .list_tools(&anybody(), &Scope::new(None, None))
        .await
        .unwrap()
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn one_discovery_serves_all_who_ask_and_is_cached() {
    // Contract 5.3, reuse; 5.5, one discovery in flight.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    let (caller, scope) = (anybody(), Scope::new(None, None));
    join_all((0..10).map(|_| runtime.list_tools(&caller, &scope))).await;
    names(&runtime).await;
    assert_eq!(fake.listed.load(Ordering::SeqCst), 1);
    until("the child that was started for the listing is gone", async || fake.alive.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_who_lists_waits_for_the_end_of_the_child_that_was_asked() {
    let fake = Arc::new(Fake::default());
    *fake.close_takes.lock().unwrap() = Duration::from_secs(2);
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    let began = tokio::time::Instant::now();
    assert!(!names(&runtime).await.is_empty() && began.elapsed() < Duration::from_secs(1));
    // Another look asks a child of its own, once the former has ended.
    fake.tools.lock().unwrap().push("beta".into());
    runtime.refresh_tools(&anybody(), None).await.unwrap();
    assert!(names(&runtime).await.contains(&"s_beta".to_owned()));
    assert_eq!((fake.opened.load(Ordering::SeqCst), fake.most_alive.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn bad_servers_hide_nothing_but_themselves_and_say_why() {
    // Contract 5.1, points 2 and 5; 1.10, what cannot be built.
    let fake = Arc::new(Fake { hanging: vec!["hang"], failing: vec!["fail"], ..Fake::default() });
    let dropped = ServerEntry { name: ServerName::from("bad"), config: Err("it requires 'command'".into()) };
    let servers = vec![
        server("hang", |_| ()),
        server("fail", |_| ()),
        dropped,
        server("off", |s| s.enabled = false),
        server("good", |_| ()),
    ];
    let runtime = start(&fake, servers, Options::default()).await;
    let listed = runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    assert!(listed.tools.iter().all(|tool| tool.server.as_str() == "good"));
    assert_eq!(listed.tools.len(), 7);
    assert_eq!(listed.pending, [ServerName::from("hang")]);
    assert!(listed.failed[0].1.contains("ImportError: fake"));
    let states: Vec<ServerState> = runtime.servers(&anybody()).await.iter().map(|server| server.state).collect();
    use ServerState::{Disabled, Dropped, Failed, Ready, Starting};
    assert_eq!(states, [Starting, Failed, Dropped, Disabled, Ready]);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_neighbour_does_not_delay_a_call() {
    // Contract 5.1, point 5.
    let fake = Arc::new(Fake { hanging: vec!["hang"], ..Fake::default() });
    let runtime = start(&fake, vec![server("hang", |_| ()), server("good", |_| ())], Options::default()).await;
    let began = tokio::time::Instant::now();
    runtime.call_tool(call("good_count", "t")).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_neighbour_delays_only_the_first_listing_however_often_it_is_tried_again() {
    let fake = Arc::new(Fake { hanging: vec!["hang"], ..Fake::default() });
    let hang = server("hang", |s| s.session_init_timeout = Some(Duration::from_secs(30)));
    let runtime = start(&fake, vec![hang, server("good", |_| ())], Options::default()).await;
    names(&runtime).await;
    for _ in 0..60 {
        let began = tokio::time::Instant::now();
        assert_eq!(names(&runtime).await.len(), 7);
        assert!(began.elapsed() < Duration::from_millis(100));
        tokio::time::advance(Duration::from_secs(2)).await;
    }
    assert!(fake.opened.load(Ordering::SeqCst) > 3, "it was tried again");
}

#[tokio::test(start_paused = true)]
async fn when_every_server_fails_the_listing_fails_and_is_tried_again() {
    // Contract 5.3, every enabled server fails.
    let fake = Arc::new(Fake { failing: vec!["a", "b"], ..Fake::default() });
    let runtime = start(&fake, vec![server("a", |_| ()), server("b", |_| ())], Options::default()).await;
    for _ in 0..2 {
        let error = runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap_err();
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.detail.contains("`a`") && error.detail.contains("`b`"), "{error}");
    }
    assert_eq!(fake.opened.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tools_is_a_success_and_no_servers_are_no_error() {
    // Contract 5.3, zero tools; 5.1, point 2; 5.6.
    let fake = Arc::new(Fake::default());
    fake.tools.lock().unwrap().clear();
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    assert!(names(&runtime).await.is_empty() && names(&runtime).await.is_empty());
    assert_eq!(fake.listed.load(Ordering::SeqCst), 1);
    let empty = start(&fake, Vec::new(), Options::default()).await;
    assert!(names(&empty).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_fetched_once_more_through_the_session_that_told_of_it() {
    // Contract 5.3, remote tools/list, as architecture.md §10 amends it.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    runtime.call_tool(call("s_count", "t")).await.unwrap();
    let (opened, listed) = (fake.opened.load(Ordering::SeqCst), fake.listed.load(Ordering::SeqCst));
    let (_, sink) = fake.sinks.lock().unwrap().last().cloned().unwrap();
    sink(SessionEvent::Oddity(Oddity::TextId));
    names(&runtime).await;
    assert_eq!(fake.listed.load(Ordering::SeqCst), listed, "an oddity says nothing of the list");
    fake.tools.lock().unwrap().push("beta".into());
    (0..50).for_each(|_| sink(SessionEvent::ToolsChanged));
    assert!(runtime.call_tool(call("s_beta", "t")).await.is_ok(), "a call finds the new tool without a listing");
    assert!(names(&runtime).await.contains(&"s_beta".to_owned()));
    assert_eq!(fake.listed.load(Ordering::SeqCst) - listed, 1);
    assert_eq!(fake.opened.load(Ordering::SeqCst), opened);
}

#[tokio::test(start_paused = true)]
async fn a_remote_server_keeps_one_standing_session_for_the_catalogue_that_no_caller_shares() {
    // Contract 4.1 as architecture.md §9 amends it: sessions of remote servers are pooled too.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", remote)], Options::default()).await;
    names(&runtime).await;
    assert_eq!(fake.alive.load(Ordering::SeqCst), 1);
    runtime.call_tool(call("s_count", "t")).await.unwrap();
    assert_eq!(fake.alive.load(Ordering::SeqCst), 2);
    assert_eq!(runtime.sessions(&anybody()).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_on_request_finds_what_was_never_announced() {
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ())], Options::default()).await;
    names(&runtime).await;
    fake.tools.lock().unwrap().push("beta".into());
    assert!(!names(&runtime).await.contains(&"s_beta".to_owned()));
    runtime.refresh_tools(&anybody(), Some(&ServerName::from("s"))).await.unwrap();
    assert!(names(&runtime).await.contains(&"s_beta".to_owned()));
    let unknown = runtime.refresh_tools(&anybody(), Some(&ServerName::from("x"))).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_not_found_and_a_tool_of_a_failed_server_says_so() {
    let fake = Arc::new(Fake { failing: vec!["down"], ..Fake::default() });
    let runtime = start(&fake, vec![server("s", |_| ()), server("down", |_| ())], Options::default()).await;
    let unknown = runtime.call_tool(call("nope", "t")).await.map(|_| ()).unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
    let absent = runtime.call_tool(call("down_get", "t")).await.map(|_| ()).unwrap_err();
    assert_eq!(absent.code, Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_later_loses_its_tools_and_its_neighbours_keep_theirs() {
    // Contract 5.3, discovery fails.
    let fake = Arc::new(Fake::default());
    let runtime = start(&fake, vec![server("s", |_| ()), server("u", |_| ())], Options::default()).await;
    assert_eq!(names(&runtime).await.len(), 14);
    fake.down.store(true, Ordering::SeqCst);
    runtime.refresh_tools(&anybody(), Some(&ServerName::from("s"))).await.unwrap();
    let left = names(&runtime).await;
    assert!(left.len() == 7 && left.iter().all(|name| name.starts_with("u_")), "{left:?}");
}
