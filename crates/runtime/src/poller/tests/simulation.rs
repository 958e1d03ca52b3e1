//! Generated histories in virtual time: replicas come, crash and stop, tasks are cancelled, the remote fails, answers
//! late and lies; whatever happens, every task ends once and as the remote said.

use std::collections::BTreeMap;
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::task::{Status, TaskLimits};
use caribou_ports::store::{CancelRequested, Notifications as _, Tasks as _};
use caribou_store::Memory;
use tokio::time::sleep;

use super::remote::{Remote, Said};
use super::replica::*;

/// Histories that are always run.
const SEEDS: u64 = 200;

/// Tasks of one history.
const TASKS: u8 = 6;

/// xorshift64*: the same history for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// What the remote says of one task, ending in an end; which.
fn story(dice: &mut Dice) -> (Vec<Said>, Status) {
    let mut says: Vec<Said> = (0..dice.below(6))
        .map(|_| match dice.below(5) {
            0 => Said::Failure,
            1 => Said::Error(Code::Unavailable),
            2 => Said::Error(Code::OutcomeUnknown),
            3 => Said::After(Duration::from_secs(dice.below(8)), Status::Working),
            _ => Said::Is(Status::Working),
        })
        .collect();
    let end = if dice.below(4) == 0 { Status::Failed } else { Status::Completed };
    says.push(Said::Is(end));
    (says, end)
}

/// One history. What was bitten: takeovers of a crashed replica's tasks show in the number of polls.
async fn history(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (store, cancelled) = (Memory::default(), Status::Cancelled);
    let cancel_takes = Duration::from_millis(dice.below(1_500));
    let remote = Remote { cancel_takes, cancel_ends: Some(cancelled), ..Remote::default() };
    let limits = TaskLimits {
        lease_seconds: 10,
        poll_interval_seconds: 2,
        max_poll_backoff_seconds: 8,
        ..TaskLimits::default()
    };
    let mut replicas = vec![Replica::start(&store, &remote, "r0", limits).await];
    let (mut ends, mut requested) = (BTreeMap::new(), Vec::new());
    for number in 1..=TASKS {
        let (says, end) = story(&mut dice);
        remote.says(&remote_id(number), says);
        ends.insert(number, end);
        submitted(&store, number).await;
    }
    for step in 1..=12 {
        sleep(Duration::from_millis(dice.below(4_000))).await;
        match dice.below(5) {
            0 if replicas.len() < 3 => {
                replicas.push(Replica::start(&store, &remote, &format!("r{step}"), limits).await);
            }
            1 if !replicas.is_empty() => {
                replicas.swap_remove(usize::try_from(dice.below(replicas.len() as u64)).unwrap()).kill();
            }
            2 if replicas.len() > 1 => replicas.remove(0).stop(&store).await,
            3 => {
                let number = u8::try_from(dice.below(TASKS.into())).unwrap() + 1;
                if store.request_cancel(id(number), None).await.unwrap() == CancelRequested::Requested {
                    requested.push(number);
                }
            }
            _ => {}
        }
    }
    replicas.push(Replica::start(&store, &remote, "last", limits).await);
    for (number, end) in ends {
        let done = ended(&store, number, seconds(300)).await;
        let is_asked = requested.contains(&number);
        let status = done.snapshot.status;
        // A request may come after the answer that ended the task was settled, never before.
        assert!(status == if is_asked { cancelled } else { end }, "seed {seed}, task {number}: {status:?}");
        let events = store.events(id(number), 0, 100).await.unwrap();
        let last = events.iter().filter(|event| event.status.is_terminal()).count();
        assert_eq!(last, 1, "seed {seed}, task {number}: one end (invariants T2, T3)");
        assert!(events.windows(2).all(|two| two[1].seq == two[0].seq + 1), "seed {seed}: no gap");
        let overlaps = remote.job(&remote_id(number), |job| job.overlaps);
        assert_eq!(overlaps, 0, "seed {seed}, task {number}: one cancel at a time");
    }
    replicas.iter().for_each(Replica::kill);
}

/// A quarter of all histories, so that they use the cores there are.
async fn quarter(part: u64) {
    for seed in (0..SEEDS).filter(|seed| seed % 4 == part) {
        history(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_every_task_ends_once_and_as_the_remote_said() {
    // Invariants C1, C2, T2, T3, T4.
    quarter(0).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_every_task_ends_once_in_the_second_quarter_too() {
    quarter(1).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_every_task_ends_once_in_the_third_quarter_too() {
    quarter(2).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_every_task_ends_once_in_the_last_quarter_too() {
    quarter(3).await;
}
