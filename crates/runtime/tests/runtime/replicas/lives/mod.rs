//! Lives of replicas that stand still, lose the store or one another, and die, under virtual time: whatever happens, a key
//! has one child at a time (invariant S3), children are started within trust (L1), and no call is made twice (S2).
//!
//! A life that stands still is one whose ports do not answer; its guard goes on. Each fence between two owners is taken
//! down once, to see that the histories notice.

mod child;
mod guard;
mod line;
mod stand;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::holding::LeaseProfile;
use caribou_core::ids::Epoch;
use caribou_runtime::CallTool;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use self::stand::Stand;
use super::random::Dice;
use crate::fake::call;

const SEEDS: u64 = 200;
const STEPS: usize = 60;
const THREADS: u64 = 4;
const SEATS: usize = 3;

/// The times of all lives.
const PROFILE: LeaseProfile = LeaseProfile::FAST;

/// How long a caller waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// After the last fault everything works again: a lease, the gap, and a moment.
const SETTLES: Duration = Duration::from_secs(15);

/// A fence taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// Nobody ends the children of whoever is not trusted.
    NoGuard,
    /// A session is taken by what was read, without holding what was read.
    FenceWithoutLock,
    /// A session is taken from whoever's lease is over by the store's clock, dead or not.
    StealOnTime,
    /// Trust is not looked at again after the store was waited for.
    NoLookAfterWait,
}

/// What one history showed.
#[derive(Default)]
struct Outcome {
    violations: Vec<String>,
    /// Children, and of these those that a guard ended.
    lived: (usize, usize),
    /// Sessions that were held at more than their first epoch.
    taken_over: usize,
    answered: usize,
}

/// What was answered, or why not.
type Answer = (u64, Result<(Epoch, u64), (Code, String)>);

/// Calls that are under way, and what became of the others.
#[derive(Default)]
struct Calls(JoinSet<Answer>);

impl Calls {
    fn make(&mut self, stand: &Stand, door: usize, thread: u64) {
        let runtime = stand.seats[door].runtime.clone();
        let wanted = CallTool { timeout: Some(PATIENCE), ..call("s_count", &format!("t{thread}")) };
        self.0.spawn(async move {
            let called = runtime.call_tool(wanted).await;
            let answer = called.map_err(|error| (error.code, error.to_string())).map(|called| {
                let (_, count): (u64, u64) = serde_json::from_str(called.result.get()).unwrap();
                (called.session.unwrap().epoch, count)
            });
            (thread, answer)
        });
    }

    async fn all(self) -> Vec<Answer> {
        let all = timeout(Duration::from_secs(600), self.0.join_all()).await;
        all.expect("a call that nobody answers")
    }
}

/// Does something bad.
async fn harm(stand: &mut Stand, dice: &mut Dice) {
    let at = usize::try_from(dice.next(SEATS as u64)).unwrap();
    let long = Duration::from_millis(9_000 + dice.next(12_000));
    let crossings = usize::try_from(1 + dice.next(6)).unwrap();
    match dice.next(6) {
        0 => stand.seats[at].borders.pause(long),
        1 | 2 => stand.seats[at].borders.plan(None, Some((crossings, long))),
        3 => stand.seats[at].cut.pause(long),
        4 => stand.kill(at).await,
        _ => {
            stand.jumped.store(true, Ordering::SeqCst);
            let jumped = stand.jumped.clone();
            tokio::spawn(async move {
                sleep(Duration::from_secs(4)).await;
                jumped.store(false, Ordering::SeqCst);
            });
        }
    }
}

async fn history(seed: u64, mutant: Option<Mutant>) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut stand = Stand::new(SEATS, mutant).await;
    sleep(Duration::from_secs(2)).await;
    let mut calls = Calls::default();
    for _ in 0..STEPS {
        stand.follow().await;
        let door = usize::try_from(dice.next(SEATS as u64)).unwrap();
        let thread = dice.next(THREADS);
        match dice.next(12) {
            0 => harm(&mut stand, &mut dice).await,
            1..=4 => sleep(Duration::from_millis(dice.next(4_000))).await,
            5 => (0..SEATS).for_each(|door| calls.make(&stand, door, thread)),
            _ => calls.make(&stand, door, thread),
        }
    }
    let answers = calls.all().await;
    // Nothing is planned any more, and what stood still goes on.
    stand.seats.iter().for_each(|seat| seat.borders.plan(None, None));
    sleep(Duration::from_secs(25)).await;
    stand.follow().await;
    let mut violations = works_again(&stand).await;
    violations.extend(stand.book.violations());
    judged(seed, answers, violations, stand.book.lived())
}

/// Each thread is answered at each door.
async fn works_again(stand: &Stand) -> Vec<String> {
    let until = Instant::now() + SETTLES;
    let mut wrong = Vec::new();
    for thread in 0..THREADS {
        for seat in &stand.seats {
            let mut last = String::new();
            while Instant::now() < until {
                match seat.runtime.call_tool(call("s_count", &format!("t{thread}"))).await {
                    Ok(_) => {
                        last.clear();
                        break;
                    }
                    Err(error) => last = error.to_string(),
                }
                sleep(Duration::from_millis(200)).await;
            }
            if !last.is_empty() {
                wrong.push(format!("thread {thread} is not answered at {}: {last}", seat.boot));
            }
        }
    }
    wrong
}

fn judged(seed: u64, answers: Vec<Answer>, mut violations: Vec<String>, lived: (usize, usize)) -> Outcome {
    let mut made = BTreeSet::new();
    let mut taken_over = BTreeSet::new();
    let mut answered = 0;
    for (thread, answer) in answers {
        match answer {
            Ok((epoch, count)) => {
                answered += 1;
                if !made.insert((thread, epoch.0, count)) {
                    violations.push(format!("thread {thread}: call {count} of {epoch:?} was answered twice"));
                }
                if epoch.0 > 1 {
                    taken_over.insert(thread);
                }
            }
            Err((Code::Unavailable | Code::Timeout | Code::OutcomeUnknown | Code::SessionEnded | Code::Busy, _)) => {}
            Err((code, why)) => violations.push(format!("thread {thread}: {code:?}: {why}")),
        }
    }
    violations.iter_mut().for_each(|violation| *violation = format!("seed {seed}: {violation}"));
    Outcome { violations, lived, taken_over: taken_over.len(), answered }
}

fn under_virtual_time(seed: u64, mutant: Option<Mutant>) -> Outcome {
    // With all that its replicas would go on doing, each history ends with its own runtime.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(history(seed, mutant))
}

#[test]
fn whatever_stands_still_or_dies_a_key_has_one_child_and_no_call_is_made_twice() {
    let (mut born, mut killed, mut taken_over, mut answered) = (0, 0, 0, 0);
    for seed in 1..=SEEDS {
        let outcome = under_virtual_time(seed, None);
        assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
        born += outcome.lived.0;
        killed += outcome.lived.1;
        taken_over += outcome.taken_over;
        answered += outcome.answered;
    }
    println!("{born} children, {killed} of them killed by a guard; {taken_over} taken over; {answered} calls answered");
    // The faults did bite.
    assert!(
        born > 1_000 && killed > 200 && taken_over > 200 && answered > 2_000,
        "{born} {killed} {taken_over} {answered}"
    );
}

/// The histories notice that a fence is down.
fn found(mutant: Mutant, word: &str) {
    let is_it = |violation: &String| violation.contains(word);
    let found = (1..=SEEDS).find(|seed| under_virtual_time(*seed, Some(mutant)).violations.iter().any(is_it));
    assert!(found.is_some(), "{mutant:?} is not noticed");
}

#[test]
fn without_a_guard_two_children_live_at_once() {
    found(Mutant::NoGuard, "two children");
}

#[test]
fn taken_without_its_lock_a_session_has_two_children() {
    found(Mutant::FenceWithoutLock, "two children");
}

#[test]
fn taken_on_time_alone_a_session_has_two_children() {
    found(Mutant::StealOnTime, "two children");
}

#[test]
fn without_a_look_after_the_wait_a_child_is_started_without_trust() {
    found(Mutant::NoLookAfterWait, "without trust");
}
