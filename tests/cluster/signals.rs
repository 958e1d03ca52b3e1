//! Hints over a real Redis: heard at once, never taken back, and lost without harm (durability.md §4; invariant G2).

use std::time::Duration;

use caribou_core::config::Secret;
use caribou_core::reset::{ResetGeneration, ResetScope};
use caribou_ports::reset_signal::{HeardReset, HeardResets, ResetSignal};
use caribou_signals::RedisSignal;
use caribou_tests::{Redis, eventually, process};
use rustix::process::Signal;
use tokio::time::{Instant, timeout};

const SOON: Duration = Duration::from_secs(20);

const KEY: &str = "caribou:test:gen:global";

fn at(origin: u8, counter: i64) -> ResetGeneration {
    ResetGeneration { origin: [origin; 16], counter }
}

fn signal(redis: &Redis) -> RedisSignal {
    RedisSignal::new(&Secret::new(redis.url()), "caribou:test").unwrap()
}

async fn listener(signal: &RedisSignal, scopes: &[ResetScope]) -> Box<dyn HeardResets> {
    eventually(SOON, "a subscription", async || signal.listen(scopes.to_vec()).await.ok()).await
}

/// The next generations that are heard.
async fn heard(listener: &mut dyn HeardResets) -> Vec<(ResetScope, ResetGeneration)> {
    loop {
        match timeout(SOON, listener.next()).await.expect("something is heard").unwrap() {
            HeardReset::Generations(told) => return told,
            HeardReset::Alive => {}
            HeardReset::Anything => panic!("not understood"),
        }
    }
}

/// What stands in Redis, past our own code.
async fn stored(redis: &Redis) -> String {
    // A bulk string comes in two lines; the script's answer in one.
    redis.ask(&format!("EVAL \"return {{ok = redis.call('GET', KEYS[1]) or 'none'}}\" 1 {KEY}")).await.unwrap()
}

#[tokio::test]
async fn a_key_never_goes_back_within_a_count_and_gives_way_to_another_one() {
    let redis = Redis::start().await;
    let signal = signal(&redis);
    let mut listener = listener(&signal, &[]).await;
    assert_eq!(heard(&mut *listener).await, []);
    let expected = [at(1, 5), at(1, 4), at(1, 5), at(1, 6), at(2, 1), at(2, 10), at(2, 9)];
    let stands = [at(1, 5), at(1, 5), at(1, 5), at(1, 6), at(2, 1), at(2, 10), at(2, 10)];
    for (told, stands) in expected.into_iter().zip(stands) {
        signal.tell(ResetScope::Global, told).await.unwrap();
        assert_eq!(stored(&redis).await, format!("+{stands}"), "after {told}");
    }
    let server = ResetScope::Server("a b".into());
    signal.tell(server.clone(), at(3, 1)).await.unwrap();
    // Everything was told but what had been told before.
    for told in [at(1, 5), at(1, 4), at(1, 6), at(2, 1), at(2, 10), at(2, 9)] {
        assert_eq!(heard(&mut *listener).await, [(ResetScope::Global, told)]);
    }
    assert_eq!(heard(&mut *listener).await, [(server, at(3, 1))]);
}

#[tokio::test]
async fn of_many_that_tell_at_once_the_newest_stays_and_all_are_heard() {
    let redis = Redis::start().await;
    let mut listener = listener(&signal(&redis), &[]).await;
    assert_eq!(heard(&mut *listener).await, []);
    let tellers: Vec<_> = (0..4).map(|_| signal(&redis)).collect();
    let telling = (1..=100).map(|counter| {
        let teller = &tellers[usize::try_from(counter).unwrap() % tellers.len()];
        async move { teller.tell(ResetScope::Global, at(1, counter)).await.unwrap() }
    });
    futures::future::join_all(telling).await;
    let mut counters = Vec::new();
    while counters.len() < 100 {
        counters.extend(heard(&mut *listener).await.into_iter().map(|(_, told)| told.counter));
    }
    counters.sort_unstable();
    assert_eq!(counters, (1..=100).collect::<Vec<_>>());
    assert_eq!(stored(&redis).await, format!("+{}", at(1, 100)));
}

#[tokio::test]
async fn whoever_subscribes_hears_first_how_everything_stands_as_far_as_redis_knows() {
    let mut redis = Redis::start().await;
    let signal = signal(&redis);
    signal.tell(ResetScope::Global, at(1, 5)).await.unwrap();
    let scopes = [ResetScope::Global, ResetScope::Document];
    let mut listening = listener(&signal, &scopes).await;
    assert_eq!(heard(&mut *listening).await, [(ResetScope::Global, at(1, 5))]);

    // It dies and comes back empty: the listener ends, the next one hears of nothing, and what is told then is heard.
    redis.kill();
    let ended = timeout(SOON, async { while listening.next().await.is_ok() {} }).await;
    assert!(ended.is_ok(), "a dead Redis ends a subscription");
    assert!(signal.tell(ResetScope::Global, at(1, 6)).await.is_err());
    redis.start_again().await;
    let mut listening = listener(&signal, &scopes).await;
    assert_eq!(heard(&mut *listening).await, []);
    eventually(SOON, "the way back to Redis", async || signal.tell(ResetScope::Global, at(1, 6)).await.ok()).await;
    assert_eq!(heard(&mut *listening).await, [(ResetScope::Global, at(1, 6))]);

    // So does a flush: what was known is told again.
    redis.ask("FLUSHALL").await.unwrap();
    signal.tell(ResetScope::Global, at(1, 6)).await.unwrap();
    assert_eq!(heard(&mut *listening).await, [(ResetScope::Global, at(1, 6))]);
}

#[tokio::test]
async fn a_redis_that_stands_still_is_found_out_by_its_silence() {
    let redis = Redis::start().await;
    let signal = signal(&redis);
    let mut listening = listener(&signal, &[]).await;
    assert_eq!(heard(&mut *listening).await, []);
    assert_eq!(timeout(SOON, listening.next()).await.unwrap(), Ok(HeardReset::Alive), "it answers a ping");
    process::signal(redis.pid(), Signal::STOP);
    let began = Instant::now();
    let lost = timeout(SOON, listening.next()).await.expect("found out");
    let telling = timeout(SOON, signal.tell(ResetScope::Global, at(1, 1))).await.expect("a bounded wait");
    process::signal(redis.pid(), Signal::CONT);
    assert!(lost.is_err() && telling.is_err());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
