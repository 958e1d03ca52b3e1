//! The command line: the same verbs, by itself or against a running replica.

use std::process::Output;
use std::time::Duration;

use caribou_tests::{Caribou, Setup, StdioFake};
use serde_json::{Value, json};

/// How long a command may take on a loaded machine.
const ENOUGH: Duration = Duration::from_secs(60);

async fn run(setup: &Setup, words: &[&str]) -> Output {
    tokio::time::timeout(ENOUGH, setup.command(words).output()).await.expect("the command ends").unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn the_demo_shows_two_counters_and_ends_when_told_to() {
    let output = run(&Setup::new(), &["demo", "--once"]).await;
    assert!(output.status.success(), "{}", text(&output));
    let shown = text(&output);
    for word in ["counter", "ann", "kitchen", "garden"] {
        assert!(shown.contains(word), "{shown}");
    }
}

#[tokio::test]
async fn tools_are_listed_and_called_without_a_replica() {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "echo": ["default"] } }));
    let setup = setup.server("fake", fake.entry());
    let listed = run(&setup, &["tools", "list", "--json"]).await;
    let tools: Value = serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("{}", text(&listed)));
    assert_eq!(tools["tools"][0]["name"], "fake_echo");
    let called = run(&setup, &["tools", "call", "fake_echo", "--arg", "n=1", "--json"]).await;
    assert!(called.status.success() && text(&called).contains("content"), "{}", text(&called));
    let missing = run(&setup, &["tools", "call", "fake_none"]).await;
    assert!(!missing.status.success());
}

#[tokio::test]
async fn a_running_replica_is_asked_when_one_is_named() {
    let (caribou, _fake) = Caribou::with_stdio(json!({ "calls": { "count": [{ "text": "$N" }] } })).await;
    let setup = Setup::new().variable("CARIBOU_SERVER", caribou.url());
    for count in ["1", "2"] {
        let called = run(&setup, &["tools", "call", "fake_count", "--thread", "t"]).await;
        assert!(String::from_utf8_lossy(&called.stdout).contains(count), "{}", text(&called));
    }
    let sessions = run(&setup, &["sessions", "--json"]).await;
    assert!(text(&sessions).contains("\"fake\""), "{}", text(&sessions));
    let servers = run(&setup, &["servers"]).await;
    assert!(text(&servers).contains("ready"), "{}", text(&servers));
}
