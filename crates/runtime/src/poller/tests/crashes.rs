//! Replicas that crash, stop, or are called dead.

use caribou_core::holding::{LeaseProfile, LifeOver};
use caribou_core::task::{Duty, Status, TaskLimits};
use caribou_ports::store::{Replicas as _, Tasks as _};
use caribou_store::Memory;
use tokio::time::Instant;

use super::remote::{Remote, Said};
use super::replica::*;

#[tokio::test(start_paused = true)]
async fn what_a_crashed_replica_held_is_taken_over_within_its_lease() {
    // Durability.md 2.2, declare dead; architecture.md §2, takeover is bounded by the replica's lease. Invariant L1.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::After(seconds(50), Status::Failed), Said::Is(Status::Completed)]);
    let first = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    submitted(&store, 1).await;
    until(seconds(5), "a poll", async || (remote.polls() == 1).then_some(())).await;
    let second = Replica::start(&store, &remote, "b", TaskLimits::default()).await;
    until(seconds(5), "they see each other", async || second.membership.peers().is_alive(&first.boot).then_some(()))
        .await;
    first.kill();
    let crashed = Instant::now();
    let done = ended(&store, 1, seconds(60)).await;
    assert_eq!((done.snapshot.status, done.version), (Status::Completed, 2), "only the second poll counts");
    let took = crashed.elapsed();
    let lease = LeaseProfile::FAST.lease;
    assert!(took < lease + seconds(4), "{took:?}");
    assert!(took >= LeaseProfile::FAST.trust(), "not before the first one had stopped by itself: {took:?}");
    assert!(!second.membership.peers().is_alive(&first.boot));
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_back_what_is_not_finished_in_time() {
    // Contract 6.5, stop: only its own claims, schedule and counters untouched.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::After(seconds(50), Status::Failed), Said::Is(Status::Completed)]);
    remote.says("remote-2", [Said::After(seconds(3), Status::Completed)]);
    let first = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    submitted(&store, 1).await;
    submitted(&store, 2).await;
    until(seconds(5), "two polls", async || (remote.polls() == 2).then_some(())).await;
    let began = Instant::now();
    first.stop(&store).await;
    assert!((4..=6).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(stored(&store, 2).await.snapshot.status, Status::Completed, "what was near its end finished");
    let lanes = Duty::Poll.lanes().collect();
    assert_eq!(store.next_due(lanes).await.unwrap(), Some(std::time::Duration::ZERO), "due at once");
    assert_eq!(stored(&store, 1).await.poll_errors, 0);
    let _second = Replica::start(&store, &remote, "b", TaskLimits::default()).await;
    assert_eq!(ended(&store, 1, seconds(3)).await.snapshot.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_was_called_dead_claims_and_settles_nothing() {
    // Invariant L1; durability.md 2.2, self-fence.
    let (store, remote) = (Memory::default(), Remote::default());
    remote.says("remote-1", [Said::After(seconds(20), Status::Completed)]);
    let replica = Replica::start(&store, &remote, "a", TaskLimits::default()).await;
    submitted(&store, 1).await;
    until(seconds(5), "a poll", async || (remote.polls() == 1).then_some(())).await;
    store.end(replica.boot.clone()).await.unwrap();
    assert_eq!(replica.membership.over().await, LifeOver::DeclaredDead);
    submitted(&store, 2).await;
    let later = Instant::now() + seconds(60);
    until(seconds(70), "a minute", async || (Instant::now() > later).then_some(())).await;
    assert_eq!(stored(&store, 1).await.snapshot.status, Status::Submitted, "not stored");
    assert_eq!(remote.polls(), 1, "nothing claimed");
    assert!(!replica.membership.may_act());
}

#[tokio::test(start_paused = true)]
async fn shards_are_shared_out_and_every_task_has_one_poller_at_a_time() {
    // Durability.md 1.2, soft shards; invariant T4.
    let (store, remote) = (Memory::default(), Remote::default());
    let replicas = [
        Replica::start(&store, &remote, "a", TaskLimits::default()).await,
        Replica::start(&store, &remote, "b", TaskLimits::default()).await,
    ];
    for number in 1..=40 {
        remote.says(&remote_id(number), [Said::Is(Status::Working), Said::Is(Status::Completed)]);
        submitted(&store, number).await;
    }
    for number in 1..=40 {
        ended(&store, number, seconds(30)).await;
    }
    assert_eq!(remote.polls(), 80);
    assert!(replicas.iter().all(|replica| replica.membership.peers().alive().len() == 2));
}
