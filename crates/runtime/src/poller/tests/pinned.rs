//! Tasks that live in one session of one replica (architecture.md §10, pinned tasks).

use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::holding::LeaseProfile;
use caribou_core::ids::{BootId, Epoch};
use caribou_core::task::{LOST, Pin, Shard, Status, TaskLimits};
use caribou_ports::store::Replicas as _;
use caribou_store::Memory;
use tokio::time::Instant;

use super::remote::{Remote, Said};
use super::replica::*;

/// A pin to this session.
fn pin(boot: &str, epoch: u64) -> String {
    Pin { boot: BootId::from(boot), epoch: Epoch(epoch) }.to_string()
}

/// A remote whose session of this epoch is open.
fn open(epoch: u64) -> Remote {
    let remote = Remote::default();
    *remote.open.lock().unwrap() = Some(Epoch(epoch));
    remote
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_session_that_is_gone_is_lost_and_says_so() {
    let (store, remote) = (Memory::default(), open(2));
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    pinned(&store, 1, &pin("a", 1)).await;
    pinned(&store, 2, &pin("gone", 2)).await;
    pinned(&store, 3, &pin("a", 2)).await;
    remote.says("remote-3", [Said::Is(Status::Completed)]);
    for number in [1, 2] {
        remote.says(&remote_id(number), [Said::Unknown]);
        let done = ended(&store, number, seconds(5)).await;
        assert_eq!((done.snapshot.status, done.snapshot.error.as_deref()), (Status::Failed, Some(LOST)));
    }
    assert_eq!(ended(&store, 3, seconds(5)).await.snapshot.status, Status::Completed);
    assert_eq!(remote.polls(), 3, "another process was asked once for each");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_its_server_has_kept_lives_on_in_the_next_session() {
    // architecture.md §10, pinned tasks: the session may be resumed.
    let (store, remote) = (Memory::default(), open(1));
    *remote.anew.lock().unwrap() = Some(Pin { boot: BootId::from("a"), epoch: Epoch(7) });
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    remote.says("remote-1", [Said::Is(Status::Working), Said::Is(Status::Completed)]);
    let task = pinned(&store, 1, &pin("gone", 1)).await;
    until(seconds(5), "its new session is kept for it", async || {
        remote.kept.lock().unwrap().contains_key(&task).then_some(())
    })
    .await;
    let done = ended(&store, 1, seconds(20)).await;
    assert_eq!((done.snapshot.status, done.poll_errors), (Status::Completed, 0));
    assert_eq!((remote.polls(), *remote.open.lock().unwrap()), (2, Some(Epoch(7))));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_at_the_question_time_and_again_has_not_kept_the_task() {
    // A server that is away may come back; one that is asked and says nothing sensible is believed in the end.
    for (says, is_lost) in
        [(Said::Failure, true), (Said::Error(Code::OutcomeUnknown), true), (Said::Error(Code::Unavailable), false)]
    {
        let (store, remote) = (Memory::default(), open(1));
        let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
        remote.says("remote-1", [says]);
        pinned(&store, 1, &pin("gone", 1)).await;
        until(seconds(120), "three questions", async || {
            (remote.polls() >= 4 || remote.polls() == 3 && is_lost).then_some(())
        })
        .await;
        if is_lost {
            let done = ended(&store, 1, seconds(5)).await;
            assert_eq!((done.snapshot.error.as_deref(), remote.polls()), (Some(LOST), 3), "{says:?}");
        } else {
            assert!(!stored(&store, 1).await.snapshot.status.is_terminal(), "{says:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_under_a_question_loses_its_task_at_once_and_a_slow_one_does_not() {
    // Contract 4.4: a timeout is no disconnect.
    let (store, remote) = (Memory::default(), open(1));
    let says = [Said::Error(Code::Timeout), Said::Failure, Said::Is(Status::Working), Said::SessionEnds, Said::Unknown];
    remote.says("remote-1", says);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    pinned(&store, 1, &pin("a", 1)).await;
    let done = ended(&store, 1, seconds(60)).await;
    assert_eq!((done.snapshot.status, done.snapshot.error.as_deref()), (Status::Failed, Some(LOST)));
    let polled = remote.job("remote-1", |job| job.polled.clone());
    assert_eq!(polled.len(), 5, "the last one of another process");
    assert!(polled[3].elapsed() < seconds(1), "{:?}", polled[3].elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_session_is_kept_for_its_task_from_one_question_to_the_next_and_let_go_at_the_end() {
    let (store, remote) = (Memory::default(), open(1));
    remote.says("remote-1", [Said::Failure, Said::Is(Status::Working)]);
    let _replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let task = pinned(&store, 1, &pin("a", 1)).await;
    let kept = || remote.kept.lock().unwrap().get(&task).copied();
    for polls in 1..=3 {
        let is_settled =
            async || (remote.polls() == polls && remote.kept.lock().unwrap().remove(&task).is_some()).then_some(());
        until(seconds(60), "a question is settled", is_settled).await;
    }
    remote.says("remote-1", [Said::Is(Status::Completed)]);
    ended(&store, 1, seconds(10)).await;
    assert_eq!(kept(), Some(None));
}

#[tokio::test(start_paused = true)]
async fn each_replica_asks_about_the_tasks_of_its_own_sessions_in_time_whatever_their_shards() {
    let (store, remote) = (Memory::default(), open(1));
    let limits = TaskLimits { max_concurrent_polls: 32, per_server: 32, ..TaskLimits::default() };
    let one = Replica::start(&store, &remote, "a", limits).await;
    let other = Replica::start(&store, &remote, "b", limits).await;
    until(seconds(5), "they see each other", async || {
        let sees = |replica: &Replica, peer: &Replica| replica.membership.peers().is_alive(&peer.boot);
        (sees(&one, &other) && sees(&other, &one)).then_some(())
    })
    .await;
    let mut shards = std::collections::BTreeSet::new();
    for number in 1..=24 {
        let boot = if number % 2 == 0 { "a" } else { "b" };
        let many = std::iter::repeat_n(Said::Is(Status::Working), 3).chain([Said::Is(Status::Completed)]);
        remote.says(&remote_id(number), many);
        shards.insert(Shard::of(pinned(&store, number, &pin(boot, 1)).await));
    }
    assert_eq!(shards.len(), usize::from(Shard::COUNT), "every shard has some");
    for number in 1..=24 {
        let done = ended(&store, number, seconds(60)).await;
        assert_eq!((done.snapshot.status, done.poll_errors), (Status::Completed, 0));
        let polled = remote.job(&remote_id(number), |job| job.polled.clone());
        let waits = polled.windows(2).map(|two| two[1].duration_since(two[0]));
        let longest = waits.max().unwrap();
        assert!(longest < Duration::from_millis(6_200), "task {number}: asked again after {longest:?}");
    }
    assert_eq!(remote.polls(), 24 * 4, "none by the other replica");
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_replica_are_lost_when_it_is_declared_dead_and_not_before() {
    // Durability.md 2.2: a late renewal is one as long as nobody has declared the life dead.
    let (store, remote) = (Memory::default(), open(1));
    let first = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    let _second = Replica::start(&store, &remote, "b", TaskLimits::default()).await;
    let tasks = 8;
    for number in 1..=tasks {
        remote.says(&remote_id(number), [Said::Is(Status::Working), Said::Unknown]);
        pinned(&store, number, &pin("a", 1)).await;
    }
    until(seconds(5), "the first questions", async || (remote.polls() >= usize::from(tasks)).then_some(())).await;
    first.kill();
    let crashed = Instant::now();
    let is_dead = async || {
        let lives = store.list().await.unwrap();
        if lives.iter().all(|life| life.replica.boot != first.boot) {
            return Some(());
        }
        for number in 1..=tasks {
            assert!(
                !stored(&store, number).await.snapshot.status.is_terminal(),
                "task {number}, as long as it may live"
            );
        }
        None
    };
    until(seconds(30), "the first one is declared dead", is_dead).await;
    assert!(crashed.elapsed() >= LeaseProfile::FAST.trust(), "{:?}", crashed.elapsed());
    let asked = remote.polls();
    for number in 1..=tasks {
        let done = ended(&store, number, seconds(10)).await;
        assert_eq!((done.snapshot.status, done.snapshot.error.as_deref()), (Status::Failed, Some(LOST)));
    }
    assert_eq!(remote.polls(), asked + usize::from(tasks), "another session was asked once for each");
}
