//! What the owner of a session makes of calls that come from another replica.

use std::sync::atomic::Ordering;
use std::time::Duration;

use caribou_core::ids::{BootId, Epoch, Scope, ServerName, SessionKey};
use caribou_core::session::NotTaken;
use caribou_ports::mcp::{CallError, ToolCall};
use caribou_ports::peers::{Exchange, PeerAnswer, PeerError, PeerRequest, Wanted};
use caribou_runtime::{ExchangeRefused, RunningExchange};

use super::{Member, World};
use crate::fake::call;
use crate::tasks::until;

fn boot() -> BootId {
    BootId::from("a")
}

fn key() -> SessionKey {
    SessionKey { server: ServerName::from("s"), scope: Scope::new(Some("ann"), Some("t")), credential: None }
}

fn exchange(tool: &str, call_id: &str) -> Exchange {
    let call = ToolCall {
        name: tool.into(),
        arguments: None,
        meta: Vec::new(),
        headers: Vec::new(),
        progress: None,
        task: None,
    };
    Exchange {
        key: key(),
        epoch: Epoch(1),
        call_id: call_id.to_owned(),
        is_again: false,
        hops: 1,
        within: Duration::from_secs(60),
        request: PeerRequest::CallTool(call),
    }
}

async fn answered(mut running: RunningExchange) -> String {
    match running.answer().await.unwrap() {
        PeerAnswer::Result(result) => result.get().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// A replica that holds the session at epoch 1.
async fn owner() -> World {
    let world = World::plain(&["a"]).await;
    world.replicas[0].runtime.call_tool(call("s_count", "t")).await.unwrap();
    world
}

fn refused(member: &Member, exchange: Exchange) -> ExchangeRefused {
    member.runtime.exchange_for_peer(&boot(), exchange).err().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_once_however_often_it_is_asked_for_under_its_name() {
    // Invariant S2.
    let world = owner().await;
    let a = &world.replicas[0];
    let before = a.fake.calls.load(Ordering::SeqCst);
    let first = a.runtime.exchange_for_peer(&boot(), exchange("slow", "one")).unwrap();
    let second = a.runtime.exchange_for_peer(&boot(), Exchange { is_again: true, ..exchange("slow", "one") }).unwrap();
    let (first, second) = tokio::join!(answered(first), answered(second));
    assert_eq!(first, second);
    let later = Exchange { is_again: true, ..exchange("slow", "one") };
    assert_eq!(answered(a.runtime.exchange_for_peer(&boot(), later).unwrap()).await, first);
    assert_eq!(a.fake.calls.load(Ordering::SeqCst), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_caller_is_lost_goes_on_for_a_while_and_is_then_given_up() {
    let world = owner().await;
    let a = &world.replicas[0];
    drop(a.runtime.exchange_for_peer(&boot(), exchange("slow", "one")).unwrap());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let joined = a.runtime.exchange_for_peer(&boot(), Exchange { is_again: true, ..exchange("slow", "one") }).unwrap();
    answered(joined).await;
    assert_eq!(a.fake.cancelled.load(Ordering::SeqCst), 0);
    drop(a.runtime.exchange_for_peer(&boot(), exchange("hang", "two")).unwrap());
    until("it is given up", async || a.fake.cancelled.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_caller_gives_up_is_cancelled_at_once() {
    let world = owner().await;
    let a = &world.replicas[0];
    let mut running = a.runtime.exchange_for_peer(&boot(), exchange("hang", "one")).unwrap();
    tokio::select! {
        _ = running.next() => panic!("it hangs"),
        () = until("it is in flight", async || a.fake.calls.load(Ordering::SeqCst) >= 2) => {}
    }
    let began = tokio::time::Instant::now();
    running.cancel();
    until("it is cancelled", async || a.fake.cancelled.load(Ordering::SeqCst) == 1).await;
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn only_the_life_that_is_meant_at_the_epoch_that_is_meant_takes_a_call() {
    // Invariants L1, S1.
    let world = owner().await;
    let a = &world.replicas[0];
    let not_taken = ExchangeRefused::NotTaken;
    assert_eq!(refused(a, Exchange { hops: 2, ..exchange("count", "1") }), not_taken(NotTaken::TooManyHops));
    assert_eq!(refused(a, Exchange { epoch: Epoch(2), ..exchange("count", "2") }), not_taken(NotTaken::WrongEpoch));
    assert_eq!(refused(a, Exchange { is_again: true, ..exchange("count", "3") }), ExchangeRefused::UnknownCall);
    let other = SessionKey { server: ServerName::from("other"), ..key() };
    assert_eq!(refused(a, Exchange { key: other, ..exchange("count", "4") }), not_taken(NotTaken::NotOwner));
    let meant = a.runtime.exchange_for_peer(&BootId::from("z"), exchange("count", "5")).err().unwrap();
    assert_eq!(meant, not_taken(NotTaken::WrongBoot));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_wanted_but_not_held_is_refused_and_a_placed_one_is_opened() {
    let world = owner().await;
    let a = &world.replicas[0];
    let elsewhere = SessionKey { scope: Scope::new(Some("ann"), Some("new")), ..key() };
    let wanted = |epoch| Wanted { key: elsewhere.clone(), headers: Vec::new(), epoch, within: Duration::from_secs(30) };
    let refused = a.runtime.open_for_peer(&boot(), 1, wanted(Some(Epoch(3)))).await.err().unwrap();
    assert!(matches!(refused, PeerError::NotTaken(NotTaken::NotOwner)), "{refused}");
    let opened = a.runtime.open_for_peer(&boot(), 1, wanted(None)).await.unwrap();
    assert_eq!(opened.epoch, Epoch(1));
    let again = a.runtime.open_for_peer(&boot(), 1, wanted(None)).await.unwrap();
    assert_eq!(again.epoch, Epoch(1), "it is held, and not opened twice");
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_call_in_a_session_that_ends_is_told_as_it_is() {
    let world = owner().await;
    let a = &world.replicas[0];
    let mut running = a.runtime.exchange_for_peer(&boot(), exchange("die", "one")).unwrap();
    assert!(matches!(running.answer().await, Err(CallError::Disconnected { sent: true, .. })));
}
