//! What models are offered and may call: routing, deferral, search, promotion (contract 9) and guardrails
//! (architecture.md §10), under virtual time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::fake::{Fake, FakeConnector, anybody, call, remote, server, start};
use caribou_core::config::{Routing, RoutingMode, ServerConfig, ToolOverride};
use caribou_core::failure::Code;
use caribou_core::guardrails::{Guardrails, Written};
use caribou_core::ids::{BootId, Scope, ServerName};
use caribou_core::tool::Promotion;
use caribou_ports::BoxFuture;
use caribou_ports::store::{Promotions, StoreError};
use caribou_runtime::{ListedTools, Options, Outside, Runtime};

fn scope(thread: &str) -> Scope {
    Scope::new(Some("ann"), Some(thread))
}

fn deferring() -> Options {
    Options { tool_search: true, ..Options::default() }
}

fn guarded(allowed: Option<&[&str]>, denied: &[&str]) -> Guardrails {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (guardrails, unusable) = Guardrails::of(Written {
        enabled: true,
        fail_closed: true,
        provider: Some("allowlist".to_owned()),
        allowed_tools: allowed.map(owned),
        denied_tools: owned(denied),
    });
    assert_eq!(unusable, None);
    guardrails
}

fn with_tools(tools: &[&str]) -> Arc<Fake> {
    let tools = tools.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(Fake { tools: Mutex::new(tools), ..Fake::default() })
}

fn prefer(priority: u8, keywords: &[&str]) -> ToolOverride {
    ToolOverride {
        mode: Some(RoutingMode::Prefer),
        priority: Some(priority),
        keywords: Some(keywords.iter().map(|keyword| (*keyword).to_owned()).collect()),
        required_scopes: None,
    }
}

/// `a` is preferred for orders, `b` before it for orders and invoices; `c` has keywords and is off.
fn routed(config: &mut ServerConfig) {
    let off = ToolOverride { mode: Some(RoutingMode::Off), ..prefer(100, &["orders"]) };
    config.tools = vec![
        ("a".into(), prefer(10, &["orders"])),
        ("b".into(), prefer(20, &["orders", "invoices"])),
        ("c".into(), off),
    ];
}

fn names<'n>(names: impl IntoIterator<Item = &'n Arc<str>>) -> Vec<&'n str> {
    names.into_iter().map(|name| &**name).collect()
}

async fn list(runtime: &Runtime, thread: &str) -> ListedTools {
    runtime.list_tools(&anybody(), &scope(thread)).await.unwrap()
}

async fn refused(runtime: &Runtime, tool: &str, thread: &str) -> String {
    let error = runtime.call_tool(call(tool, thread)).await.map(|_| ()).unwrap_err();
    assert_eq!(error.code, Code::Denied, "{error}");
    error.detail
}

#[tokio::test(start_paused = true)]
async fn each_tool_carries_its_effective_routing_on_every_transport() {
    // Contract 9.1 and 1.3: by the raw name, before the prefix; an override replaces only what it writes.
    let fake = with_tools(&["get", "set"]);
    let configure = |config: &mut ServerConfig| {
        config.routing = Routing { mode: RoutingMode::Prefer, priority: 5, keywords: vec!["k".into()] };
        config.tools = vec![("set".into(), ToolOverride { priority: Some(9), ..ToolOverride::default() })];
    };
    let both = vec![
        server("s", configure),
        server("h", |config| {
            remote(config);
            configure(config);
        }),
    ];
    let runtime = start(&fake, both, Options::default()).await;
    let listed = list(&runtime, "t").await;
    let seen: Vec<_> =
        listed.tools.iter().map(|tool| (&*tool.name, tool.routing.mode, tool.routing.priority)).collect();
    let prefer = RoutingMode::Prefer;
    assert_eq!(seen, [("s_get", prefer, 5), ("s_set", prefer, 9), ("h_get", prefer, 5), ("h_set", prefer, 9)]);
    assert!(listed.tools.iter().all(|tool| tool.routing.keywords == ["k"]));
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_deferred_there_is_no_search_and_every_tool_may_be_called() {
    // Contract 9.3, deferred set: disabled, or no tool at all.
    let runtime = start(&with_tools(&["a"]), vec![server("s", routed)], Options::default()).await;
    let empty = start(&with_tools(&[]), vec![server("s", routed)], deferring()).await;
    for runtime in [&runtime, &empty] {
        let listed = list(runtime, "t").await;
        assert_eq!((listed.deferred.len(), listed.catalog), (0, None));
        assert_eq!(runtime.search_tools(&anybody(), &scope("t"), "a").await.unwrap_err().code, Code::NotFound);
        let promoted = runtime.promote_tools(&anybody(), &scope("t"), "orders").await.unwrap();
        assert_eq!((promoted.names.len(), promoted.catalog), (0, None));
    }
    assert!(runtime.call_tool(call("s_a", "t")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_deferred_tool_is_refused_until_its_thread_has_fetched_it() {
    // Contract 9.3, visibility and promotion state; P1: nobody else's thread sees the promotion.
    let fake = with_tools(&["b", "a"]);
    let runtime = start(&fake, vec![server("s", |_| ())], deferring()).await;
    let listed = list(&runtime, "t").await;
    assert_eq!(names(&listed.deferred), ["s_a", "s_b"]);
    assert_eq!(listed.tools.len(), 2, "what is deferred is listed all the same");
    let detail = refused(&runtime, "s_a", "t").await;
    assert!(detail.contains("`s_a`") && detail.contains("tool_search"), "{detail}");
    assert_eq!(fake.calls.load(Ordering::SeqCst), 0);

    let found = runtime.search_tools(&anybody(), &scope("t"), "select:s_a").await.unwrap();
    assert_eq!(found.tools[0].tool.get(), r#"{"name":"a","inputSchema":{}}"#);
    assert_eq!(Some(found.catalog), listed.catalog);
    assert!(runtime.call_tool(call("s_a", "t")).await.is_ok());
    assert_eq!(names(&list(&runtime, "t").await.deferred), ["s_b"]);
    refused(&runtime, "s_b", "t").await;
    refused(&runtime, "s_a", "other").await;
    let bob = runtime.list_tools(&anybody(), &Scope::new(Some("bob"), Some("t"))).await.unwrap();
    assert_eq!(bob.deferred.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_finds_nothing_promotes_nothing_and_an_endless_query_is_refused() {
    // Contract 9.4, no match.
    let runtime = start(&with_tools(&["a"]), vec![server("s", |_| ())], deferring()).await;
    for query in ["", " ", "+", "nothing like it", "select:a"] {
        assert!(runtime.search_tools(&anybody(), &scope("t"), query).await.unwrap().tools.is_empty(), "{query}");
    }
    assert_eq!(list(&runtime, "t").await.deferred.len(), 1);
    let endless = "a".repeat(5_000);
    assert_eq!(runtime.search_tools(&anybody(), &scope("t"), &endless).await.unwrap_err().code, Code::Invalid);
}

#[tokio::test(start_paused = true)]
async fn promotions_of_another_catalogue_do_not_count() {
    // Contract 9.3, promotion state.
    let fake = with_tools(&["a"]);
    let runtime = start(&fake, vec![server("s", |_| ())], deferring()).await;
    let before = runtime.search_tools(&anybody(), &scope("t"), "select:s_a").await.unwrap().catalog;
    fake.tools.lock().unwrap().push("b".into());
    runtime.refresh_tools(&anybody(), Some(&ServerName::from("s"))).await.unwrap();
    assert_eq!(names(&list(&runtime, "t").await.deferred), ["s_a", "s_b"]);
    refused(&runtime, "s_a", "t").await;
    let after = runtime.search_tools(&anybody(), &scope("t"), "select:s_b").await.unwrap().catalog;
    assert_ne!(before, after);
    assert_eq!(names(&list(&runtime, "t").await.deferred), ["s_a"]);
}

#[tokio::test(start_paused = true)]
async fn a_users_words_promote_the_best_tools_and_searches_add_to_them() {
    // Contract 9.5, and 9.3: an ordered union of both.
    let options = Options { auto_promote_top_k: 1, ..deferring() };
    let runtime = start(&with_tools(&["a", "b", "c", "d"]), vec![server("s", routed)], options).await;
    for silent in ["", "nothing of the kind"] {
        assert!(runtime.promote_tools(&anybody(), &scope("t"), silent).await.unwrap().names.is_empty());
    }
    let promoted = runtime.promote_tools(&anybody(), &scope("t"), "Where are my ORDERS?").await.unwrap();
    assert_eq!(names(&promoted.names), ["s_b"]);
    assert_eq!(promoted.catalog, list(&runtime, "t").await.catalog);
    assert!(runtime.call_tool(call("s_b", "t")).await.is_ok(), "without any search");
    runtime.search_tools(&anybody(), &scope("t"), "select:s_d").await.unwrap();
    assert_eq!(names(&list(&runtime, "t").await.deferred), ["s_a", "s_c"]);
}

#[tokio::test(start_paused = true)]
async fn the_prompt_lists_deferred_names_before_the_hints() {
    // Contract 9.2 and 9.3, prompt.
    let servers = || vec![server("s", routed)];
    let runtime = start(&with_tools(&["b", "a", "c"]), servers(), deferring()).await;
    let text = runtime.prompt_section(&anybody()).await.unwrap();
    let listed = "<available-deferred-tools>\ns_a\ns_b\ns_c\n</available-deferred-tools>\n\n<mcp_routing_hints>\n";
    assert!(text.starts_with(listed), "{text}");
    assert!(text.find("orders, or invoices:").unwrap() < text.find("orders:").unwrap(), "{text}");
    assert!(text.contains("`tool_search` to fetch `s_a`") && text.ends_with("</mcp_routing_hints>"), "{text}");

    let plain =
        start(&with_tools(&["a"]), servers(), Options::default()).await.prompt_section(&anybody()).await.unwrap();
    assert_eq!(
        plain,
        "<mcp_routing_hints>\nWhen the user's request involves orders:\n  prefer `s_a`.\n</mcp_routing_hints>"
    );
    let silent = start(&with_tools(&["c"]), servers(), Options::default()).await;
    assert_eq!(silent.prompt_section(&anybody()).await.unwrap(), "");
}

#[tokio::test(start_paused = true)]
async fn guardrails_keep_a_tool_from_every_call_list_search_and_prompt() {
    // architecture.md §10, guardrails; contract 9.3: a denied tool stays denied after search and promotion.
    let fake = with_tools(&["a", "b"]);
    let options = Options { guardrails: guarded(None, &["s_b"]), ..deferring() };
    let runtime = start(&fake, vec![server("s", routed)], options).await;
    let listed = list(&runtime, "t").await;
    assert_eq!((names(&listed.denied), names(&listed.deferred)), (vec!["s_b"], vec!["s_a"]));
    assert!(listed.tools.iter().all(|tool| &*tool.name == "s_a"));
    assert!(runtime.search_tools(&anybody(), &scope("t"), "select:s_b").await.unwrap().tools.is_empty());
    assert!(runtime.promote_tools(&anybody(), &scope("t"), "invoices").await.unwrap().names.is_empty());
    assert!(!runtime.prompt_section(&anybody()).await.unwrap().contains("s_b"));
    let detail = refused(&runtime, "s_b", "t").await;
    assert!(detail.contains("`s_b`") && detail.contains("denied_tools"), "{detail}");
    assert_eq!(fake.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn guardrails_that_leave_nothing_leave_no_search_and_start_no_server_for_a_call() {
    let fake = with_tools(&["a"]);
    let options = Options { guardrails: guarded(Some(&[]), &[]), ..deferring() };
    let runtime = start(&fake, vec![server("s", |_| ())], options).await;
    let detail = refused(&runtime, "s_a", "t").await;
    assert!(detail.contains("allowed_tools"), "{detail}");
    assert_eq!(fake.opened.load(Ordering::SeqCst), 0);
    let listed = list(&runtime, "t").await;
    assert!(listed.tools.is_empty() && listed.catalog.is_none());
    assert_eq!(runtime.search_tools(&anybody(), &scope("t"), "a").await.unwrap_err().code, Code::NotFound);
}

/// Promotions that outlive a replica, in a store that can be away.
#[derive(Default)]
struct Shared {
    threads: Mutex<HashMap<Scope, Promotion>>,
    away: AtomicBool,
}

impl Shared {
    fn answer<T>(&self, ask: impl FnOnce(&mut HashMap<Scope, Promotion>) -> T) -> Result<T, StoreError> {
        match self.away.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("it is away".into())),
            false => Ok(ask(&mut self.threads.lock().unwrap())),
        }
    }
}

impl Promotions for Shared {
    fn promote(&self, scope: Scope, promotion: Promotion) -> BoxFuture<'_, Result<(), StoreError>> {
        let kept = self.answer(|threads| {
            let before = threads.remove(&scope);
            threads.insert(scope, promotion.after(before));
        });
        Box::pin(async { kept })
    }

    fn promoted(&self, scope: Scope) -> BoxFuture<'_, Result<Option<Promotion>, StoreError>> {
        let promotion = self.answer(|threads| threads.get(&scope).cloned());
        Box::pin(async { promotion })
    }
}

async fn stored(store: &Arc<Shared>, options: Options) -> Runtime {
    let fake = with_tools(&["a"]);
    let outside = Outside { promotions: Some(store.clone()), ..Outside::from(Arc::new(FakeConnector(fake))) };
    let servers = vec![server("s", |_| ()), server("other", |_| ())];
    Runtime::start(servers, options, outside, BootId::from("boot")).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_promotion_counts_on_a_replica_that_has_just_started() {
    let store = Arc::default();
    stored(&store, deferring()).await.search_tools(&anybody(), &scope("t"), "select:s_a").await.unwrap();
    let fresh = stored(&store, deferring()).await;
    assert!(fresh.call_tool(call("s_a", "t")).await.is_ok(), "although only one of its servers was known");
    refused(&fresh, "other_a", "t").await;
}

#[tokio::test(start_paused = true)]
async fn without_its_store_a_replica_that_defers_says_so_and_any_other_goes_on() {
    let store = Arc::new(Shared { away: AtomicBool::new(true), ..Shared::default() });
    let deferring = stored(&store, deferring()).await;
    let plain = stored(&store, Options::default()).await;
    let called = deferring.call_tool(call("s_a", "t")).await.map(|_| ()).unwrap_err();
    let listed = deferring.list_tools(&anybody(), &scope("t")).await.unwrap_err();
    let searched = deferring.search_tools(&anybody(), &scope("t"), "a").await.unwrap_err();
    for error in [called, listed, searched] {
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.detail.contains("it is away"), "{error}");
    }
    assert!(plain.call_tool(call("s_a", "t")).await.is_ok());
    assert!(plain.list_tools(&anybody(), &scope("t")).await.is_ok());
}
