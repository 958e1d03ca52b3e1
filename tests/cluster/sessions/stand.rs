//! Everything around the callers of a run: database, diary, replicas; and how a fault is done and looked at.

use std::collections::BTreeSet;
use std::time::Duration;

use caribou_tests::Home;
use caribou_tests::counter_server::{Bearing, Diary, boot_clock_ns};
use caribou_tests::seeded::Seeded;
use futures::StreamExt as _;
use futures::future::join_all;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::task::JoinSet;

use super::balancer::Balancer;
use super::history::{Call, Window};
use super::replicas::{Plan, Replicas};
use super::verdict::{Verdict, Witnesses};
use super::witness;
use crate::records::Records;
use crate::scale::Scale;
use crate::schedule::Beats;

/// Sessions that are opened at the same time before a run begins.
const AT_ONCE: usize = 16;

/// How soon a caller who was told that nothing was done calls again.
const BETWEEN: Duration = Duration::from_millis(100);

/// How long a session may be away, at the very most.
const PATIENCE: Duration = Duration::from_secs(40);

/// Longer than any run.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Sessions that are looked at in each fault.
const LOOKED_AT: usize = 6;

/// A stand with its replicas.
pub(crate) struct Stand {
    pub(crate) scale: Scale,
    pub(crate) records: Records,
    pub(crate) diary: Diary,
    pub(crate) replicas: Replicas,
    _home: Home,
}

impl Stand {
    /// So many replicas, with these lines of settings besides.
    pub(crate) async fn open(count: usize, settings: &str) -> Self {
        Self::open_with(count, settings, Bearing::default()).await
    }

    /// The same with servers that behave so.
    pub(crate) async fn open_with(count: usize, settings: &str, bearing: Bearing) -> Self {
        Self::set_up(count, settings, bearing, Vec::new()).await
    }

    /// The same with these variables around the processes of the seats, in turn.
    pub(crate) async fn open_around(count: usize, settings: &str, around: Vec<Vec<(String, String)>>) -> Self {
        Self::set_up(count, settings, Bearing::default(), around).await
    }

    async fn set_up(count: usize, settings: &str, bearing: Bearing, around: Vec<Vec<(String, String)>>) -> Self {
        let (scale, home) = (Scale::read(), Home::new());
        let records = Records::postgres(&scale).await;
        witness::watch(&records).await;
        let diary = Diary::new(&home);
        let replicas =
            Replicas::start(count, Plan { around, ..Plan::new(&scale, &records, &diary, settings, bearing) }).await;
        Self { scale, records, diary, replicas, _home: home }
    }

    /// The way in.
    pub(crate) fn balancer(&self) -> Balancer {
        self.replicas.balancer().clone()
    }

    /// Opens the session of every thread, each by the door that comes next.
    pub(crate) async fn warm(&self, threads: &[String]) {
        let balancer = self.balancer();
        let opened = futures::stream::iter(threads).map(|thread| balancer.count(thread, Duration::ZERO));
        let calls: Vec<Call> = opened.buffer_unordered(AT_ONCE).collect().await;
        let failed: Vec<_> = calls.iter().filter(|call| call.counted().is_none()).collect();
        assert!(failed.is_empty(), "{} sessions were not opened, such as {:?}", failed.len(), failed[0]);
    }

    /// What is known now; printed.
    pub(crate) async fn judge(&self, title: &str) -> Verdict {
        let history = self.replicas.balancer().history();
        let verdict = Witnesses { diary: &self.diary, history, records: &self.records }.hear().await;
        println!("{title}\n{verdict}");
        verdict
    }

    /// A fault begins with this replica: whose sessions it holds.
    pub(crate) fn window(&self, seat: usize) -> Window {
        let threads = self.replicas.balancer().history().held_by(self.replicas.boot(seat));
        let now = boot_clock_ns();
        Window { seat, threads, from_ns: now, to_ns: u64::MAX }
    }

    /// Calls in some of these threads until another life than `boot` answers in each.
    pub(crate) async fn taken_over(&self, threads: &BTreeSet<String>, boot: &str, since: &Moment) -> TakenOver {
        let balancer = self.balancer();
        let looked_at: Vec<&str> = threads.iter().take(LOOKED_AT).map(String::as_str).collect();
        let calls = join_all(looked_at.iter().map(|thread| served_by_another(&balancer, thread, boot))).await;
        let rows_ms = witness::taken_after(&self.records, &looked_at, &since.database).await;
        let lives = self.diary.lives();
        let after = |ns: u64| ns.saturating_sub(since.boot_clock_ns) / 1_000_000;
        let began = |call: &Call| Some(after(lives.get(&call.counted()?.life)?.began_ns));
        let children_ms = calls.iter().filter_map(began).collect();
        TakenOver { rows_ms, children_ms, answers_ms: calls.iter().map(|call| after(call.returned_ns)).collect() }
    }

    /// Now, by both clocks.
    pub(crate) async fn now(&self) -> Moment {
        Moment { database: witness::clock(&self.records).await, boot_clock_ns: boot_clock_ns() }
    }
}

/// A moment before a fault.
pub(crate) struct Moment {
    database: String,
    boot_clock_ns: u64,
}

/// How long after a fault sessions were taken over, in milliseconds: when somebody else had the row, when its child
/// began, and when a caller had an answer from it.
#[derive(Debug, Default)]
pub(crate) struct TakenOver {
    pub(crate) rows_ms: Vec<u64>,
    pub(crate) children_ms: Vec<u64>,
    pub(crate) answers_ms: Vec<u64>,
}

async fn served_by_another(balancer: &Balancer, thread: &str, boot: &str) -> Call {
    let mut tries = Beats::every(BETWEEN, PATIENCE);
    let mut last = None;
    while tries.next().await {
        let call = balancer.count(thread, Duration::ZERO).await;
        if call.counted().is_some_and(|counted| counted.replica != boot) {
            return call;
        }
        last = Some(call);
    }
    panic!("nobody took {thread} over from {boot} within {PATIENCE:?}: {last:?}");
}

/// What callers do: so many calls a minute, each in a thread by chance, a share `slow` of which takes `slow_takes`.
pub(crate) struct Load {
    pub(crate) threads: Vec<String>,
    pub(crate) per_minute: u32,
    pub(crate) slow: f64,
    pub(crate) slow_takes: Duration,
}

impl Load {
    /// Calls until `over` is dropped and everybody has an answer.
    pub(crate) async fn run(self, balancer: Balancer, mut chance: Seeded, mut over: oneshot::Receiver<()>) {
        let mut beats = Beats::every(Duration::from_secs(60) / self.per_minute, LONGEST);
        let mut callers = JoinSet::new();
        while over.try_recv() == Err(TryRecvError::Empty) && beats.next().await {
            let thread = chance.pick(&self.threads).clone();
            let takes = if chance.happens(self.slow) { self.slow_takes } else { Duration::ZERO };
            let balancer = balancer.clone();
            callers.spawn(async move { drop(balancer.count(&thread, takes).await) });
            while callers.try_join_next().is_some() {}
        }
        callers.join_all().await;
    }
}

/// Names of threads.
pub(crate) fn threads(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("t{n}")).collect()
}
