//! Personal connections: whose they are, how fresh, how many are held, and what a store that is away costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use caribou_core::bounds::MAX_PERSONAL_USERS;
use caribou_core::config::{IfMatch, Secret};
use caribou_core::failure::Code;
use caribou_core::ids::{BootId, Scope, UserId};
use caribou_ports::BoxFuture;
use caribou_ports::store::{Connections, Expected, Put, StoreError, StoredConnection};
use caribou_ports::vault::{NotOpened, Opened, Place, Vault};
use caribou_runtime::{CallTool, Options, Outside, Personal, Runtime};
use caribou_store::Memory;
use serde_json::{Map, Value, json};

use crate::fake::{Fake, FakeConnector, anybody, call, remote, server};
use crate::followed::Setting;

/// A store that can be away, and counts looks.
#[derive(Default)]
struct Kept {
    memory: Memory,
    is_away: AtomicBool,
    looks: AtomicUsize,
}

impl Kept {
    fn asked<'a, T: Send + 'a>(
        &self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("it is away".to_owned())) });
        }
        answer
    }
}

impl Connections for Kept {
    fn put(&self, one: StoredConnection, before: Expected, at_most: u32) -> BoxFuture<'_, Result<Put, StoreError>> {
        self.asked(self.memory.put(one, before, at_most))
    }

    fn delete(&self, user: UserId, name: String, before: Expected) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.asked(self.memory.delete(user, name, before))
    }

    fn of_user(&self, user: UserId) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>> {
        self.asked(self.memory.of_user(user))
    }

    fn page(&self, after: (String, String), limit: u32) -> BoxFuture<'_, Result<Vec<StoredConnection>, StoreError>> {
        self.asked(self.memory.page(after, limit))
    }

    fn reseal(&self, one: StoredConnection, sealed: Vec<u8>) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.asked(self.memory.reseal(one, sealed))
    }

    fn revision(&self, user: UserId) -> BoxFuture<'_, Result<i64, StoreError>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.asked(self.memory.revision(user))
    }
}

/// Encrypts nothing, but knows places.
struct Plain;

impl Vault for Plain {
    fn seal(&self, place: &Place, secret: &Secret) -> Vec<u8> {
        format!("{place:?}\n{}", secret.expose()).into_bytes()
    }

    fn open(&self, place: &Place, sealed: &[u8]) -> Result<Opened, NotOpened> {
        let text = String::from_utf8_lossy(sealed).into_owned();
        let text = text.strip_prefix(&format!("{place:?}\n")).ok_or(NotOpened::Damaged)?;
        Ok(Opened { secret: Secret::new(text), is_current: true })
    }
}

fn personal(kept: &Arc<Kept>) -> Option<Personal> {
    Some(Personal { connections: kept.clone(), vault: Arc::new(Plain), max_per_user: 3, stdio: None })
}

async fn replica(fake: &Arc<Fake>, kept: &Arc<Kept>) -> Runtime {
    let outside = Outside { personal: personal(kept), ..Outside::from(Arc::new(FakeConnector(fake.clone()))) };
    let servers = vec![server("shared", remote)];
    Runtime::start(servers, Options::default(), outside, BootId::from("boot")).await.unwrap()
}

fn definition(more: Value) -> Map<String, Value> {
    let mut definition = json!({ "url": "http://h/mcp" });
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    definition.as_object().unwrap().clone()
}

async fn put(runtime: &Runtime, user: &str, more: Value) -> String {
    let (caller, user) = (anybody(), user.into());
    let put = runtime.put_personal_connection(&caller, &user, "mine", definition(more), IfMatch::default());
    put.await.unwrap().runtime_name.as_str().to_owned()
}

async fn has(runtime: &Runtime, user: &str) -> bool {
    let listed = runtime.list_tools(&anybody(), &Scope::new(Some(user), None)).await.unwrap();
    listed.tools.iter().any(|tool| &*tool.name == "mine_count")
}

fn call_of(user: &str, name: &str) -> CallTool {
    CallTool { scope: Scope::new(Some(user), Some("t")), ..call(name, "t") }
}

async fn code(runtime: &Runtime, user: &str, name: &str) -> Option<Code> {
    runtime.call_tool(call_of(user, name)).await.err().map(|error| error.code)
}

#[tokio::test(start_paused = true)]
async fn a_change_on_one_replica_is_in_force_on_another_a_second_later() {
    let (fake, kept) = (Arc::new(Fake::default()), Arc::new(Kept::default()));
    let (here, there) = (replica(&fake, &kept).await, replica(&fake, &kept).await);
    assert!(!has(&there, "ann").await);
    put(&here, "ann", json!({})).await;
    assert!(has(&here, "ann").await, "at once");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(has(&there, "ann").await);
    assert_eq!(code(&there, "ann", "mine_count").await, None);
    here.delete_personal_connection(&anybody(), &"ann".into(), "mine", IfMatch::default()).await.unwrap();
    assert_eq!(code(&here, "ann", "mine_count").await, Some(Code::NotFound));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(code(&there, "ann", "mine_count").await, Some(Code::NotFound));
    assert!(!has(&there, "ann").await);
}

#[tokio::test(start_paused = true)]
async fn an_edit_closes_what_it_superseded_and_leaves_everybody_elses_open() {
    // Invariants G1 and P1: the sessions of another user, and of the deployment, live on.
    let (fake, kept) = (Arc::new(Fake::default()), Arc::new(Kept::default()));
    let runtime = replica(&fake, &kept).await;
    let before = put(&runtime, "ann", json!({})).await;
    put(&runtime, "bob", json!({})).await;
    for (user, name) in [("ann", "mine_count"), ("bob", "mine_count"), ("ann", "shared_count")] {
        assert_eq!(code(&runtime, user, name).await, None);
    }
    let after = put(&runtime, "ann", json!({ "headers": { "A": "1" } })).await;
    assert_ne!(before, after);
    // Until what is closing is gone.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let open: Vec<String> =
        runtime.sessions(&anybody()).await.iter().map(|session| session.server.to_string()).collect();
    assert!(open.len() == 2 && !open.contains(&before), "{open:?}");
    let seen = runtime.call_tool(call_of("ann", "mine_count")).await.unwrap().session.unwrap();
    assert_eq!(seen.server.as_str(), after);
}

#[tokio::test(start_paused = true)]
async fn a_look_is_made_once_a_second_and_none_for_a_tool_of_the_deployment() {
    let (fake, kept) = (Arc::new(Fake::default()), Arc::new(Kept::default()));
    let runtime = replica(&fake, &kept).await;
    for _ in 0..10 {
        assert_eq!(code(&runtime, "ann", "shared_count").await, None);
    }
    assert_eq!(kept.looks.load(Ordering::SeqCst), 0);
    put(&runtime, "ann", json!({})).await;
    has(&runtime, "ann").await;
    let looks = kept.looks.load(Ordering::SeqCst);
    for _ in 0..50 {
        assert!(has(&runtime, "ann").await);
    }
    assert_eq!(kept.looks.load(Ordering::SeqCst), looks);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_what_is_known_goes_on_and_the_deployment_always_does() {
    let (fake, kept) = (Arc::new(Fake::default()), Arc::new(Kept::default()));
    let runtime = replica(&fake, &kept).await;
    put(&runtime, "ann", json!({})).await;
    assert!(has(&runtime, "ann").await);
    kept.is_away.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(has(&runtime, "ann").await, "it was looked up before");
    assert_eq!(code(&runtime, "ann", "mine_count").await, None);

    let listed = runtime.list_tools(&anybody(), &Scope::new(Some("bob"), None)).await.unwrap();
    assert!(listed.tools.iter().all(|tool| tool.server.as_str() == "shared") && !listed.tools.is_empty());
    assert!(listed.failed.iter().any(|(_, reason)| reason.contains("cannot be read")), "{:?}", listed.failed);
    assert_eq!(code(&runtime, "bob", "shared_count").await, None);
    assert_eq!(code(&runtime, "bob", "mine_count").await, Some(Code::Unavailable), "nobody knows whether there is one");
    kept.is_away.store(false, Ordering::SeqCst);
    assert_eq!(code(&runtime, "bob", "mine_count").await, Some(Code::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_was_moved_to_another_row_counts_as_missing() {
    // Invariant O3.
    let (fake, kept) = (Arc::new(Fake::default()), Arc::new(Kept::default()));
    let runtime = replica(&fake, &kept).await;
    put(&runtime, "ann", json!({})).await;
    let stolen = kept.memory.of_user("ann".into()).await.unwrap().remove(0);
    let moved = StoredConnection { user: "bob".into(), ..stolen };
    assert_eq!(kept.memory.put(moved, Expected::Nothing, 3).await, Ok(Put::Stored));
    assert!(!has(&runtime, "bob").await);
    let shown = runtime.personal_connection(&anybody(), &"bob".into(), "mine").await.unwrap();
    assert!(shown.definition.is_none() && shown.problem.unwrap().contains("another row"));
}

#[tokio::test(start_paused = true)]
async fn a_bounded_number_of_users_is_held_and_nobody_with_a_call_in_flight_is_let_go_of() {
    // Invariant B1.
    let (fake, kept) = (Arc::new(Fake::default()), Arc::new(Kept::default()));
    let runtime = replica(&fake, &kept).await;
    put(&runtime, "busy", json!({})).await;
    let busy = runtime.clone();
    let hanging = tokio::spawn(async move { busy.call_tool(call_of("busy", "mine_hang")).await.is_ok() });
    put(&runtime, "first", json!({})).await;
    assert_eq!(code(&runtime, "first", "mine_count").await, None);
    for number in 0..MAX_PERSONAL_USERS {
        has(&runtime, &format!("user{number}")).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!hanging.is_finished(), "its call goes on");
    let open: Vec<String> =
        runtime.sessions(&anybody()).await.iter().map(|session| session.scope.user.to_string()).collect();
    assert_eq!(open, ["busy"], "the one that asked first was let go of, with its session");
    assert_eq!(code(&runtime, "first", "mine_count").await, None, "and comes back when it asks again");
    hanging.abort();
}

#[tokio::test(start_paused = true)]
async fn a_reset_and_another_chain_of_interceptors_close_what_users_have_open() {
    // Invariant G1; contract 5.3, interceptor chain; 5.7; 8.6: personal servers stand behind the chain like all others.
    let kept = Arc::new(Kept::default());
    let world = |outside| Outside { personal: personal(&kept), ..outside };
    let setting = Setting::within(json!({}), Options::default(), world).await;
    let name = put(&setting.runtime, "ann", json!({})).await;
    let answered_by = async || {
        let called = setting.runtime.call_tool(call_of("ann", "mine_count")).await.unwrap();
        called.result.get().split(',').next().unwrap().to_owned()
    };
    let first = answered_by().await;
    assert_eq!(answered_by().await, first);
    setting.runtime.reset(&anybody()).await.unwrap();
    let second = answered_by().await;
    assert_ne!(second, first);
    assert!(setting.interceptors.seen().is_empty());

    let chain = json!({ "mcpServers": {}, "mcpInterceptors": ["builtin:one"] });
    setting.memory.edit(chain.to_string());
    let third = answered_by().await;
    assert!(third != second && third != first, "{third}");
    assert_eq!(setting.interceptors.made(), [format!("{name}:one")]);
    assert_eq!(setting.interceptors.seen().len(), 2, "it was asked before and shown the result after");
    while setting.runtime.sessions(&anybody()).await.len() > 1 {
        tokio::time::advance(Duration::from_millis(1)).await;
    }
}
