//! What an edit of the configuration touches, and what it does not (contract 5.3 to 5.8; invariant G1), under virtual
//! time and with a document in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::Scope;
use caribou_runtime::Options;
use serde_json::json;

use crate::fake::{anybody, call};
use crate::followed::{Setting, document};

#[tokio::test(start_paused = true)]
async fn an_untouched_server_keeps_its_session_and_its_tool_objects() {
    // Contract 5.3, reuse; 4.4, connection change of one server.
    let setting = Setting::new(json!({"a": {"command": "a"}, "b": {"command": "b"}})).await;
    let before = setting.pids(&["a", "b"]).await;
    let listed = setting.runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    setting.memory.edit(document(&json!({"b": {"command": "other"}, "a": {"command": "a"}})));
    let after = setting.pids(&["a", "b"]).await;
    assert_eq!(before["a"], after["a"]);
    assert_ne!(before["b"], after["b"]);
    let again = setting.runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    let of_a = |listed: &caribou_runtime::ListedTools| {
        listed.tools.iter().find(|tool| tool.server.as_str() == "a").unwrap().tool.clone()
    };
    assert!(Arc::ptr_eq(&of_a(&listed), &of_a(&again)));
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_what_is_shown_lists_again_and_leaves_the_session() {
    // Contract 5.3, server edited, as architecture.md §10 amends it.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    let before = setting.pids(&["a"]).await;
    let listed = setting.fake.listed.load(Ordering::SeqCst);
    setting.memory.edit(document(&json!({"a": {"command": "a", "tool_name_prefix": false}})));
    let called = setting.runtime.call_tool(call("count", "t")).await.unwrap();
    assert!(called.result.get().starts_with(&before["a"]));
    assert_eq!(setting.fake.listed.load(Ordering::SeqCst), listed + 1);
}

#[tokio::test(start_paused = true)]
async fn disabling_the_last_server_stops_its_children() {
    // Contract 5.6; 5.3, server disabled.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    setting.pids(&["a"]).await;
    setting.memory.edit(document(&json!({"a": {"command": "a", "enabled": false}})));
    assert!(setting.servers_shown().await.is_empty());
    while setting.fake.alive.load(Ordering::SeqCst) > 0 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let gone = setting.runtime.call_tool(call("a_count", "t")).await.map(|_| ()).unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_server_removed_and_added_again_unchanged_is_another_one() {
    // Contract 5.8.
    let setting = Setting::new(json!({"a": {"command": "a"}, "b": {"command": "b"}})).await;
    let before = setting.pids(&["a"]).await;
    setting.memory.edit(document(&json!({"b": {"command": "b"}})));
    assert_eq!(setting.servers_shown().await, BTreeSet::from(["b".to_owned()]));
    setting.memory.edit(document(&json!({"a": {"command": "a"}, "b": {"command": "b"}})));
    assert_ne!(setting.pids(&["a"]).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_cannot_be_used_changes_nothing_and_is_told() {
    // Contract 5.4, parse failure, as architecture.md §10 amends it.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    let before = setting.pids(&["a"]).await;
    for broken in ["", "{", "[]", "{\"mcpServers\": {\"a\": {\"command\": \"a\"},}}"] {
        setting.memory.edit(broken);
        assert_eq!(setting.pids(&["a"]).await, before, "{broken}");
        assert!(setting.runtime.stale_config().is_some(), "{broken}");
    }
    setting.memory.edit(document(&json!({"a": {"command": "a"}})));
    assert_eq!(setting.pids(&["a"]).await, before);
    assert!(setting.runtime.stale_config().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_interceptors_and_a_reset_touch_every_server() {
    // Contract 5.3, interceptors changed and explicit reset; 5.7.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    let first = setting.pids(&["a"]).await;
    let text = json!({"mcpServers": {"a": {"command": "a"}}, "mcpInterceptors": ["builtin:x"]}).to_string();
    setting.memory.edit(text);
    let second = setting.pids(&["a"]).await;
    assert_ne!(first, second);
    setting.runtime.reset(&anybody()).await.unwrap();
    assert_ne!(setting.pids(&["a"]).await, second);
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_what_is_no_server_touches_nothing() {
    // Contract 5.4: the slice is equal; 1.1, both spellings.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    let before = setting.pids(&["a"]).await;
    let listed = setting.fake.listed.load(Ordering::SeqCst);
    let text =
        json!({"skills": {"x": {"enabled": false}}, "middlewares": ["m:C"], "mcp_servers": {"a": {"command": "a"}}});
    setting.memory.edit(text.to_string());
    assert_eq!(setting.pids(&["a"]).await, before);
    assert_eq!(setting.fake.listed.load(Ordering::SeqCst), listed);
}

#[tokio::test(start_paused = true)]
async fn another_order_of_servers_is_another_order_of_tools_and_nothing_else() {
    // Contract 5.3, reorder.
    let setting = Setting::new(json!({"a": {"command": "a"}, "b": {"command": "b"}})).await;
    let before = setting.pids(&["a", "b"]).await;
    let listed = setting.fake.listed.load(Ordering::SeqCst);
    let order = async || {
        let listed = setting.runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
        let mut order: Vec<String> = listed.tools.iter().map(|tool| tool.server.to_string()).collect();
        order.dedup();
        order
    };
    assert_eq!(order().await, ["a", "b"]);
    setting.memory.edit(document(&json!({"b": {"command": "b"}, "a": {"command": "a"}})));
    assert_eq!(order().await, ["b", "a"]);
    assert_eq!(setting.pids(&["a", "b"]).await, before);
    assert_eq!(setting.fake.listed.load(Ordering::SeqCst), listed);
}

#[tokio::test(start_paused = true)]
async fn what_was_found_under_an_overtaken_document_is_not_shown() {
    // Contract 5.5.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    let early = tokio::spawn({
        let runtime = setting.runtime.clone();
        async move { runtime.list_tools(&anybody(), &Scope::new(None, None)).await }
    });
    while setting.fake.opening.load(Ordering::SeqCst) == 0 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    setting.memory.edit(document(&json!({"a": {"command": "other", "tool_name_prefix": false}})));
    let shown = setting.runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    assert!(shown.tools.iter().all(|tool| tool.name == tool.raw_name), "{:?}", shown.tools.len());
    let shown_early = early.await.unwrap().unwrap();
    assert!(shown_early.tools.iter().all(|tool| tool.name == tool.raw_name));
    assert_eq!((shown.tools.len(), shown_early.tools.len()), (7, 7));
    assert_eq!(setting.fake.opened.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_server_changes_under_it_is_told_so() {
    // Contract 5.8 and 4.2, point 2.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    setting.servers_shown().await;
    let overtaken = tokio::spawn({
        let runtime = setting.runtime.clone();
        async move { runtime.call_tool(call("a_count", "t")).await.map(|_| ()) }
    });
    while setting.fake.opening.load(Ordering::SeqCst) == 0 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    setting.memory.edit(document(&json!({"a": {"command": "other"}})));
    setting.servers_shown().await;
    let error = overtaken.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::ConfigChanged, "{error}");
    assert!(error.detail.contains("configuration changed"), "{error}");
    assert_eq!(setting.fake.calls.load(Ordering::SeqCst), 0);
    setting.pids(&["a"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_room_while_its_server_changes_is_told_so() {
    // Contract 5.8.
    let options = Options { max_live_sessions: 1, ..Options::default() };
    let setting = Setting::with(json!({"a": {"command": "a"}, "b": {"command": "b"}}), options).await;
    setting.servers_shown().await;
    let hanging = tokio::spawn({
        let runtime = setting.runtime.clone();
        async move { runtime.call_tool(call("b_hang", "t")).await.map(|_| ()) }
    });
    while setting.fake.calls.load(Ordering::SeqCst) == 0 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let mut waiting = Box::pin(setting.runtime.call_tool(call("a_count", "t")));
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut waiting).await.is_err());
    setting.memory.edit(document(&json!({"a": {"command": "other"}, "b": {"command": "b"}})));
    // The listing waits for `a`, which has no room either; a look at what is stored is enough.
    let _ = setting.runtime.read_config(&anybody()).await.unwrap();
    assert_eq!(waiting.await.map(|_| ()).unwrap_err().code, Code::ConfigChanged);
    assert!(!hanging.is_finished());
    hanging.abort();
}

#[tokio::test(start_paused = true)]
async fn a_reset_does_not_wait_for_calls_in_flight() {
    // Contract 5.7: it must not deadlock.
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    let before = setting.pids(&["a"]).await;
    let hanging = tokio::spawn({
        let runtime = setting.runtime.clone();
        async move { runtime.call_tool(call("a_hang", "t")).await.map(|_| ()) }
    });
    while setting.fake.calls.load(Ordering::SeqCst) < 2 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let began = tokio::time::Instant::now();
    setting.runtime.reset(&anybody()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_ne!(setting.pids(&["a"]).await, before);
    assert_eq!(hanging.await.unwrap().unwrap_err().code, Code::OutcomeUnknown);
}
