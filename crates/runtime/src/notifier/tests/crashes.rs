//! Replicas that die, stop or lose their lease while an event is being told.

use std::time::Duration;

use caribou_core::notification::Phase;
use caribou_core::task::TaskLimits;
use caribou_ports::event_sink::{Launched, Run};
use caribou_store::Memory;

use super::receiver::{Receiver, Take};
use super::replica::{Replica, delivery, key, tells, until};

const HOUR: Duration = Duration::from_secs(3_600);

fn succeeds(_: &str, _: u32) -> Run {
    Run::Succeeded
}

/// Hangs once, after the launch has had its effect.
fn hangs_once() -> Receiver {
    Receiver::new(|_, before| if before == 0 { Take::Hang } else { Take::Launch }, succeeds)
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_replica_was_telling_is_told_by_another_under_the_same_key() {
    // Durability.md 1.9; contract 6.9, a recovered launching row keeps its event and key.
    let (store, receiver) = (Memory::default(), hangs_once());
    let dying = Replica::start(&store, &receiver, "a", TaskLimits::default()).await;
    tells(&store, 1).await;
    until("asked", HOUR, async || receiver.keys().len() == 1).await;
    let other = Replica::start(&store, &receiver, "b", TaskLimits::default()).await;
    dying.kill();
    assert_eq!(delivery(&store, 1).await.unwrap().phase, Phase::Launching);
    // Sooner than its claim of 120 s expires: the other replica buries the dead one.
    until("told", Duration::from_secs(60), async || delivery(&store, 1).await.is_none()).await;
    assert_eq!(receiver.keys(), vec![key(1, 1, 0); 2]);
    other.stop(&store).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_stopping_replica_does_not_finish_is_given_back_at_once() {
    let (store, receiver) = (Memory::default(), hangs_once());
    let stopping = Replica::start(&store, &receiver, "a", TaskLimits::default()).await;
    tells(&store, 1).await;
    until("asked", HOUR, async || receiver.keys().len() == 1).await;
    stopping.stop(&store).await;
    assert_eq!(receiver.seen().under_way, 0, "what it was at has ended");
    tells(&store, 2).await;
    let _other = Replica::start(&store, &receiver, "b", TaskLimits::default()).await;
    // The second hangs too, for a minute; the first was given back.
    until("told", Duration::from_secs(10), async || delivery(&store, 1).await.is_none()).await;
    assert_eq!(receiver.keys().iter().filter(|launched| **launched == key(1, 1, 0)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_trust_tells_nothing() {
    // Invariant L1.
    let store = Memory::default();
    let receiver = Receiver::new(|_, _| Take::Say(Launched::Delivered), succeeds);
    let _untrusted = Replica::untrusted(&store, &receiver, "a", TaskLimits::default()).await;
    tells(&store, 1).await;
    tokio::time::advance(Duration::from_secs(300)).await;
    let trusted = Replica::start(&store, &receiver, "b", TaskLimits::default()).await;
    tells(&store, 2).await;
    until("told", HOUR, async || delivery(&store, 2).await.is_none()).await;
    until("told", HOUR, async || delivery(&store, 1).await.is_none()).await;
    assert_eq!(receiver.keys().len(), 2, "each once, by the one that is trusted");
    trusted.stop(&store).await;
    tells(&store, 3).await;
    let asked = async || {
        tokio::time::advance(Duration::from_secs(1)).await;
        delivery(&store, 3).await.is_none()
    };
    for _ in 0..60 {
        assert!(!asked().await, "nobody is left who may tell");
    }
}
