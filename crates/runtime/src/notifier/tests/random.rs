//! A thousand events, receivers and replicas that do anything: each event is told, or visibly given up, and every key has
//! one effect (invariant N1).

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use caribou_core::notification::Phase;
use caribou_core::task::TaskLimits;
use caribou_ports::event_sink::{Launched, Run, Told};
use caribou_store::Memory;

use super::receiver::{Receiver, Take};
use super::replica::{Replica, delivery, key, tells, until};

/// Longer than any delivery of these may take.
const LONG: Duration = Duration::from_secs(48 * 3_600);

/// Somewhere below `below`, the same for the same `of`.
fn chance(of: impl Hash, below: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish() % below
}

fn fails(seed: u64, run: &str) -> bool {
    chance((seed, "run", run), 10) < 3
}

fn receiver(seed: u64) -> Receiver {
    let take = move |told: &Told, before: u32| match chance((seed, "take", told.key.to_string(), before), 100) {
        0..15 => Take::Say(Launched::Unclear("503".to_owned())),
        15..25 => Take::Say(Launched::Busy),
        25..35 => Take::LaunchSilently,
        35..38 => Take::Hang,
        // Only a receiver that has launched nothing may say so.
        38..42 if before == 0 => Take::Say(Launched::Gone("404".to_owned())),
        42..50 if before == 0 => Take::Say(Launched::Refused("418".to_owned())),
        _ => Take::Launch,
    };
    let look = move |run: &str, before: u32| match chance((seed, "look", run, before), 10) {
        0..3 => Run::Running,
        3 => Run::Error("500".to_owned()),
        _ if fails(seed, run) => Run::Failed("error".to_owned()),
        _ => Run::Succeeded,
    };
    Receiver::new(take, look)
}

/// Lets replicas come and die until every event is told or given up. How many are given up.
async fn tell_all(seed: u64, events: u32, deaths: u32) -> usize {
    let (store, receiver) = (Memory::default(), receiver(seed));
    let limits = TaskLimits { max_concurrent_polls: 32, ..TaskLimits::default() };
    let mut replicas = Vec::new();
    for name in ["a", "b", "c"] {
        replicas.push(Replica::start(&store, &receiver, name, limits).await);
    }
    for number in 0..events {
        tells(&store, number).await;
    }
    for death in 0..deaths {
        let asked = receiver.seen().launches.len();
        let is_on = async || receiver.seen().launches.len() > asked;
        // Near the end nothing may happen any more.
        let _ = tokio::time::timeout(Duration::from_secs(30), until("a launch", Duration::from_secs(60), is_on)).await;
        let victim = usize::try_from(chance((seed, "victim", death), 3)).unwrap();
        replicas[victim].kill();
        replicas[victim] = Replica::start(&store, &receiver, &format!("{seed} {death}"), limits).await;
    }
    let mut dead = 0;
    for number in 0..events {
        let mut given_up = None;
        let is_settled = async || {
            let left = delivery(&store, number).await;
            left.is_none_or(|left| left.phase == Phase::DeadLetter)
        };
        until("told or given up", LONG, is_settled).await;
        if let Some(left) = delivery(&store, number).await {
            dead += 1;
            given_up = left.error;
            assert!(given_up.is_some(), "nobody can tell why event {number} was given up");
        }
        let seen = receiver.seen();
        let runs = (0..10).filter_map(|attempt| seen.runs.get(&key(number, 1, attempt)));
        let good = runs.filter(|run| !fails(seed, run)).count();
        let wanted = if given_up.is_some() { good <= 1 } else { good == 1 };
        assert!(wanted, "seed {seed}: {good} runs of event {number} did what was to be done");
    }
    replicas.iter().for_each(Replica::kill);
    dead
}

#[tokio::test(start_paused = true)]
async fn a_thousand_events_are_told_once_or_visibly_given_up() {
    // Invariant N1.
    let dead = tell_all(1, 1_000, 20).await;
    assert!((1..500).contains(&dead), "{dead} are given up");
}

/// Fifty short histories: two hundred in all, parted so that cores share them.
async fn fifty_short_histories(from: u64) {
    let mut dead = 0;
    for seed in from..from + 50 {
        dead += tell_all(seed, 5, 2).await;
    }
    assert!((1..125).contains(&dead), "{dead} are given up");
}

#[tokio::test(start_paused = true)]
async fn short_histories_tell_each_event_once() {
    // Invariant N1.
    fifty_short_histories(0).await;
}

#[tokio::test(start_paused = true)]
async fn more_short_histories_tell_each_event_once() {
    fifty_short_histories(50).await;
}

#[tokio::test(start_paused = true)]
async fn still_more_short_histories_tell_each_event_once() {
    fifty_short_histories(100).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_short_histories_tell_each_event_once() {
    fifty_short_histories(150).await;
}
