//! Interceptors around calls (contract 8.6; 5.3, interceptor chain), under virtual time and with interceptors in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::config::{InterceptorEntry, Secret};
use caribou_core::failure::Code;
use caribou_core::ids::BootId;
use caribou_runtime::{CallTool, CalledTool, Options, Outside, RequestSecrets, Runtime, Shape, VerbError};
use serde_json::{Value, json};

use crate::fake::{Fake, FakeConnector, call, raw, server};
use crate::followed::Setting;

/// A replica whose servers `a` (a child) and `r` (remote) stand behind these interceptors.
async fn behind(entries: Value) -> Setting {
    let setting = Setting::new(json!({"a": {"command": "a"}})).await;
    setting.memory.edit(document(entries));
    setting
}

fn document(entries: Value) -> String {
    let servers = json!({"a": {"command": "a"}, "r": {"type": "http", "url": "http://127.0.0.1:1/mcp"}});
    json!({"mcpServers": servers, "mcpInterceptors": entries}).to_string()
}

fn with_arguments(name: &str) -> CallTool {
    CallTool { arguments: Some(raw(r#"{"q":1.0}"#)), ..call(name, "t") }
}

async fn called(setting: &Setting, call: CallTool) -> Result<CalledTool, VerbError> {
    setting.runtime.call_tool(call).await
}

async fn refused(setting: &Setting, call: CallTool) -> VerbError {
    called(setting, call).await.map(|_| ()).unwrap_err()
}

fn calls(setting: &Setting) -> usize {
    setting.fake.calls.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn they_are_asked_in_order_and_shown_the_result_in_reverse() {
    // Contract 8.6, order and execution: each is shown the call as the one before left it.
    let setting = behind(json!(["builtin:one", "builtin:arguments", "builtin:two"])).await;
    let result = called(&setting, with_arguments("a_count")).await.unwrap().result;
    assert_eq!(
        setting.interceptors.seen(),
        [
            r#"before one: {"q":1.0}"#.to_owned(),
            r#"before arguments: {"q":1.0}"#.to_owned(),
            r#"before two: {"by":1.0}"#.to_owned(),
            format!(r#"after two: {{"by":1.0}} -> {result}"#),
            format!(r#"after arguments: {{"q":1.0}} -> {result}"#),
            format!(r#"after one: {{"q":1.0}} -> {result}"#),
        ]
    );
    assert_eq!(setting.fake.sent.lock().unwrap()[0].arguments.as_deref(), Some(r#"{"by":1.0}"#));
}

#[tokio::test(start_paused = true)]
async fn the_later_header_wins_and_each_sees_those_before_it() {
    // Contract 8.6, the one closer to the transport; 8.2, one field on the wire.
    let setting = behind(json!(["builtin:tenant", "builtin:tenant-too", "builtin:number", "builtin:last"])).await;
    called(&setting, call("r_count", "t")).await.unwrap();
    let sent = setting.fake.sent.lock().unwrap()[0].clone();
    let values = |headers: &[(String, String)]| {
        headers.iter().map(|(name, value)| format!("{}={value}", name.to_lowercase())).collect::<Vec<_>>()
    };
    assert_eq!(values(&sent.session_headers), ["x-tenant=second"]);
    assert_eq!(values(&sent.headers), ["x-number=r"]);
    assert!(sent.meta.is_empty(), "{sent:?}");
    let seen = setting.interceptors.seen();
    assert!(seen[1].to_lowercase().contains("x-tenant=first"), "{seen:?}");
    assert!(seen[3].to_lowercase().contains("x-tenant=second x-number=r"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_share_a_session_only_when_their_headers_say_the_same_of_who_calls() {
    // Invariant P1.
    let setting = behind(json!(["builtin:number", "builtin:tenant"])).await;
    for id in ["1", "2"] {
        called(&setting, CallTool { request_id: id.into(), ..call("r_count", "t") }).await.unwrap();
    }
    let opened = setting.fake.opened.load(Ordering::SeqCst);
    setting.memory.edit(document(json!(["builtin:number"])));
    called(&setting, call("r_count", "t")).await.unwrap();
    // The session of the catalogue and the one of the thread, under the new list.
    assert_eq!(setting.fake.opened.load(Ordering::SeqCst), opened + 2);
    let sent = setting.fake.sent.lock().unwrap().clone();
    assert_eq!(sent.iter().map(|sent| sent.session_headers.len()).collect::<Vec<_>>(), [1, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_child_is_told_their_headers_in_meta_and_nothing_when_there_are_none() {
    // Contract 4.8.
    let setting = behind(json!(["builtin:tenant"])).await;
    called(&setting, call("a_count", "t")).await.unwrap();
    setting.memory.edit(document(json!(["builtin:plain"])));
    called(&setting, call("a_count", "t")).await.unwrap();
    let sent = setting.fake.sent.lock().unwrap().clone();
    assert_eq!(sent[0].meta, [("headers".to_owned(), r#"{"X-Tenant":"first"}"#.to_owned())]);
    assert!(sent[0].headers.is_empty() && sent[1].meta.is_empty(), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn one_may_answer_and_those_before_it_still_see_the_result() {
    // Contract 8.6, may return; 4.7, a ready message.
    let setting = behind(json!(["builtin:result", "builtin:answer", "builtin:later"])).await;
    let shape = Shape::Agent { neutralise: true };
    let answer = called(&setting, CallTool { shape, ..call("a_count", "t") }).await.unwrap();
    assert_eq!(answer.result.get(), r#"{"content":[],"replaced":true}"#);
    assert!(answer.session.is_none() && answer.agent.is_some());
    let seen = setting.interceptors.seen();
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen[2].starts_with("after result:") && seen[2].contains("of interceptor"), "{seen:?}");
    assert_eq!(calls(&setting), 0);
}

#[tokio::test(start_paused = true)]
async fn one_may_deny_and_nothing_is_sent() {
    let setting = behind(json!(["builtin:one", "builtin:deny", "builtin:later"])).await;
    let error = refused(&setting, call("a_count", "t")).await;
    assert_eq!(error.code, Code::Denied);
    assert!(error.detail.contains("`builtin:deny`") && error.detail.contains("not on Sundays"), "{error}");
    assert_eq!((setting.interceptors.seen().len(), calls(&setting)), (2, 0), "nobody is shown a result");
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_asked_fails_the_call_before_anything_is_sent() {
    // Architecture.md §10, unreachable at call time.
    for (entry, why) in [
        ("builtin:down", "cannot be reached"),
        ("builtin:panic", "`builtin:panic` panicked"),
        ("builtin:hang", "`builtin:hang` does not keep its deadline"),
        ("builtin:arguments-nonsense", "arguments that are no object"),
        ("builtin:answer-nonsense", "a result that is no object"),
    ] {
        let setting = behind(json!(["builtin:one", {"use": entry, "timeout_seconds": 2}])).await;
        let began = tokio::time::Instant::now();
        let error = refused(&setting, call("a_count", "t")).await;
        assert_eq!(error.code, Code::Unavailable, "{entry}: {error}");
        assert!(error.detail.contains(why) && error.detail.contains("was not called"), "{entry}: {error}");
        assert!(began.elapsed() < Duration::from_secs(4), "{entry}");
        assert_eq!(calls(&setting), 0, "{entry}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_one_cannot_be_shown_is_an_unknown_outcome_and_the_call_is_not_repeated() {
    // Invariant S2.
    for entry in ["builtin:deaf", "builtin:result-nonsense"] {
        let setting = behind(json!([entry])).await;
        let error = refused(&setting, call("a_count", "t")).await;
        assert_eq!((error.code, calls(&setting)), (Code::OutcomeUnknown, 1), "{entry}: {error}");
        assert!(error.detail.contains("may have had effects"), "{error}");
    }
    // Nothing was sent for this one.
    let setting = behind(json!(["builtin:deaf", "builtin:answer"])).await;
    assert_eq!(refused(&setting, call("a_count", "t")).await.code, Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_header_that_may_not_be_sent_denies_the_call_and_is_not_repeated() {
    // Contract 8.3; invariant O3. On stdio too (4.8).
    for (entry, what) in [("illegal", "X-Bad"), ("protocol", "Mcp-Session-Id"), ("many", "more than 64 headers")] {
        let setting = behind(json!([format!("builtin:{entry}")])).await;
        for tool in ["a_count", "r_count"] {
            let error = refused(&setting, call(tool, "t")).await;
            assert_eq!((error.code, calls(&setting)), (Code::Denied, 0), "{entry}: {error}");
            assert!(error.detail.contains(entry) && error.detail.contains(what), "{error}");
            assert!(!error.detail.contains("hunter22"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_is_shown_only_the_secrets_that_its_entry_lists() {
    // Architecture.md §10, interceptors receive; invariant O3.
    let setting = behind(json!(["builtin:one", {"use": "builtin:two", "secrets": ["key", "absent"]}])).await;
    let secrets = [("key", "k1"), ("other", "o1")].map(|(key, value)| (key.to_owned(), Secret::new(value)));
    let secrets = RequestSecrets(secrets.into());
    called(&setting, CallTool { secrets, ..call("a_count", "t") }).await.unwrap();
    let seen = setting.interceptors.seen();
    assert!(seen.iter().all(|line| line.contains("key=k1") == line.contains(" two:")), "{seen:?}");
    assert!(seen.iter().all(|line| !line.contains("o1")), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn each_server_has_its_own_instances_from_its_discovery_on() {
    // Contract 8.6, instances; 5.1, point 4.
    let setting = behind(json!(["builtin:one", "builtin:two"])).await;
    called(&setting, call("a_count", "t")).await.unwrap();
    assert_eq!(setting.interceptors.made(), ["a:one", "a:two"], "one that is not discovered never runs them");
    setting.servers_shown().await;
    assert_eq!(setting.interceptors.made(), ["r:one", "r:two"]);
    called(&setting, call("a_count", "u")).await.unwrap();
    setting.runtime.refresh_tools(&crate::fake::anybody(), None).await.unwrap();
    assert!(setting.interceptors.made().is_empty(), "a list that is asked for again makes no others");
    // Contract 5.3, interceptors changed: every server.
    setting.memory.edit(document(json!(["builtin:two"])));
    setting.servers_shown().await;
    assert_eq!(setting.interceptors.made(), ["a:two", "r:two"]);
    setting.interceptors.seen();
    called(&setting, call("a_count", "t")).await.unwrap();
    assert_eq!(setting.interceptors.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_leads_nowhere_or_wants_nothing_costs_itself_alone() {
    // Contract 8.6, builder raises, builder returns null.
    let setting = behind(json!(["builtin:broken", "builtin:unwilling", "builtin:one", 7])).await;
    called(&setting, call("a_count", "t")).await.unwrap();
    assert_eq!(setting.interceptors.made(), ["a:one"]);
    assert_eq!(setting.interceptors.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_python_path_that_an_edit_brings_in_leaves_the_last_good_document_in_force() {
    // Architecture.md §10, Python interceptors.
    let setting = behind(json!(["builtin:one"])).await;
    called(&setting, call("a_count", "t")).await.unwrap();
    setting.memory.edit(document(json!(["builtin:one", "pkg.auth:build"])));
    called(&setting, call("a_count", "t")).await.unwrap();
    let stale = setting.runtime.stale_config().unwrap();
    assert!(stale.reason.contains("$.mcpInterceptors[1]") && stale.reason.contains("grpc://host:port"), "{stale:?}");
    setting.memory.edit(document(json!(["builtin:one"])));
    called(&setting, call("a_count", "t")).await.unwrap();
    assert!(setting.runtime.stale_config().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_program_without_interceptors_refuses_servers_while_there_are_any() {
    let start = async |entries: &[&str]| {
        let fake = Arc::new(Fake::default());
        let interceptors = entries.iter().map(|entry| InterceptorEntry::of(*entry)).collect();
        let options = Options { interceptors, ..Options::default() };
        let outside = Outside::from(Arc::new(FakeConnector(fake.clone())));
        let runtime = Runtime::start(vec![server("a", |_| {})], options, outside, BootId::from("boot")).await.unwrap();
        (runtime.call_tool(call("a_count", "t")).await.map(|_| ()), fake.opened.load(Ordering::SeqCst))
    };
    let (refused, opened) = start(&["builtin:one"]).await;
    let error = refused.unwrap_err();
    assert!(error.detail.contains("this program can run none") && opened == 0, "{error}");
    assert!(start(&[]).await.0.is_ok());
}
