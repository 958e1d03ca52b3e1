//! Who holds a session, and how it changes hands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_core::failure::Code;
use caribou_core::ids::{Epoch, Scope, ServerName, SessionKey};
use caribou_core::session::SessionRow;
use caribou_ports::store::{Replicas as _, Sessions as _, ThreadVolumes as _};
use caribou_runtime::{CalledTool, Options, ServerState};
use futures::future::join_all;

use super::{Member, World};
use crate::fake::{anybody, call};
use crate::tasks::until;

const BOOTS: [&str; 3] = ["a", "b", "c"];

async fn count(member: &Member, thread: &str) -> CalledTool {
    member.runtime.call_tool(call("s_count", thread)).await.unwrap()
}

fn key(thread: &str) -> SessionKey {
    SessionKey { server: ServerName::from("s"), scope: Scope::new(Some("ann"), Some(thread)), credential: None }
}

/// Which child answered, and which call of it this was.
fn answer(called: &CalledTool) -> (u64, u64) {
    serde_json::from_str(called.result.get()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_session_lives_once_and_every_replica_reaches_it() {
    // Invariants S1, S3.
    let world = World::plain(&BOOTS).await;
    let first = count(&world.replicas[0], "t").await;
    for n in 2..30 {
        let member = &world.replicas[usize::try_from(n % 3).unwrap()];
        let called = count(member, "t").await;
        assert_eq!(answer(&called).1, n, "no call is lost and none is made twice");
        let seen = called.session.unwrap();
        assert_eq!((seen.replica.as_str(), seen.epoch, seen.restarted), ("a", Epoch(1), false));
    }
    assert!(!first.session.unwrap().restarted);
    let others = [&world.replicas[1], &world.replicas[2]];
    // One is the catalogue's, each replica's own.
    assert!(others.iter().all(|member| member.fake.opened.load(Ordering::SeqCst) <= 1));
    assert!(world.network.crossed() >= 18);
}

#[tokio::test(start_paused = true)]
async fn first_calls_of_one_thread_at_all_replicas_at_once_open_one_session() {
    let world = World::plain(&BOOTS).await;
    for member in &world.replicas {
        member.runtime.list_tools(&anybody(), &Scope::new(None, None)).await.unwrap();
    }
    let calls = (0..30).map(|n| count(&world.replicas[n % 3], "t"));
    let mut counts: Vec<u64> = join_all(calls).await.iter().map(|called| answer(called).1).collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=30).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_its_owner_closed_is_opened_anew_and_that_is_told_once() {
    // Invariant L2.
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    count(a, "t").await;
    assert_eq!(answer(&count(b, "t").await).1, 2);
    let closed = a.runtime.close_sessions(&anybody(), &Scope::new(Some("ann"), Some("t")), None).await.unwrap();
    assert_eq!(closed, 1);
    let again = count(b, "t").await;
    let seen = again.session.as_ref().unwrap();
    assert!(seen.restarted && seen.epoch > Epoch(1));
    assert_eq!(answer(&again).1, 1, "what it remembered is gone");
    assert!(!count(a, "t").await.session.unwrap().restarted, "told once in the cluster");
}

#[tokio::test(start_paused = true)]
async fn closing_reaches_sessions_wherever_they_live() {
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    count(a, "t").await;
    let alive = a.fake.alive.load(Ordering::SeqCst);
    let closed = b.runtime.close_sessions(&anybody(), &Scope::new(Some("ann"), Some("t")), None).await.unwrap();
    assert_eq!((closed, a.fake.alive.load(Ordering::SeqCst)), (1, alive - 1));
}

#[tokio::test(start_paused = true)]
async fn a_look_at_the_catalogue_ends_nobody_elses_look() {
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    let look = async |member: &Member, begins: Duration| {
        tokio::time::sleep(begins).await;
        member.runtime.refresh_tools(&anybody(), None).await.unwrap();
        member.runtime.servers(&anybody()).await[0].state
    };
    // A bring-up takes 10 ms: the second look is under way when the first one ends.
    let looks = tokio::join!(look(a, Duration::ZERO), look(b, Duration::from_millis(5)));
    assert_eq!(looks, (ServerState::Ready, ServerState::Ready));
    assert_eq!(b.fake.opened.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_drains_hands_its_idle_sessions_over_and_waits_for_the_busy_ones() {
    // Durability.md 2.2, drain.
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    count(a, "idle").await;
    // The one that it goes to has reached it where it is: it must not be sent back there.
    count(b, "idle").await;
    let busy = {
        let runtime = a.runtime.clone();
        tokio::spawn(async move { runtime.call_tool(call("s_slow", "busy")).await })
    };
    until("the call is in flight", async || a.fake.alive.load(Ordering::SeqCst) >= 2).await;
    let began = tokio::time::Instant::now();
    let drain = {
        let runtime = a.runtime.clone();
        tokio::spawn(async move { runtime.drain(Duration::from_secs(25)).await })
    };
    let idle = SessionRow::of(&key("idle"));
    until("the idle one is given back", async || {
        world.store.find_session(idle).await.unwrap().is_some_and(|held| held.owner.is_none())
    })
    .await;
    // A caller that comes to the one that drains is served by another.
    let (moved, through) = tokio::join!(count(b, "idle"), count(a, "idle"));
    drain.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
    for called in [moved, through] {
        assert_eq!(called.session.unwrap().replica.as_str(), "b");
    }
    busy.await.unwrap().unwrap();
    let held = world.store.list_sessions(None, 10).await.unwrap();
    assert!(held.iter().all(|session| session.owner.as_str() == "b"), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_full_has_new_sessions_opened_by_another() {
    let options = |boot: &str| Options { max_live_sessions: if boot == "a" { 5 } else { 100 }, ..Options::default() };
    let world = World::of(&["a", "b"], options).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    for n in 0..12 {
        count(a, &format!("t{n}")).await;
        // Loads are told with each renewal.
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
    assert!(b.fake.opened.load(Ordering::SeqCst) >= 6);
    assert!(a.fake.most_alive.load(Ordering::SeqCst) <= 5);
    let listed = a.runtime.sessions(&anybody()).await;
    assert_eq!(listed.len(), 12, "none was evicted, and all are listed");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_cannot_be_reached_is_waited_for_and_not_taken_from_while_it_lives() {
    // Invariant S3.
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    count(a, "t").await;
    count(b, "t").await;
    world.network.cut("a");
    let (called, ()) = tokio::join!(count(b, "t"), async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        world.network.mend("a");
    });
    assert_eq!(answer(&called).1, 3);
}

#[tokio::test(start_paused = true)]
async fn children_of_a_thread_that_has_files_are_started_where_they_are_or_nowhere() {
    // Contract 4.6: with a volume of its own for each replica.
    let world = World::with(&BOOTS, |_| Options::default(), &BOOTS).await;
    let [a, b, _] = &world.replicas[..] else { unreachable!() };
    world.folders.write("full");
    for thread in ["full", "bare"] {
        count(a, thread).await;
        let closed = a.runtime.close_sessions(&anybody(), &Scope::new(Some("ann"), Some(thread)), None).await;
        assert_eq!(closed.unwrap(), 1);
    }
    let bare = Scope::new(Some("ann"), Some("bare"));
    until("nothing binds the bare one", async || world.store.thread_volume(bare.clone()).await.unwrap().is_none())
        .await;
    assert_eq!(count(b, "bare").await.session.unwrap().replica.as_str(), "b");
    assert_eq!(count(b, "full").await.session.unwrap().replica.as_str(), "a");
    // The replica that has them is gone.
    a.runtime.stop().await;
    world.store.end("a".into()).await.unwrap();
    let refused = b.runtime.call_tool(call("s_count", "full")).await.err().unwrap();
    assert!(refused.code == Code::Unavailable && refused.detail.contains("threads.shared"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_not_given_away_while_its_child_is_still_closing() {
    // Invariant S3.
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    count(a, "t").await;
    count(b, "t").await;
    let others = a.fake.alive.load(Ordering::SeqCst) - 1;
    *a.fake.close_takes.lock().unwrap() = Duration::from_secs(3);
    let close = {
        let runtime = a.runtime.clone();
        tokio::spawn(async move { runtime.close_sessions(&anybody(), &Scope::new(Some("ann"), Some("t")), None).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (called, alive) = tokio::join!(count(b, "t"), async {
        let row = SessionRow::of(&key("t"));
        while world.store.find_session(row).await.unwrap().unwrap().owner.is_some_and(|owner| owner.boot == "a".into())
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        a.fake.alive.load(Ordering::SeqCst)
    });
    close.await.unwrap().unwrap();
    assert!(called.session.unwrap().restarted);
    assert_eq!(alive, others, "nothing is left of it when the row is free");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_called_without_end_is_handed_over_all_the_same() {
    // Durability.md 2.2, drain 3: running calls finish, later ones wait for the next owner.
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    count(a, "t").await;
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|n| {
            let (runtime, stop) = (world.replicas[n % 2].runtime.clone(), stop.clone());
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let called = runtime.call_tool(call("s_slow", "t")).await.unwrap();
                    seen.push(called.session.unwrap().replica);
                }
                seen
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let began = tokio::time::Instant::now();
    a.runtime.drain(Duration::from_secs(25)).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_secs(3)).await;
    stop.store(true, Ordering::SeqCst);
    for seen in join_all(callers).await {
        assert_eq!(seen.unwrap().last().map(|boot| boot.as_str().to_owned()).as_deref(), Some("b"), "no call failed");
    }
    assert!(b.fake.opened.load(Ordering::SeqCst) >= 1);
}
