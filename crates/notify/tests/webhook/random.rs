//! Two thousand events to a receiver that does anything: each is told, or visibly given up (invariant N1).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex};

use caribou_core::notification::{After, Delivery, Happened, Phase, Step};
use caribou_core::task::TaskLimits;
use caribou_notify::Webhook;
use caribou_ports::event_sink::EventSink as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::receiver::{Answer, Asked, receiver};
use crate::{told, webhook};

const EVENTS: u32 = 2_000;

/// Launches under way at the same time.
const AT_ONCE: usize = 16;

/// Steps within which every delivery must have ended: chance lets none go on for longer.
const MOST_STEPS: u32 = 200;

/// Somewhere below `below`, the same for the same `of`.
fn chance(of: impl Hash, below: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (0x9e37_79b9_u64, of).hash(&mut hasher);
    hasher.finish() % below
}

/// What the receiver knows of one key.
#[derive(Default)]
struct Known {
    asked: u32,
    body: Vec<u8>,
    /// Whether a run was launched for it.
    has_run: bool,
}

#[derive(Default)]
struct Book {
    keys: HashMap<String, Known>,
    look_ups: u32,
    lost: u32,
    repeats: u32,
    changed_bodies: u32,
}

fn fails(run: &str) -> bool {
    chance(("run", run), 10) < 3
}

impl Book {
    fn answer(&mut self, asked: &Asked) -> Answer {
        let id = asked.headers["webhook-id"].clone();
        if asked.method == "GET" {
            self.look_ups += 1;
            let run = asked.path.rsplit('/').next().unwrap();
            return match chance(("look", self.look_ups), 10) {
                0..3 => said("running"),
                3 => Answer::With(500, String::new()),
                _ if fails(run) => said("error"),
                _ => said("success"),
            };
        }
        let known = self.keys.entry(id.clone()).or_default();
        let before = std::mem::replace(&mut known.body, asked.body.clone());
        self.repeats += u32::from(before == asked.body);
        self.changed_bodies += u32::from(!before.is_empty() && before != asked.body);
        known.asked += 1;
        let run = format!("run-{:x}", chance(("name", &id), u64::MAX));
        match chance(("launch", &id, known.asked), 100) {
            0..20 => Answer::With(500, String::new()),
            20..30 => Answer::With(409, String::new()),
            // Only a receiver that has launched nothing may say so.
            30..33 if !known.has_run => Answer::With(404, String::new()),
            33..36 if !known.has_run => Answer::With(422, String::new()),
            36..41 if !known.has_run => Answer::With(418, String::new()),
            41..51 => {
                known.has_run = true;
                self.lost += 1;
                if known.asked.is_multiple_of(2) { Answer::Torn } else { Answer::Dropped }
            }
            _ => {
                known.has_run = true;
                Answer::With(202, format!(r#"{{"run_id":"{run}"}}"#))
            }
        }
    }
}

fn said(word: &str) -> Answer {
    Answer::With(200, format!(r#"{{"status":"{word}"}}"#))
}

/// Tells one event until it is told or given up, without the waits between. The delivery that was given up.
async fn tell(webhook: &Webhook, number: u32) -> Option<Delivery> {
    let limits = TaskLimits::default();
    let mut delivery = Delivery::first(1);
    for _ in 0..MOST_STEPS {
        let step = delivery.step();
        if let Step::Reserve(seq) = step {
            delivery = delivery.reserve(seq).unwrap();
        }
        let told = told(number, delivery.attempt);
        let happened = match step {
            Step::GiveUp => Happened::GaveUp,
            Step::Reserve(_) | Step::LaunchAgain(_) => webhook.launch(&told).await.into(),
            Step::LookUp(_) => webhook.look_up(&told, delivery.run_id.as_deref().unwrap()).await.into(),
        };
        match delivery.after(happened, &limits) {
            After::Done => return None,
            After::Stays { delivery, due: None } => return Some(delivery),
            After::Stays { delivery: next, due: Some(_) } => delivery = next,
        }
    }
    panic!("event {number} was neither told nor given up in {MOST_STEPS} steps: {delivery:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_told_once_or_visibly_given_up() {
    // Invariant N1; contract 6.9, all tables.
    let book = Arc::new(Mutex::new(Book::default()));
    let answers = book.clone();
    let address = receiver(move |asked| answers.lock().unwrap().answer(&asked)).await;
    let (webhook, slots) = (Arc::new(webhook(&address, true)), Arc::new(Semaphore::new(AT_ONCE)));
    let mut telling = JoinSet::new();
    for number in 0..EVENTS {
        let (webhook, slots) = (webhook.clone(), slots.clone());
        telling.spawn(async move {
            let _slot = slots.acquire().await.unwrap();
            (number, tell(&webhook, number).await)
        });
    }
    let outcomes = telling.join_all().await;

    let book = book.lock().unwrap();
    let mut dead = 0;
    for (number, given_up) in &outcomes {
        let runs = (0..10).filter(|attempt| {
            let key = told(*number, *attempt).key.to_string();
            let run = format!("run-{:x}", chance(("name", &key), u64::MAX));
            book.keys.get(&key).is_some_and(|known| known.has_run) && !fails(&run)
        });
        let good = runs.count();
        match given_up {
            None => assert_eq!(good, 1, "one run of event {number} did what was to be done"),
            Some(delivery) => {
                dead += 1;
                assert_eq!(delivery.phase, Phase::DeadLetter);
                assert!(delivery.error.is_some() && good <= 1, "{delivery:?}");
            }
        }
    }
    assert_eq!((outcomes.len(), book.changed_bodies), (EVENTS as usize, 0));
    assert!(book.repeats > 100, "launches were made again");
    assert!(dead > 0 && dead < EVENTS / 2 && book.lost > 100, "the receiver was odd: {dead} dead, {} lost", book.lost);
}
