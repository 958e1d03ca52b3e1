//! Events of tasks are told at least once, in order, under one key until a run is known to have failed (invariant N1).

use std::time::Duration;

use caribou_core::ids::UserId;
use caribou_core::notification::{Audience, Happened, Notified, Phase, Sink, Step};
use caribou_core::task::{Duty, TaskId, TaskLimits};
use caribou_ports::store::{ClaimDeliveries, ClaimedDelivery, Redelivered, Replica, Reserved, Settled, Wake};
use caribou_tests::eventually;
use rstest::rstest;

use crate::following::*;
use crate::opened::{Kind, Opened, Store};

/// Waits that are over at once.
fn hasty() -> TaskLimits {
    TaskLimits { poll_interval_seconds: 0, ..TaskLimits::default() }
}

fn to_webhook(owner: &str, lease: Duration) -> ClaimDeliveries {
    ClaimDeliveries { owner: owner.into(), sink: Sink::Webhook, of: Audience::Everybody, at_most: 8, lease }
}

/// The only delivery that becomes due.
pub(crate) async fn claim_delivery(store: &dyn Store, lease: Duration) -> ClaimedDelivery {
    let claim = async || store.claim_deliveries(to_webhook(OURS, lease)).await.unwrap().pop();
    eventually(WITHIN, "a delivery is due", claim).await
}

async fn settle(store: &dyn Store, claimed: &ClaimedDelivery, happened: Happened) -> Settled {
    store.settle_delivery(claimed.claim.clone(), happened, hasty()).await.unwrap()
}

/// Reserves the launch of a claimed delivery, and answers with its key.
async fn reserve(store: &dyn Store, claimed: &ClaimedDelivery) -> String {
    let reserved = store.reserve_launch(claimed.claim.clone(), claimed.event.seq).await.unwrap();
    let Reserved::Reserved(delivery) = reserved else { panic!("{reserved:?}") };
    delivery.key(claimed.claim.task).to_string()
}

/// Tells a claimed delivery.
pub(crate) async fn take(store: &dyn Store, claimed: ClaimedDelivery) {
    reserve(store, &claimed).await;
    assert_eq!(settle(store, &claimed, Happened::Taken).await, Settled::Settled);
}

async fn notified(store: &dyn Store, task: TaskId) -> Notified {
    store.read_task(task, None).await.unwrap().unwrap().notified
}

fn launched() -> Happened {
    Happened::Launched { run_id: "run-9".to_owned() }
}

#[rstest]
#[tokio::test]
async fn an_event_is_launched_looked_after_and_launched_anew_after_a_failed_run(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Contract 6.9: phases, key, delivered only after the run succeeded.
    let store = Opened::new(kind).await;
    let task = complete(&*store, 1).await;
    assert_eq!(notified(&*store, task).await, Notified::Pending);
    let first = claim_delivery(&*store, LONG).await;
    assert_eq!((first.delivery.step(), first.event.seq), (Step::Reserve(2), 2));
    assert_eq!((first.scope.clone(), first.run_id.as_deref()), (ann(), Some("run-1")));
    assert!(store.claim_deliveries(to_webhook(THEIRS, LONG)).await.unwrap().is_empty(), "one at a time");
    let log = ClaimDeliveries { sink: Sink::Log, ..to_webhook(OURS, LONG) };
    assert!(store.claim_deliveries(log).await.unwrap().is_empty(), "to another sink");
    let key = reserve(&*store, &first).await;
    assert_eq!(key, format!("mcp-task:{task}:2:0"));
    assert_eq!(notified(&*store, task).await, Notified::Claimed);
    assert_eq!(settle(&*store, &first, launched()).await, Settled::Settled);
    assert_eq!(settle(&*store, &first, Happened::Succeeded).await, Settled::Fenced, "the claim is over");
    assert_eq!(notified(&*store, task).await, Notified::Dispatched);

    let second = claim_delivery(&*store, LONG).await;
    assert_eq!((second.delivery.step(), second.delivery.run_id.as_deref()), (Step::LookUp(2), Some("run-9")));
    assert_eq!(settle(&*store, &second, Happened::Failed("it broke".to_owned())).await, Settled::Settled);
    let stored = store.read_task(task, None).await.unwrap().unwrap();
    assert_eq!((stored.notified, stored.notification_failures), (Notified::Retry, 1));
    assert_eq!(stored.notification_error.as_deref(), Some("it broke"));

    let third = claim_delivery(&*store, LONG).await;
    assert_eq!(reserve(&*store, &third).await, format!("mcp-task:{task}:2:1"), "a new key after a failed run");
    assert_eq!(settle(&*store, &third, launched()).await, Settled::Settled);
    let fourth = claim_delivery(&*store, LONG).await;
    assert_eq!(settle(&*store, &fourth, Happened::Succeeded).await, Settled::Settled);
    assert_eq!(notified(&*store, task).await, Notified::Delivered);
    assert_eq!(store.deliveries(task).await.unwrap(), []);
    assert_eq!(store.next_delivery(Sink::Webhook).await.unwrap(), None);
}

#[rstest]
#[tokio::test]
async fn a_launch_that_was_lost_is_made_again_with_the_same_key_and_words(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariant N1; contract 6.9, launching: a recovered row keeps event and key.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let asked = moved(&poll, asking(r#"{"q":1}"#));
    assert_eq!(store.apply(poll.claim, asked, Duration::ZERO).await.unwrap(), Settled::Settled);
    let lost = claim_delivery(&*store, Duration::from_secs(1)).await;
    let key = reserve(&*store, &lost).await;
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let done = moved(&poll, completed());
    assert_eq!(store.apply(poll.claim, done, Duration::ZERO).await.unwrap(), Settled::Settled);

    let again = claim_delivery(&*store, LONG).await;
    assert_eq!(settle(&*store, &lost, launched()).await, Settled::Fenced, "whoever lost the claim");
    assert_eq!(again.delivery.step(), Step::LaunchAgain(2), "not the newer event");
    assert_eq!((again.delivery.key(task).to_string(), &again.event), (key, &lost.event));
    assert_eq!(settle(&*store, &again, Happened::Unclear("no answer".to_owned())).await, Settled::Settled);
    let again = claim_delivery(&*store, LONG).await;
    assert_eq!((again.delivery.step(), again.delivery.failures), (Step::LaunchAgain(2), 0));
    assert_eq!(settle(&*store, &again, Happened::Taken).await, Settled::Settled);
    assert_eq!(notified(&*store, task).await, Notified::Pending, "the newer one is next");
    let next = claim_delivery(&*store, LONG).await;
    assert_eq!(next.event.seq, 3);
    take(&*store, next).await;
    assert_eq!(notified(&*store, task).await, Notified::Delivered);
}

#[rstest]
#[tokio::test]
async fn a_newer_event_replaces_one_that_was_not_launched(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Contract 6.9, a stale snapshot is refused before launching.
    let store = Opened::new(kind).await;
    followed(&*store, 1).await;
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let asked = moved(&poll, asking(r#"{"q":1}"#));
    assert_eq!(store.apply(poll.claim, asked, Duration::ZERO).await.unwrap(), Settled::Settled);
    let stale = claim_delivery(&*store, LONG).await;
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let done = moved(&poll, completed());
    assert_eq!(store.apply(poll.claim, done, Duration::ZERO).await.unwrap(), Settled::Settled);
    assert_eq!(store.reserve_launch(stale.claim, stale.event.seq).await.unwrap(), Reserved::Fenced);
    let newer = claim_delivery(&*store, LONG).await;
    assert_eq!(newer.event.seq, 3);
    let old = store.reserve_launch(newer.claim.clone(), 2).await.unwrap();
    assert_eq!(old, Reserved::Superseded);
    let newer = claim_delivery(&*store, LONG).await;
    store.release_deliveries(vec![newer.claim]).await.unwrap();
    let newer = claim_delivery(&*store, LONG).await;
    take(&*store, newer).await;
}

#[rstest]
#[tokio::test]
async fn what_was_given_up_waits_for_a_newer_event_or_for_somebody(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Contract 6.9, dead letter.
    let store = Opened::new(kind).await;
    let task = followed(&*store, 1).await;
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let asked = moved(&poll, asking(r#"{"q":1}"#));
    assert_eq!(store.apply(poll.claim, asked, Duration::ZERO).await.unwrap(), Settled::Settled);
    for failures in 0..5 {
        let claimed = claim_delivery(&*store, LONG).await;
        assert_eq!(claimed.delivery.failures, failures);
        reserve(&*store, &claimed).await;
        assert_eq!(settle(&*store, &claimed, Happened::Refused("no".to_owned())).await, Settled::Settled);
    }
    let spent = claim_delivery(&*store, LONG).await;
    assert_eq!(spent.delivery.step(), Step::GiveUp);
    assert_eq!(store.redeliver(task, Sink::Webhook).await.unwrap(), Redelivered::NotGivenUp);
    assert_eq!(settle(&*store, &spent, Happened::GaveUp).await, Settled::Settled);
    assert_eq!(notified(&*store, task).await, Notified::DeadLetter);
    let dead = store.dead_letters(None, 10).await.unwrap();
    assert_eq!(
        (dead.len(), dead[0].task, dead[0].sink, dead[0].delivery.phase),
        (1, task, Sink::Webhook, Phase::DeadLetter)
    );
    assert_eq!(store.dead_letters(Some((task, Sink::Webhook)), 10).await.unwrap(), []);
    assert_eq!(store.next_delivery(Sink::Webhook).await.unwrap(), None, "never claimed again by itself");

    assert_eq!(store.redeliver(task, Sink::Webhook).await.unwrap(), Redelivered::TakenUp);
    let again = claim_delivery(&*store, LONG).await;
    assert_eq!(reserve(&*store, &again).await, format!("mcp-task:{task}:2:0"), "the key it had");
    assert_eq!(settle(&*store, &again, Happened::Gone("no thread".to_owned())).await, Settled::Settled);
    let poll = claim_one(&*store, OURS, Duty::Poll, LONG).await;
    let done = moved(&poll, completed());
    assert_eq!(store.apply(poll.claim, done, Duration::ZERO).await.unwrap(), Settled::Settled);
    let newer = claim_delivery(&*store, LONG).await;
    assert_eq!((newer.event.seq, newer.delivery.failures), (3, 0));
}

#[rstest]
#[tokio::test]
async fn what_a_dead_replica_was_telling_is_due_at_once(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // architecture.md §10, rows of a dead replica.
    let store = Opened::new(kind).await;
    let replica = Replica::alone(OURS.into(), "pod", "0");
    store.begin(replica).await.unwrap();
    complete(&*store, 1).await;
    let held = claim_delivery(&*store, LONG).await;
    assert_eq!(store.take_back_deliveries(OURS.into(), LONG).await.unwrap(), 0);
    store.end(OURS.into()).await.unwrap();
    assert_eq!(store.take_back_deliveries(OURS.into(), LONG).await.unwrap(), 1);
    assert_eq!(settle(&*store, &held, Happened::Taken).await, Settled::Fenced);
    let taken = store.claim_deliveries(to_webhook(THEIRS, LONG)).await.unwrap();
    assert_eq!(taken[0].claim.token.seq, held.claim.token.seq + 1);
}

#[rstest]
#[tokio::test]
async fn a_hint_reaches_whoever_listens(#[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    // Durability.md 1.7.
    let store = Opened::new(kind).await;
    let mut listening = [store.listen().await.unwrap(), store.listen().await.unwrap()];
    for wake in [Wake::Work(Duty::Cancel), Wake::Delivery] {
        store.wake(wake).await;
        store.wake(wake).await;
        for one in &mut listening {
            let heard = tokio::time::timeout(WITHIN, one.next()).await.unwrap();
            assert_eq!(heard.unwrap(), wake);
        }
    }
}

#[rstest]
#[tokio::test]
async fn what_is_claimed_for_some_users_is_about_their_tasks_only(
    #[values(Kind::Memory, Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    // Invariant P1: a watcher that may not be told of others' tasks is not handed them.
    let store = Opened::new(kind).await;
    complete(&*store, 1).await;
    let of = |names: &[&str]| ClaimDeliveries {
        of: Audience::Users(names.iter().map(|name| UserId::new(*name)).collect()),
        ..to_webhook(OURS, LONG)
    };
    for others in [&[][..], &["bob"], &["an", "annn"]] {
        assert!(store.claim_deliveries(of(others)).await.unwrap().is_empty(), "{others:?}");
    }
    let claim = async || store.claim_deliveries(of(&["bob", "ann"])).await.unwrap().pop();
    assert_eq!(eventually(WITHIN, "hers is due", claim).await.scope, ann());
}
