//! Random histories of a cluster under virtual time: calls at any door, replicas that are rolled, cables that are cut and
//! mended, threads that are closed. Whatever happens, a key has one child at a time (invariant S3), its epochs only grow
//! (L2), and the calls of one epoch count without a gap and without a double (S2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::{Epoch, Scope};
use caribou_ports::BoxFuture;
use caribou_ports::mcp::{
    CallError, Connector, Disconnect, OpenError, OpenSession, RawRequest, Session, SessionFacts, TaskQuestion,
    ToolCall, ToolListing,
};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::World;
use crate::fake::{Fake, FakeConnector, anybody, call};

const SEEDS: u64 = 200;
const STEPS: usize = 40;
const THREADS: u64 = 4;

/// Children that are alive, by whose they are, over all replicas.
#[derive(Clone, Default)]
pub(super) struct Alive(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    alive: HashMap<String, usize>,
    /// The most that were alive at once of one key.
    most: usize,
}

impl Alive {
    fn born(&self, label: &str) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = counted.alive.entry(label.to_owned()).or_default();
        *alive += 1;
        let alive = *alive;
        counted.most = counted.most.max(alive);
    }

    fn dead(&self, label: &str) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.alive.get_mut(label).unwrap() -= 1;
    }

    fn most(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).most
    }
}

/// Opens children that are counted. Those of the catalogue are each replica's own.
pub(super) struct Counting {
    pub(super) fake: Arc<Fake>,
    pub(super) alive: Alive,
}

impl Connector for Counting {
    fn open(&self, request: OpenSession) -> BoxFuture<'static, Result<Arc<dyn Session>, OpenError>> {
        let (inner, alive, label) = (FakeConnector(self.fake.clone()), self.alive.clone(), request.label.clone());
        Box::pin(async move {
            let is_counted = label.contains("ann:");
            if is_counted {
                alive.born(&label);
            }
            match inner.open(request).await {
                Ok(session) if is_counted => {
                    Ok(Arc::new(CountedSession { session, alive, label, is_dead: Arc::default() }) as Arc<dyn Session>)
                }
                Ok(session) => Ok(session),
                Err(error) => {
                    if is_counted {
                        alive.dead(&label);
                    }
                    Err(error)
                }
            }
        })
    }
}

struct CountedSession {
    session: Arc<dyn Session>,
    alive: Alive,
    label: String,
    is_dead: Arc<Mutex<bool>>,
}

impl Session for CountedSession {
    fn facts(&self) -> &SessionFacts {
        self.session.facts()
    }

    fn call_tool(&self, call: ToolCall) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        self.session.call_tool(call)
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallError>> {
        self.session.request(request)
    }

    fn task_questions(&self, task_id: &str) -> BoxFuture<'_, Result<Vec<TaskQuestion>, CallError>> {
        self.session.task_questions(task_id)
    }

    fn answer_task(&self, task: &str, name: &str, answer: Box<RawValue>) -> BoxFuture<'_, Result<bool, CallError>> {
        self.session.answer_task(task, name, answer)
    }

    fn list_tools(&self) -> BoxFuture<'_, Result<ToolListing, CallError>> {
        self.session.list_tools()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (closing, alive, label, is_dead) =
            (self.session.close(), self.alive.clone(), self.label.clone(), self.is_dead.clone());
        Box::pin(async move {
            closing.await;
            if !std::mem::replace(&mut *is_dead.lock().unwrap(), true) {
                alive.dead(&label);
            }
        })
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        self.session.ended()
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }
}

/// One seed's choices.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed * 2 + 1)
    }

    pub(super) fn next(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What was answered of each thread, in order.
type Answers = HashMap<(u64, Epoch), Vec<u64>>;

async fn history(seed: u64) {
    let mut world = World::plain(&["a", "b", "c"]).await;
    let (mut dice, mut answers, mut epochs) = (Dice::new(seed), Answers::new(), HashMap::<u64, Epoch>::new());
    let (mut cut, mut rolled) = (None, 0);
    for _ in 0..STEPS {
        let (door, thread) = (usize::try_from(dice.next(3)).unwrap(), dice.next(THREADS));
        let runtime = world.replicas[door].runtime.clone();
        match dice.next(12) {
            0 => {
                let scope = Scope::new(Some("ann"), Some(&format!("t{thread}")));
                // A replica that is cut off does not hear of it.
                let closed = runtime.close_sessions(&anybody(), &scope, None).await;
                assert!(closed.is_ok() || cut.is_some(), "seed {seed}: {closed:?}");
            }
            1 if rolled < 4 => {
                rolled += 1;
                world.roll(door, &format!("later-{rolled}")).await;
            }
            2 if cut.is_none() => {
                cut = Some(world.replicas[door].boot.clone());
                world.network.cut(&world.replicas[door].boot);
            }
            3 | 4 => {
                if let Some(boot) = cut.take() {
                    world.network.mend(&boot);
                }
            }
            5 => tokio::time::sleep(Duration::from_millis(dice.next(3_000))).await,
            _ => {
                let began = Instant::now();
                match runtime.call_tool(call("s_count", &format!("t{thread}"))).await {
                    Ok(called) => {
                        let seen = called.session.unwrap();
                        let before = epochs.insert(thread, seen.epoch);
                        assert!(before.is_none_or(|before| before <= seen.epoch), "seed {seed}: an epoch went back");
                        let (_, count): (u64, u64) = serde_json::from_str(called.result.get()).unwrap();
                        answers.entry((thread, seen.epoch)).or_default().push(count);
                    }
                    Err(error) => {
                        let is_told = matches!(error.code, Code::Unavailable | Code::Timeout);
                        assert!(cut.is_some() && is_told, "seed {seed}: {error} after {:?}", began.elapsed());
                    }
                }
            }
        }
    }
    for ((thread, epoch), counts) in answers {
        let whole: Vec<u64> = (1..=u64::try_from(counts.len()).unwrap()).collect();
        assert_eq!(counts, whole, "seed {seed}: thread {thread} at {epoch:?}");
    }
    assert_eq!(world.alive.most(), 1, "seed {seed}: two children of one key at once");
}

#[test]
fn whatever_happens_a_key_has_one_child_and_its_calls_are_made_once() {
    for seed in 1..=SEEDS {
        // With all that its replicas would go on doing, each history ends with its own runtime.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(history(seed));
    }
}
