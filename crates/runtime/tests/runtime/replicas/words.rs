//! What clients say to another replica than the one that asked them (mcp.md 14.3, legacy client).

use std::sync::Arc;
use std::time::Duration;

use caribou_ports::peers::{ClientSays, ClientWord};
use caribou_runtime::Options;
use serde_json::value::to_raw_value;
use tokio::time::{Instant, sleep};

use super::World;

fn answer(session: &str) -> ClientWord {
    let says = ClientSays::Result("\"ask-1\"".to_owned(), to_raw_value("yes").unwrap());
    ClientWord { session: session.to_owned(), says }
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_a_replica_that_cannot_be_reached_for_a_moment_but_not_for_ever() {
    let world = World::plain(&["a", "b"]).await;
    let [a, b] = &world.replicas[..] else { unreachable!() };
    b.runtime.hear_clients(Arc::new(|word| word.session == "asked"));
    world.network.cut("b");
    let mended = async {
        sleep(Duration::from_secs(3)).await;
        world.network.mend("b");
    };
    let (heard, ()) = tokio::join!(a.runtime.tell_replica("b", answer("asked")), mended);
    assert!(heard.unwrap());
    assert!(!a.runtime.tell_replica("b", answer("not asked")).await.unwrap());
    world.network.cut("b");
    let began = Instant::now();
    assert!(a.runtime.tell_replica("b", answer("asked")).await.is_err());
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn an_answer_finds_a_replica_that_has_just_begun_and_nobody_in_a_life_that_never_was() {
    let world = World::plain(&["a", "b"]).await;
    let young = world.begun("young", Options::default(), None).await;
    young.runtime.hear_clients(Arc::new(|_| true));
    let [a, _] = &world.replicas[..] else { unreachable!() };
    assert!(a.runtime.tell_replica("young", answer("asked")).await.unwrap());
    let began = Instant::now();
    assert!(!a.runtime.tell_replica("never", answer("asked")).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(5));
}
