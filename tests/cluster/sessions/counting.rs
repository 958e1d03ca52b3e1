//! A counter that is called at three replicas in turn: no number is left out and none comes twice (invariants S1, S3).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use caribou_tests::counter_server::{Bearing, Life};
use futures::StreamExt as _;
use futures::future::join_all;

use super::balancer::USER;
use super::history::{Call, Outcome};
use super::stand::{Stand, threads};

/// Calls, and how many are made at the same time.
const CALLS: usize = 1_000;
const AT_ONCE: usize = 12;

/// Keys.
const THREADS: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_round_three_replicas_count_without_a_gap() {
    let stand = Stand::open(3, "").await;
    let (balancer, threads) = (stand.balancer(), threads(THREADS));
    let calls = (0..CALLS).map(|n| balancer.count(&threads[n % THREADS], Duration::ZERO));
    let calls: Vec<_> = futures::stream::iter(calls).buffer_unordered(AT_ONCE).collect().await;
    let verdict = stand.judge("A counter at three replicas").await;
    verdict.assert_safe();
    assert_eq!(verdict.failed().map(|call| format!("{call:?}")).collect::<Vec<_>>(), Vec::<String>::new());
    let mut counts: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    let mut doors: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for call in &calls {
        counts.entry(&call.thread).or_default().extend(call.counted().map(|counted| counted.count));
        doors.entry(&call.thread).or_default().extend(call.seat);
    }
    for thread in &threads {
        let each = CALLS / THREADS;
        assert_eq!(counts[&**thread], (1..=each as u64).collect(), "{thread}");
        // It has bitten: two in three calls came by the door of a replica that does not hold the session.
        assert_eq!(doors[&**thread].len(), 3, "{thread}");
    }
    let lives: Vec<&Life> = verdict.lives.all().collect();
    assert_eq!(lives.len(), THREADS, "one child for each key: {lives:#?}");
    // Whoever is asked first holds it, so the sessions are not all in one place.
    let holders: BTreeSet<&str> = lives.iter().map(|life| life.boot.as_str()).collect();
    assert!(holders.len() >= 2, "{holders:?}");
}

/// A server that leaves neither at the end of its input nor on SIGTERM is there for two graces after its session was
/// closed; whoever calls meanwhile waits (invariant S3).
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_closes_slowly_begins_nowhere_before_its_server_is_gone() {
    let bearing = Bearing { is_stubborn: true, starts_daemon: true, floods: false };
    let stand = Stand::open_with(3, "", bearing).await;
    let (balancer, threads) = (stand.balancer(), threads(2));
    stand.warm(&threads).await;
    for _ in 0..2 {
        for thread in &threads {
            let call = balancer.count(thread, Duration::ZERO).await;
            let owner = call.counted().and_then(|counted| stand.replicas.seat_of(&counted.replica));
            let owner = stand.replicas.on(owner.unwrap_or_else(|| panic!("nobody holds {call:?}")));
            let path = format!("/api/threads/{thread}/mcp-sessions?user_id={USER}");
            // Six calls, so that each replica is asked twice while it closes.
            let calls = join_all((0..6).map(|_| balancer.count(thread, Duration::ZERO)));
            let (closed, _) = tokio::join!(owner.delete(&path), calls);
            assert!(closed.status == 200 || closed.code() == "timeout", "{closed:?}");
        }
    }
    let verdict = stand.judge("Sessions that close slowly").await;
    verdict.assert_safe();
    // Whoever is asked to close a session may close one that is just being opened, or called; its callers are told so.
    let is_closed = |call: &&Call| match &call.outcome {
        Outcome::Refused(why) | Outcome::Unknown(why) => why.contains("was closed"),
        Outcome::Counted(_) => false,
    };
    let failed: Vec<&Call> = verdict.failed().filter(|call| !is_closed(call)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    // It has bitten: each was closed twice, and somebody waited for it.
    assert!(verdict.lives.by_session().values().all(|lives| lives.len() >= 3), "{:#?}", verdict.lives.by_session());
    assert!(verdict.calls.iter().any(|call| call.took_ms() > 2_000), "nobody waited");
}
