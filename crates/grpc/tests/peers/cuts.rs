//! Calls given up, and connections that break off in the middle (invariants S2 and B1).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use caribou_ports::mcp::{CallError, Progress, Session};
use caribou_ports::peers::Peers as _;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::stand::{Replica, SOON, cabled, call, reached};

type Outcome = Result<String, CallError>;

fn begin(session: &Arc<dyn Session>) -> JoinHandle<Outcome> {
    let session = session.clone();
    tokio::spawn(async move { Ok(session.call_tool(call("wait", Some("[1.0]"))).await?.get().to_owned()) })
}

async fn outcome(calling: JoinHandle<Outcome>) -> Outcome {
    timeout(SOON, calling).await.unwrap().unwrap()
}

fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Err(CallError::Disconnected { sent: true, .. }))
}

#[tokio::test]
async fn a_call_that_is_dropped_is_given_up_where_it_runs_within_a_second() {
    let (replica, _proxy, _client, session) = cabled().await;
    let calling = begin(&session);
    reached(&replica.owner.begun, 1).await;
    calling.abort();
    timeout(Duration::from_secs(1), reached(&replica.owner.cancelled, 1)).await.unwrap();
    assert_eq!(replica.owner.losses(), 0, "it was said, not lost");
    replica.owner.go_on.notify_one();
    assert!(session.call_tool(call("echo", None)).await.is_ok(), "the session goes on");
}

#[tokio::test]
async fn a_connection_that_is_cut_in_a_call_is_made_again_and_the_call_is_made_once() {
    let (replica, proxy, _client, session) = cabled().await;
    let heard = Arc::new(Mutex::new(0));
    let reports = heard.clone();
    let mut waiting = call("wait", Some("[1.0]"));
    waiting.progress = Some(Arc::new(move |progress| {
        assert!(matches!(progress, Progress::Message(_)));
        *reports.lock().unwrap() += 1;
    }));
    let caller = session.clone();
    let calling = tokio::spawn(async move { Ok(caller.call_tool(waiting).await?.get().to_owned()) });
    reached(&replica.owner.begun, 1).await;
    for cut in 1..=3 {
        proxy.cut();
        reached(&replica.owner.joined, cut + 1).await;
    }
    replica.owner.go_on.notify_one();
    assert_eq!(outcome(calling).await.unwrap(), "[1.0]");
    assert_eq!(*replica.owner.begun.borrow(), 1, "made once");
    assert_eq!(*replica.owner.cancelled.borrow(), 0, "and not given up");
    assert_eq!((*heard.lock().unwrap(), replica.owner.losses()), (1, 3), "it was joined by each connection");
    assert!(session.call_tool(call("echo", None)).await.is_ok(), "the session goes on");
}

#[tokio::test]
async fn a_call_whose_owner_is_gone_may_have_been_made() {
    let (replica, mut proxy, _client, session) = cabled().await;
    let (calling, began) = (begin(&session), Instant::now());
    reached(&replica.owner.begun, 1).await;
    replica.kill();
    proxy.close().await;
    let outcome = outcome(calling).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(5));
    timeout(SOON, session.ended()).await.unwrap();
    let next = session.call_tool(call("echo", None)).await.unwrap_err();
    assert!(matches!(next, CallError::Disconnected { sent: false, .. }), "{next:?}");
}

#[tokio::test]
async fn another_life_at_the_same_address_knows_nothing_of_the_call() {
    let (replica, proxy, _client, session) = cabled().await;
    let another = Replica::plain("b2").await;
    let calling = begin(&session);
    reached(&replica.owner.begun, 1).await;
    proxy.lead_to(another.address);
    proxy.cut();
    let outcome = outcome(calling).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert_eq!(*another.owner.begun.borrow(), 0);
}

#[tokio::test]
async fn the_same_life_that_has_forgotten_the_call_does_not_make_it_again() {
    let (replica, proxy, _client, session) = cabled().await;
    let forgetful = Replica::plain("b").await;
    let calling = begin(&session);
    reached(&replica.owner.begun, 1).await;
    proxy.lead_to(forgetful.address);
    proxy.cut();
    let outcome = outcome(calling).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert_eq!(*forgetful.owner.begun.borrow(), 0);
}

#[tokio::test]
async fn a_life_that_takes_no_part_any_more_is_given_up_with_its_sessions() {
    let (replica, _proxy, client, session) = cabled().await;
    let calling = begin(&session);
    reached(&replica.owner.begun, 1).await;
    client.keep(&["b".into()]);
    assert!(session.call_tool(call("echo", None)).await.is_ok());
    client.keep(&["other".into()]);
    timeout(SOON, session.ended()).await.unwrap();
    let outcome = outcome(calling).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn before_anything_was_sent_a_lost_replica_is_looked_up_again() {
    let (_replica, mut proxy, _client, session) = cabled().await;
    proxy.close().await;
    let refused = session.call_tool(call("echo", None)).await.unwrap_err();
    assert!(matches!(refused, CallError::Disconnected { sent: false, .. }), "{refused:?}");
    timeout(SOON, session.ended()).await.unwrap();
}
