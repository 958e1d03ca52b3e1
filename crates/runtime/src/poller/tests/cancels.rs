//! A request to cancel, against polls and against itself.

use caribou_core::task::{Duty, Status, TaskLimits};
use caribou_ports::store::{CancelRequested, Tasks as _, Wake, Wakeups as _};
use caribou_store::Memory;
use tokio::time::Instant;

use super::remote::{Remote, Said};
use super::replica::*;

#[tokio::test(start_paused = true)]
async fn ten_requests_through_two_replicas_are_one_remote_cancel() {
    // Contract 6.10: no concurrent remote cancels.
    let store = Memory::default();
    let remote = Remote { cancel_takes: seconds(1), cancel_ends: Some(Status::Cancelled), ..Remote::default() };
    let _one = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let _other = Replica::start(&store, &remote, "b", TaskLimits::default()).await;
    let task = submitted(&store, 1).await;
    for number in 0..10 {
        let requested = store.request_cancel(task, None).await.unwrap();
        assert_eq!(requested == CancelRequested::Requested, number == 0, "{requested:?}");
        store.wake(Wake::Work(Duty::Cancel)).await;
        tokio::time::sleep(std::time::Duration::from_millis(90)).await;
    }
    let done = ended(&store, 1, seconds(5)).await;
    assert_eq!((done.snapshot.status, done.cancel_attempts), (Status::Cancelled, 1));
    assert_eq!(remote.job("remote-1", |job| (job.cancels, job.overlaps)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_fences_the_poll_under_way_and_only_the_cancel_ends_the_task() {
    // Invariant C2; contract 6.10, effect.
    let store = Memory::default();
    let remote = Remote { cancel_ends: Some(Status::Cancelled), ..Remote::default() };
    remote.says("remote-1", [Said::After(seconds(10), Status::Completed)]);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let task = submitted(&store, 1).await;
    until(seconds(5), "a poll", async || (remote.polls() == 1).then_some(())).await;
    let asked = Instant::now();
    store.request_cancel(task, None).await.unwrap();
    store.wake(Wake::Work(Duty::Cancel)).await;
    let done = ended(&store, 1, seconds(30)).await;
    assert_eq!(done.snapshot.status, Status::Cancelled);
    assert!(asked.elapsed() < seconds(2), "it does not wait for the poll");
    assert_eq!(remote.polls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_fails_is_tried_again_for_ever() {
    // Contract 6.10, non-terminal or error.
    let store = Memory::default();
    let remote = Remote { cancel_ends: None, ..Remote::default() };
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let task = submitted(&store, 1).await;
    let began = Instant::now();
    store.request_cancel(task, None).await.unwrap();
    until(seconds(400), "six attempts", async || (remote.job("remote-1", |job| job.cancels) == 6).then_some(())).await;
    // 5 + 10 + 20 + 40 + 80 s.
    assert!((155..160).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let task = stored(&store, 1).await;
    assert!(!task.snapshot.status.is_terminal() && task.last_cancel_error.is_some() && task.poll_errors == 0);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_loses_its_trust_gives_up_its_cancel_before_another_one_begins() {
    // Invariants L1, C2; durability.md I9: remote cancels of a task never overlap.
    let store = Memory::default();
    let remote = Remote { cancel_takes: seconds(45), cancel_ends: Some(Status::Cancelled), ..Remote::default() };
    let first = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let task = submitted(&store, 1).await;
    until(seconds(5), "a poll", async || (remote.polls() > 0).then_some(())).await;
    store.request_cancel(task, None).await.unwrap();
    store.wake(Wake::Work(Duty::Cancel)).await;
    until(seconds(5), "a cancel", async || remote.job("remote-1", |job| job.is_cancelling).then_some(())).await;
    let _second = Replica::start(&store, &remote, "b", TaskLimits::default()).await;
    first.cut_off();
    let done = ended(&store, 1, seconds(120)).await;
    assert_eq!((done.snapshot.status, done.cancel_attempts), (Status::Cancelled, 2));
    assert_eq!(remote.job("remote-1", |job| (job.cancels, job.overlaps)), (2, 0), "the second one took over");
}
