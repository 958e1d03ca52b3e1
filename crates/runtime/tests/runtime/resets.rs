//! Resets and changes that reach other replicas (durability.md §4; invariants G1, G2), under virtual time: two replicas,
//! one store that may be away, and hints that may lie.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::config::{IfMatch, Source, parse};
use caribou_core::failure::Code;
use caribou_core::ids::BootId;
use caribou_core::launch::Allowlist;
use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::BoxFuture;
use caribou_ports::config_source::ConfigSource as _;
use caribou_ports::reset_signal::{HeardReset, HeardResets, ResetSignal, SignalError};
use caribou_ports::store::{Generations, Renewal, Replica, Replicas as _, StoreError};
use caribou_runtime::{ConfigChange, Configuration, Options, Outside, Reach, Resets, Runtime, StoredConfig};
use caribou_store::Memory;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::sleep;

use crate::fake::{Fake, FakeConnector, anybody, call};

/// Without a signal that works (durability.md §4).
const BOUND: Duration = Duration::from_millis(1_500);

const BOOTS: [&str; 2] = ["019ad000-0000-7000-8000-000000000001", "019ad000-0000-7000-8000-000000000002"];

/// A store that may be away.
#[derive(Clone, Default)]
struct Store {
    memory: Memory,
    is_away: Arc<AtomicBool>,
}

impl Store {
    fn asked<'s, T: Send + 's>(
        &'s self,
        ask: impl FnOnce(&'s Memory) -> BoxFuture<'s, Result<T, StoreError>>,
    ) -> BoxFuture<'s, Result<T, StoreError>> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("it is away".to_owned())) });
        }
        ask(&self.memory)
    }

    fn be_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }
}

impl Generations for Store {
    fn bump(&self, scope: ResetScope) -> BoxFuture<'_, Result<ResetGeneration, StoreError>> {
        self.asked(|memory| memory.bump(scope))
    }

    fn generations(&self) -> BoxFuture<'_, Result<Vec<(ResetScope, ResetGeneration)>, StoreError>> {
        self.asked(|memory| memory.generations())
    }

    fn confirm(&self, boot: BootId, scope: ResetScope, at: ResetGeneration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.asked(|memory| memory.confirm(boot, scope, at))
    }

    fn confirmed(
        &self,
        scope: ResetScope,
    ) -> BoxFuture<'_, Result<Vec<(BootId, Option<ResetGeneration>)>, StoreError>> {
        self.asked(|memory| memory.confirmed(scope))
    }
}

/// What tells, of the truth or not.
#[derive(Clone)]
struct Wire(broadcast::Sender<(ResetScope, ResetGeneration)>);

struct Listener(broadcast::Receiver<(ResetScope, ResetGeneration)>);

impl ResetSignal for Wire {
    fn tell(&self, scope: ResetScope, generation: ResetGeneration) -> BoxFuture<'_, Result<(), SignalError>> {
        let _ = self.0.send((scope, generation));
        Box::pin(async { Ok(()) })
    }

    fn listen(&self, _: Vec<ResetScope>) -> BoxFuture<'_, Result<Box<dyn HeardResets>, SignalError>> {
        let listener: Box<dyn HeardResets> = Box::new(Listener(self.0.subscribe()));
        Box::pin(async { Ok(listener) })
    }
}

impl HeardResets for Listener {
    fn next(&mut self) -> BoxFuture<'_, Result<HeardReset, SignalError>> {
        Box::pin(async {
            let told = self.0.recv().await.map_err(|_| SignalError("over".to_owned()))?;
            Ok(HeardReset::Generations(vec![told]))
        })
    }
}

/// Two replicas with the servers `a` and `b`, configured in the store.
struct Pair {
    store: Store,
    replicas: Vec<(Runtime, Arc<Fake>)>,
}

impl Pair {
    async fn new(signal: Option<&Wire>) -> Self {
        let store = Store::default();
        let servers = json!({ "mcpServers": { "a": { "command": "a" }, "b": { "command": "b" } } });
        let mut replicas = Vec::new();
        for boot in BOOTS {
            store.memory.begin(Replica::alone(boot.into(), "h", "0.1.0")).await.unwrap();
            let lease = Duration::from_secs(3_600);
            let renewal = Renewal { boot: boot.into(), lease, configurations: Vec::new(), load: 0.0 };
            store.memory.renew_lease(renewal).await.unwrap();
            let source = StoredConfig::new(Arc::new(store.memory.clone()), Path::new("/etc"), Arc::new(|_| None));
            source.import(servers.to_string().into_bytes()).await.unwrap();
            let stored = source.load().await.unwrap().unwrap();
            let document = parse(&Source { file: &stored.file, text: &stored.text }, &|_| None).unwrap();
            let signal = signal.map(|wire| Arc::new(wire.clone()) as Arc<dyn ResetSignal>);
            let configuration = Configuration {
                file: source.place(),
                source: Arc::new(source),
                variables: Arc::new(|_| None),
                document: document.clone(),
                allowlist: Allowlist::from_env(&|_| Some("a,b".to_owned())),
                unsupported: Default::default(),
                resets: Some(Resets { store: Arc::new(store.clone()), signal }),
            };
            let fake = Arc::new(Fake::default());
            let outside =
                Outside { configuration: Some(configuration), ..Outside::from(Arc::new(FakeConnector(fake.clone()))) };
            let runtime = Runtime::start(document.servers, Options::default(), outside, boot.into()).await.unwrap();
            replicas.push((runtime, fake));
        }
        Self { store, replicas }
    }

    /// The child of `server` that answers at this replica, and how often it was called.
    async fn answer(&self, replica: usize, server: &str) -> Result<(u64, u64), Code> {
        let called = self.replicas[replica].0.call_tool(call(&format!("{server}_count"), "t")).await;
        called.map(|called| serde_json::from_str(called.result.get()).unwrap()).map_err(|error| error.code)
    }

    async fn pids(&self) -> [u64; 4] {
        let mut pids = [0; 4];
        for (at, (replica, server)) in [(0, "a"), (0, "b"), (1, "a"), (1, "b")].into_iter().enumerate() {
            pids[at] = self.answer(replica, server).await.unwrap().0;
        }
        pids
    }

    async fn change(&self, replica: usize, change: ConfigChange) {
        let caller = anybody();
        self.replicas[replica].0.change_config(&caller, change, IfMatch::default()).await.unwrap();
    }
}

/// Which of two are the same.
fn same(before: [u64; 4], after: [u64; 4]) -> [bool; 4] {
    std::array::from_fn(|at| before[at] == after[at])
}

#[tokio::test(start_paused = true)]
async fn a_reset_reaches_the_other_replica_once_and_both_say_so() {
    let pair = Pair::new(None).await;
    let before = pair.pids().await;
    let done = pair.replicas[0].0.reset(&anybody()).await.unwrap();
    assert_eq!((done.reach, done.confirmed.len(), done.unconfirmed.len()), (Reach::Cluster, 2, 0));
    let after = pair.pids().await;
    assert_eq!(same(before, after), [false; 4]);
    sleep(BOUND * 10).await;
    assert_eq!(pair.pids().await, after, "and no second time");
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_heard_at_once_where_there_is_a_signal() {
    let wire = Wire(broadcast::Sender::new(16));
    let pair = Pair::new(Some(&wire)).await;
    let before = pair.pids().await;
    let done = pair.replicas[1].0.reset(&anybody()).await.unwrap();
    assert_eq!(done.unconfirmed, []);
    assert_eq!(same(before, pair.pids().await), [false; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_confirm_is_named() {
    let pair = Pair::new(None).await;
    let third = BootId::from("019ad000-0000-7000-8000-000000000003");
    pair.store.memory.begin(Replica::alone(third.clone(), "h", "0.1.0")).await.unwrap();
    let lease = Duration::from_secs(60);
    let renewal = Renewal { boot: third.clone(), lease, configurations: Vec::new(), load: 0.0 };
    pair.store.memory.renew_lease(renewal).await.unwrap();
    let done = pair.replicas[0].0.reset(&anybody()).await.unwrap();
    assert_eq!((done.confirmed.len(), done.unconfirmed), (2, vec![third]));
}

#[tokio::test(start_paused = true)]
async fn a_change_reaches_the_other_replica_and_touches_nothing_else() {
    // Contract 5.3.
    let pair = Pair::new(None).await;
    let before = pair.pids().await;
    let other = json!({ "command": "a", "args": ["other"] });
    let Value::Object(server) = other else { unreachable!() };
    pair.change(0, ConfigChange::Replace { name: "a".to_owned(), server }).await;
    sleep(BOUND).await;
    let after = pair.pids().await;
    assert_eq!(same(before, after), [false, true, false, true]);
    sleep(BOUND * 10).await;
    assert_eq!(pair.pids().await, after);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_removed_and_added_again_between_two_looks_is_another_one() {
    // Contract 5.8: the other replica never sees a document without it.
    let pair = Pair::new(None).await;
    let before = pair.pids().await;
    pair.change(0, ConfigChange::Remove { name: "a".to_owned() }).await;
    let Value::Object(again) = json!({ "a": { "command": "a" } }) else { unreachable!() };
    pair.change(0, ConfigChange::Add(again)).await;
    sleep(BOUND).await;
    assert_eq!(same(before, pair.pids().await), [false, true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn what_lies_about_generations_costs_nothing_while_the_store_answers() {
    // Invariant G2: a flushed Redis, a copy of long ago.
    let wire = Wire(broadcast::Sender::new(16));
    let pair = Pair::new(Some(&wire)).await;
    for _ in 0..2 {
        pair.replicas[0].0.reset(&anybody()).await.unwrap();
    }
    let stored = pair.store.memory.generations().await.unwrap();
    let now = stored.into_iter().find(|(scope, _)| *scope == ResetScope::Global).unwrap().1;
    let before = pair.pids().await;
    for lie in [ResetGeneration { counter: 1, ..now }, ResetGeneration { origin: [9; 16], counter: 77 }, now] {
        wire.tell(ResetScope::Global, lie).await.unwrap();
    }
    sleep(BOUND).await;
    assert_eq!(pair.pids().await, before);

    // While it does not, an extra reset is better than a missed one.
    pair.store.be_away(true);
    wire.tell(ResetScope::Global, ResetGeneration { origin: [9; 16], counter: 78 }).await.unwrap();
    sleep(BOUND).await;
    let believed = pair.pids().await;
    assert_eq!(same(before, believed), [false; 4]);
    pair.store.be_away(false);
    sleep(BOUND).await;
    let back = pair.pids().await;
    assert_eq!(same(believed, back), [false; 4], "the store says otherwise");
    sleep(BOUND * 10).await;
    assert_eq!(pair.pids().await, back);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_what_is_open_is_served_for_a_minute_and_then_refused() {
    let pair = Pair::new(None).await;
    let before = pair.pids().await;
    pair.store.be_away(true);
    for _ in 0..55 {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(pair.pids().await, before);
    }
    sleep(Duration::from_secs(7)).await;
    assert_eq!(pair.answer(0, "a").await, Err(Code::Unavailable));
    assert_eq!(pair.replicas[0].0.reset(&anybody()).await.map(|_| ()).map_err(|e| e.code), Err(Code::Unavailable));
    pair.store.be_away(false);
    sleep(BOUND).await;
    assert_eq!(pair.pids().await, before, "nothing was reset meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_reset_while_one_replica_is_cut_off_is_done_when_it_is_back() {
    let pair = Pair::new(None).await;
    let before = pair.pids().await;
    pair.store.be_away(true);
    // By whoever is not.
    pair.store.memory.bump(ResetScope::Global).await.unwrap();
    sleep(BOUND * 4).await;
    assert_eq!(pair.pids().await, before);
    pair.store.be_away(false);
    sleep(BOUND).await;
    assert_eq!(same(before, pair.pids().await), [false; 4]);
}
