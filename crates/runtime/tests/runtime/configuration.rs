//! What an edit of the configuration touches, and what it does not (contract 5.3 to 5.8; invariant G1), under virtual
//! time and with a document in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::fake::{Fake, FakeConnector, call};
use caribou_core::config::{self, ETag, IfMatch, Source};
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Scope};
use caribou_core::launch::Allowlist;
use caribou_ports::BoxFuture;
use caribou_ports::config_source::{ConfigSource, ConfigSourceError, ConfigText, Edit};
use caribou_runtime::{Configuration, Options, Outside, Runtime};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A document in memory.
#[derive(Default)]
struct Memory {
    text: Mutex<Vec<u8>>,
    changed: AtomicBool,
}

impl Memory {
    fn edit(&self, text: impl Into<Vec<u8>>) {
        *self.text.lock().unwrap() = text.into();
        self.changed.store(true, Ordering::SeqCst);
    }

    fn stored(&self) -> ConfigText {
        let text = self.text.lock().unwrap().clone();
        ConfigText { file: PathBuf::from("/etc/caribou/extensions_config.json"), etag: ETag::of(&text), text }
    }
}

impl ConfigSource for Memory {
    fn has_changed(&self) -> bool {
        self.changed.load(Ordering::SeqCst)
    }

    fn load(&self) -> BoxFuture<'static, Result<Option<ConfigText>, ConfigSourceError>> {
        self.changed.store(false, Ordering::SeqCst);
        let stored = self.stored();
        Box::pin(async { Ok(Some(stored)) })
    }

    fn replace(&self, condition: IfMatch, edit: Edit) -> BoxFuture<'static, Result<ConfigText, ConfigSourceError>> {
        let stored = self.stored();
        let replaced = if condition.allows(Some(stored.etag)) {
            edit(&stored.text).map_err(ConfigSourceError::Refused).map(|text| {
                *self.text.lock().unwrap() = text;
                self.stored()
            })
        } else {
            Err(ConfigSourceError::Stale { etag: stored.etag })
        };
        Box::pin(async { replaced })
    }

    fn changed(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

struct Setting {
    fake: Arc<Fake>,
    memory: Arc<Memory>,
    runtime: Runtime,
}

impl Setting {
    async fn new(servers: Value) -> Self {
        Self::with(servers, Options::default()).await
    }

    async fn with(servers: Value, options: Options) -> Self {
        let fake = Arc::new(Fake::default());
        let memory = Arc::new(Memory::default());
        memory.edit(document(&servers));
        let stored = memory.load().await.unwrap().unwrap();
        let source = Source { file: &stored.file, text: &stored.text };
        let parsed = config::parse(&source, &|_| None).unwrap();
        let configuration = Configuration {
            source: memory.clone(),
            variables: Arc::new(|_| None),
            document: parsed.clone(),
            file: stored.file.clone(),
            allowlist: Allowlist::default(),
        };
        let outside =
            Outside { configuration: Some(configuration), ..Outside::from(Arc::new(FakeConnector(fake.clone()))) };
        let boot = BootId::from("boot");
        let runtime = Runtime::start(parsed.servers, options, outside, boot).await.unwrap();
        Self { fake, memory, runtime }
    }

    /// Opens one session with each server, and says which child answers.
    async fn pids(&self, servers: &[&str]) -> BTreeMap<String, String> {
        let mut pids = BTreeMap::new();
        for server in servers {
            let called = self.runtime.call_tool(call(&format!("{server}_count"), "t")).await.unwrap();
            let pid = called.result.get().split(',').next().unwrap().to_owned();
            pids.insert((*server).to_owned(), pid);
        }
        pids
    }

    async fn servers_shown(&self) -> BTreeSet<String> {
        let listed = self.runtime.list_tools(&Scope::new(None, None)).await.unwrap();
        listed.tools.iter().map(|tool| tool.server.to_string()).collect()
    }
}

fn document(servers: &Value) -> Vec<u8> {
    json!({ "mcpServers": servers }).to_string().into_bytes()
}

#[tokio::test(start_paused = true)]
async fn an_untouched_server_keeps_its_session_and_its_tool_objects() {
    // Contract 5.3, reuse; 4.4, connection change of one server.
    let setting = Setting::new(json!({"a": {"command": "a"}, "b": {"command": "b"}})).await;
    let before = setting.pids(&["a", "b"]).await;
    let listed = setting.runtime.list_tools(&Scope::new(None, None)).await.unwrap();
    setting.memory.edit(document(&json!({"b": {"command": "other"}, "a": {"command": "a"}})));
    let after = setting.pids(&["a", "b"]).await;
    assert_eq!(before["a"], after["a"]);
    assert_ne!(before["b"], after["b"]);
    let again = setting.runtime.list_tools(&Scope::new(None, None)).await.unwrap();
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
    setting.runtime.reset().await.unwrap();
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
        let listed = setting.runtime.list_tools(&Scope::new(None, None)).await.unwrap();
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
        async move { runtime.list_tools(&Scope::new(None, None)).await }
    });
    while setting.fake.opening.load(Ordering::SeqCst) == 0 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    setting.memory.edit(document(&json!({"a": {"command": "other", "tool_name_prefix": false}})));
    let shown = setting.runtime.list_tools(&Scope::new(None, None)).await.unwrap();
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
    let _ = setting.runtime.read_config().await.unwrap();
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
    setting.runtime.reset().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_ne!(setting.pids(&["a"]).await, before);
    assert_eq!(hanging.await.unwrap().unwrap_err().code, Code::OutcomeUnknown);
}

/// One random edit of the document.
#[derive(Clone, Debug)]
enum RandomEdit {
    Command(usize, u8),
    Description(usize, u8),
    Remove(usize),
    Restore(usize),
    Enable(usize, bool),
    Reorder,
}

fn random_edit(servers: usize) -> impl Strategy<Value = RandomEdit> {
    prop_oneof![
        (0..servers, any::<u8>()).prop_map(|(at, to)| RandomEdit::Command(at, to % 3)),
        (0..servers, any::<u8>()).prop_map(|(at, to)| RandomEdit::Description(at, to)),
        (0..servers).prop_map(RandomEdit::Remove),
        (0..servers).prop_map(RandomEdit::Restore),
        (0..servers, any::<bool>()).prop_map(|(at, on)| RandomEdit::Enable(at, on)),
        Just(RandomEdit::Reorder),
    ]
}

const SERVERS: usize = 50;

fn name(at: usize) -> String {
    format!("s{at:02}")
}

fn apply(servers: &mut serde_json::Map<String, Value>, edit: &RandomEdit) {
    match edit {
        RandomEdit::Command(at, to) => {
            if let Some(server) = servers.get_mut(&name(*at)) {
                server["command"] = json!(format!("c{to}"));
            }
        }
        RandomEdit::Description(at, to) => {
            if let Some(server) = servers.get_mut(&name(*at)) {
                server["description"] = json!(format!("d{to}"));
            }
        }
        RandomEdit::Remove(at) => drop(servers.shift_remove(&name(*at))),
        RandomEdit::Restore(at) => drop(servers.entry(name(*at)).or_insert_with(|| json!({"command": "c0"}))),
        RandomEdit::Enable(at, on) => {
            if let Some(server) = servers.get_mut(&name(*at)) {
                server["enabled"] = json!(on);
            }
        }
        RandomEdit::Reorder => servers.reverse_order(),
    }
}

trait ReverseOrder {
    fn reverse_order(&mut self);
}

impl ReverseOrder for serde_json::Map<String, Value> {
    fn reverse_order(&mut self) {
        let reversed: Vec<(String, Value)> = std::mem::take(self).into_iter().rev().collect();
        self.extend(reversed);
    }
}

/// What makes up the connection of a server that takes part; `None` = it does not.
fn connection(servers: &serde_json::Map<String, Value>, server: &str) -> Option<Value> {
    let server = servers.get(server)?;
    (server["enabled"] != json!(false)).then(|| server["command"].clone())
}

proptest! {
    // 100 histories of 100 edits.
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_edits_close_the_sessions_they_must_and_no_others(
        edits in proptest::collection::vec(random_edit(SERVERS), 100)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let all: serde_json::Map<String, Value> =
                (0..SERVERS).map(|at| (name(at), json!({"command": "c0"}))).collect();
            let setting = Setting::new(Value::Object(all.clone())).await;
            let (mut servers, mut pids) = (all, BTreeMap::new());
            for edit in &edits {
                let before = servers.clone();
                apply(&mut servers, edit);
                setting.memory.edit(document(&Value::Object(servers.clone())));
                let on: Vec<String> =
                    servers.keys().filter(|server| connection(&servers, server).is_some()).cloned().collect();
                // The catalogue is that of one whole document.
                assert_eq!(setting.servers_shown().await, on.iter().cloned().collect());
                let on: Vec<&str> = on.iter().map(String::as_str).collect();
                let now = setting.pids(&on).await;
                for (server, pid) in &now {
                    let same = connection(&before, server) == connection(&servers, server);
                    if let Some(old) = pids.get(server) {
                        assert_eq!(old == pid, same, "{server} after {edit:?}");
                    }
                }
                pids = now;
            }
            setting.runtime.stop().await;
            assert_eq!(setting.fake.alive.load(Ordering::SeqCst), 0);
        });
    }
}
