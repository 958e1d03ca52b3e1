//! Sessions: one for each server, user and thread; shared by concurrent callers; ended, counted and told about.

use std::time::{Duration, Instant};

use caribou_tests::{Caribou, Setup, StdioFake, eventually};
use futures::future::join_all;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

fn counter() -> Value {
    json!({ "calls": { "count": [{ "text": "$N of $PID" }] } })
}

/// Contract 4.1, scope.
#[tokio::test]
async fn each_thread_has_its_own_state_and_keeps_it() {
    let (caribou, _fake) = Caribou::with_stdio(counter()).await;
    let mut told = Vec::new();
    for thread in ["a", "a", "b", "a"] {
        told.push(caribou.call_in(thread, "fake_count", json!({})).await.text());
    }
    let counts: Vec<&str> = told.iter().map(|text| text.split(' ').next().unwrap()).collect();
    assert_eq!(counts, ["1", "2", "1", "3"]);
    let answer = caribou.get("/api/mcp/sessions").await.json();
    assert_eq!(answer["sessions"].as_array().unwrap().len(), 2, "{answer}");
}

/// Contract 4.2, point 4.
#[tokio::test]
async fn concurrent_first_calls_share_one_session() {
    let script =
        json!({ "on": { "initialize": [{ "pause_ms": 300 }, "default"] }, "calls": { "who": [{ "text": "$PID" }] } });
    let (caribou, fake) = Caribou::with_stdio(script).await;
    caribou.tools().await;
    let before = fake.log().pids().len();
    let answers = join_all((0..20).map(|_| caribou.call_in("t", "fake_who", json!({})))).await;
    let mut pids: Vec<String> = answers.iter().map(|answer| answer.text()).collect();
    pids.dedup();
    assert_eq!((pids.len(), fake.log().pids().len() - before), (1, 1));
}

/// Contract 4.4, disconnect during a tool call; invariants S2, S4 and L2.
#[tokio::test]
async fn a_server_that_dies_fails_its_calls_at_once_and_none_is_repeated() {
    let script = json!({ "calls": { "die": [{ "die": 7 }], "slow": ["hang"], "count": [{ "text": "$N of $PID" }] } });
    let (caribou, fake) = Caribou::with_stdio(script).await;
    let first = caribou.call_in("t", "fake_count", json!({})).await;
    assert_eq!(first.json()["session"]["restarted"], false);
    let begun = Instant::now();
    let (slow, ()) = tokio::join!(caribou.call_in("t", "fake_slow", json!({})), async {
        eventually(SOON, "the slow call", async || {
            fake.log().received("tools/call").iter().any(|seen| seen.raw.contains("slow")).then_some(())
        })
        .await;
        let died = caribou.call_in("t", "fake_die", json!({})).await;
        assert_eq!((died.status, died.code().as_str()), (502, "outcome_unknown"), "{died:?}");
    });
    assert_eq!(slow.code(), "outcome_unknown");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let next = caribou.call_in("t", "fake_count", json!({})).await;
    assert!(next.text().starts_with("1 of "), "{next:?}");
    assert_eq!(next.json()["session"]["restarted"], true);
    let epoch = |answer: &caribou_tests::Answer| answer.json()["session"]["epoch"].as_u64().unwrap();
    assert!(epoch(&next) > epoch(&first));
    assert_eq!(caribou.call_in("t", "fake_count", json!({})).await.json()["session"]["restarted"], false);
    let deaths = fake.log().received("tools/call").iter().filter(|seen| seen.raw.contains("\"die\"")).count();
    assert_eq!(deaths, 1);
    assert!(caribou_tests::process::zombies(caribou.pid()).is_empty());
}

/// Contract 4.4, explicit close; 4.2, point 5.
#[tokio::test]
async fn closing_a_thread_ends_the_sessions_of_its_user_only() {
    let (caribou, fake) = Caribou::with_stdio(counter()).await;
    let call = |user: &str| json!({ "name": "fake_count", "thread_id": "t", "user_id": user }).to_string();
    for user in ["ann", "bob"] {
        assert_eq!(caribou.post("/api/mcp/tools/call", call(user)).await.status, 200);
    }
    let answer = caribou.delete("/api/threads/t/mcp-sessions?user_id=ann").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let ann = caribou.post("/api/mcp/tools/call", call("ann")).await;
    let bob = caribou.post("/api/mcp/tools/call", call("bob")).await;
    assert!(ann.text().starts_with("1 of ") && bob.text().starts_with("2 of "), "{ann:?} {bob:?}");
    assert!(fake.log().events("term").is_empty(), "a server that leaves at the end of its input gets no signal");
}

/// Contract 4.1, capacity; invariants S3 and B1: those being created count, whoever fails.
#[tokio::test]
async fn a_hundred_threads_share_four_places() {
    let setup = Setup::new().settings("sessions:\n  max_live: 4\n");
    let script = json!({ "calls": { "who": [{ "text": "$PID" }] } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry()).start().await;
    caribou.tools().await;
    let mut most = 0;
    let calls = join_all((0..100).map(|n| {
        let caribou = &caribou;
        async move { caribou.call_in(&format!("t{n}"), "fake_who", json!({})).await }
    }));
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    tokio::pin!(calls);
    let answers = loop {
        tokio::select! {
            answers = &mut calls => break answers,
            _ = looks.tick() => most = most.max(fake.alive().len()),
        }
    };
    let failed: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(failed.is_empty(), "{} failed, such as {:?}", failed.len(), failed[0]);
    assert!((1..=4).contains(&most), "{most} processes at once");
}

/// Invariant B1.
#[tokio::test]
async fn a_full_session_refuses_at_once() {
    let setup = Setup::new().settings("sessions:\n  max_calls_per_session: 2\n");
    let gate = setup.home().join("gate");
    let script = json!({ "calls": { "wait": [{ "until_file": gate }, { "text": "through" }] } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry()).start().await;
    let (waiting, ()) = tokio::join!(join_all((0..2).map(|_| caribou.call_in("t", "fake_wait", json!({})))), async {
        eventually(SOON, "two calls", async || (fake.log().received("tools/call").len() == 2).then_some(())).await;
        let begun = Instant::now();
        let refused = caribou.call_in("t", "fake_wait", json!({})).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "busy"), "{refused:?}");
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
        caribou.home().write("gate", "");
    });
    assert!(waiting.iter().all(|answer| answer.text() == "through"));
}
