//! Each row of the tables of contract 6.9.

use std::time::Duration;

use caribou_core::notification::{MAX_FAILURES, Notified, Phase, Sink};
use caribou_core::task::TaskLimits;
use caribou_ports::event_sink::{Launched, Run};
use caribou_ports::store::{Notifications as _, Redelivered, Wake, Wakeups as _};
use caribou_store::Memory;

use super::receiver::{Receiver, Take};
use super::replica::{Replica, delivery, id, key, notified, tells, tells_again, until};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn succeeds(_: &str, _: u32) -> Run {
    Run::Succeeded
}

async fn with(receiver: &Receiver) -> (Memory, Replica) {
    let store = Memory::default();
    let replica = Replica::start(&store, receiver, "a", TaskLimits::default()).await;
    tells(&store, 1).await;
    (store, replica)
}

async fn is_told(store: &Memory) {
    until("told", HOUR, async || delivery(store, 1).await.is_none()).await;
    assert_eq!(notified(store, 1).await, Notified::Delivered);
}

async fn is_given_up(store: &Memory) {
    let is_dead = async || delivery(store, 1).await.is_some_and(|delivery| delivery.phase == Phase::DeadLetter);
    until("given up", HOUR, is_dead).await;
    assert_eq!(notified(store, 1).await, Notified::DeadLetter);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_told_when_its_run_has_succeeded_and_not_before() {
    // Contract 6.9, dispatched; invariant N1.
    let goes_on = |_: &str, before: u32| if before < 3 { Run::Running } else { Run::Succeeded };
    let receiver = Receiver::new(|_, _| Take::Launch, goes_on);
    let (store, _replica) = with(&receiver).await;
    until("launched", MINUTE, async || notified(&store, 1).await == Notified::Dispatched).await;
    is_told(&store).await;
    assert_eq!(receiver.keys(), [key(1, 1, 0)]);
    assert_eq!(receiver.seen().looked.values().copied().collect::<Vec<_>>(), [4]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_without_runs_has_it_at_once() {
    let receiver = Receiver::new(|_, _| Take::Say(Launched::Delivered), succeeds);
    let (store, _replica) = with(&receiver).await;
    is_told(&store).await;
    assert!(receiver.seen().looked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_busy_thread_is_waited_for_without_counting() {
    // Contract 6.9, thread busy.
    let busy = |_: &_, before: u32| if before < 9 { Take::Say(Launched::Busy) } else { Take::Launch };
    let receiver = Receiver::new(busy, succeeds);
    let (store, _replica) = with(&receiver).await;
    is_told(&store).await;
    assert_eq!(receiver.keys(), vec![key(1, 1, 0); 10]);
    assert!(receiver.waits().iter().all(|wait| (5..=6).contains(wait)), "{:?}", receiver.waits());
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_is_gone_is_given_up_at_once_and_redelivered_when_asked() {
    // Contract 6.9, thread missing, dead letter.
    let gone = |_: &_, before: u32| if before < 1 { Take::Say(Launched::Gone("no".to_owned())) } else { Take::Launch };
    let receiver = Receiver::new(gone, succeeds);
    let (store, _replica) = with(&receiver).await;
    is_given_up(&store).await;
    let dead = delivery(&store, 1).await.unwrap();
    assert_eq!((dead.failures, dead.error.as_deref()), (1, Some("no")));
    assert_eq!(store.redeliver(id(1), Sink::Webhook).await.unwrap(), Redelivered::TakenUp);
    store.wake(Wake::Delivery).await;
    is_told(&store).await;
    assert_eq!(receiver.keys(), vec![key(1, 1, 0); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_launched_anew_under_the_next_key_and_five_are_enough() {
    // Contract 6.9, run error, failure count, backoff.
    let receiver = Receiver::new(|_, _| Take::Launch, |_, _| Run::Failed("interrupted".to_owned()));
    let (store, _replica) = with(&receiver).await;
    is_given_up(&store).await;
    let keys: Vec<String> = (0..MAX_FAILURES).map(|attempt| key(1, 1, attempt)).collect();
    assert_eq!(receiver.keys(), keys);
    let waits = receiver.waits();
    let wanted = [5, 10, 20, 40];
    assert!(waits.iter().zip(wanted).all(|(wait, least)| (least..=least + 1).contains(wait)), "{waits:?}");
    let dead = delivery(&store, 1).await.unwrap();
    assert_eq!((dead.failures, dead.error.as_deref()), (MAX_FAILURES, Some("interrupted")));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_found_has_failed() {
    // Contract 6.9, run not found.
    let lost = |run: &str, _: u32| if run.ends_with(":0") { Run::NotFound } else { Run::Succeeded };
    let receiver = Receiver::new(|_, _| Take::Launch, lost);
    let (store, _replica) = with(&receiver).await;
    is_told(&store).await;
    assert_eq!(receiver.keys(), [key(1, 1, 0), key(1, 1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_looked_up_is_counted_and_never_launched_again() {
    // Contract 6.9, lookup throws; failure count >= 5.
    let receiver = Receiver::new(|_, _| Take::Launch, |_, _| Run::Error("away".to_owned()));
    let (store, _replica) = with(&receiver).await;
    is_given_up(&store).await;
    assert_eq!(receiver.keys(), [key(1, 1, 0)]);
    assert_eq!(receiver.seen().looked.values().copied().collect::<Vec<_>>(), [MAX_FAILURES]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_launch_is_counted_and_keeps_its_key() {
    // Contract 6.9, other launch error.
    let receiver = Receiver::new(|_, _| Take::Say(Launched::Refused("odd".to_owned())), succeeds);
    let (store, _replica) = with(&receiver).await;
    is_given_up(&store).await;
    assert_eq!(receiver.keys(), vec![key(1, 1, 0); MAX_FAILURES as usize]);
}

#[tokio::test(start_paused = true)]
async fn an_unclear_launch_says_the_same_again_without_counting_whatever_came_since() {
    // Contract 6.9, [N] launching: a recovered row keeps its original event and key.
    let unclear = |_: &_, before: u32| match before {
        0 => Take::LaunchSilently,
        1 => Take::Break,
        2 => Take::Hang,
        3..8 => Take::Say(Launched::Unclear("503".to_owned())),
        _ => Take::Launch,
    };
    let receiver = Receiver::new(unclear, succeeds);
    let (store, _replica) = with(&receiver).await;
    until("asked", MINUTE, async || !receiver.keys().is_empty()).await;
    tells_again(&store, 2).await;
    is_told(&store).await;
    let mut wanted = vec![key(1, 1, 0); 9];
    wanted.extend(vec![key(1, 2, 0); 9]);
    assert_eq!(receiver.keys(), wanted);
    let seen = receiver.seen();
    let bodies: Vec<&str> = seen.launches.iter().map(|(_, body, _)| body.as_str()).collect();
    assert!(bodies[..9].iter().all(|body| *body == r#"{"says":1}"#), "{bodies:?}");
    assert!(bodies[9..].iter().all(|body| *body == r#"{"says":2}"#), "{bodies:?}");
    assert_eq!(seen.runs.len(), 2, "one run for each event");
}

#[tokio::test(start_paused = true)]
async fn a_newer_event_waits_for_the_run_of_the_older_one() {
    // Contract 6.9: a dispatched row keeps its snapshot; invariant N1, in order.
    let slow = |run: &str, before: u32| if run.contains(":1:") && before < 4 { Run::Running } else { Run::Succeeded };
    let receiver = Receiver::new(|_, _| Take::Launch, slow);
    let (store, _replica) = with(&receiver).await;
    until("launched", MINUTE, async || notified(&store, 1).await == Notified::Dispatched).await;
    tells_again(&store, 2).await;
    is_told(&store).await;
    assert_eq!(receiver.keys(), [key(1, 1, 0), key(1, 2, 0)]);
    assert_eq!(receiver.seen().looked[&format!("run of {}", key(1, 1, 0))], 5);
}

#[tokio::test(start_paused = true)]
async fn a_newer_event_replaces_one_that_waits_and_takes_up_one_that_was_given_up() {
    // Contract 6.9, latest event; a later new event re-arms a dead letter.
    let first = |told: &caribou_ports::event_sink::Told, _: u32| match told.key.seq {
        1 => Take::Say(Launched::Gone("no".to_owned())),
        2 => Take::Say(Launched::Busy),
        _ => Take::Launch,
    };
    let receiver = Receiver::new(first, succeeds);
    let (store, _replica) = with(&receiver).await;
    is_given_up(&store).await;
    tells_again(&store, 2).await;
    until("busy", MINUTE, async || receiver.keys().len() == 2).await;
    tells_again(&store, 3).await;
    is_told(&store).await;
    assert_eq!(receiver.keys(), [key(1, 1, 0), key(1, 2, 0), key(1, 3, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_is_asked_by_as_many_as_there_are_slots() {
    // Durability.md 1.10, slots; invariant B1.
    let receiver = Receiver::new(|_, before| if before == 0 { Take::Hang } else { Take::Launch }, succeeds);
    let store = Memory::default();
    let limits = TaskLimits { max_concurrent_polls: 3, ..TaskLimits::default() };
    let _replica = Replica::start(&store, &receiver, "a", limits).await;
    for number in 0..12 {
        tells(&store, number).await;
    }
    for number in 0..12 {
        until("told", HOUR, async || delivery(&store, number).await.is_none()).await;
    }
    assert_eq!(receiver.seen().most_under_way, 3);
}
