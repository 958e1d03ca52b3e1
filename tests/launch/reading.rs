//! Arguments made at random, read by npm's own reader: whatever we accept, it finds no code in.

use std::process::Stdio;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use rstest::rstest;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::canary::verdict;
use crate::npm::{Npm, RUN};

const LISTS: usize = 5_000;

/// At least this many of them must be accepted, and as many be code, or the lists prove nothing.
const ENOUGH: usize = 500;

const OPTIONS: [&str; 76] = [
    "-y",
    "-p",
    "-c",
    "-n",
    "-no",
    "-local",
    "-q",
    "-d",
    "-g",
    "-C",
    "-w",
    "-L",
    "-h",
    "-?",
    "-a",
    "-ws",
    "-desc",
    "-yc",
    "-cy",
    "--c",
    "--yc",
    "--p",
    "--no-yes",
    "--yes",
    "--package",
    "--call",
    "--cal",
    "-call",
    "--shell",
    "--script-shell",
    "--scr",
    "--node-options",
    "--node",
    "--node-opt",
    "--no-call",
    "--no-script-shell",
    "--no-node-options",
    "--no-no-yes",
    "--browser",
    "--brow",
    "-browser",
    "--no-browser",
    "--color",
    "--registry",
    "--scope",
    "--loglevel",
    "--otp",
    "--no-otp",
    "--zzz",
    "--no-zzz",
    "--json",
    "--npm",
    "--always-spawn",
    "--no-install",
    "--userconfig",
    "--cache",
    "--prefix",
    "--workspaces",
    "--no-key",
    "--No-key",
    "--before",
    "---",
    "----",
    "-",
    "--",
    "--=",
    "-=",
    "--yes=false",
    "--ca",
    "--optional",
    "--omit",
    "--no-package",
    "--proxy",
    "--umask",
    "--enjoy-by",
    "--reg",
];

const VALUES: [&str; 13] =
    ["X", "true", "false", "null", "pkg", "@s/p", "7", "", " ", "-- ", "-y ", "=x", "http://127.0.0.1:9/"];

/// One argument.
fn word() -> impl Strategy<Value = String> {
    let option = || select(&OPTIONS[..]).prop_map(str::to_owned);
    let value = || select(&VALUES[..]).prop_map(str::to_owned);
    let either = prop_oneof![option(), value()];
    prop_oneof![
        5 => option(),
        3 => value(),
        1 => (option(), either).prop_map(|(name, value)| format!("{name}={value}")),
        1 => "-[ycpngCdwalsBq]{1,3}",
    ]
}

#[rstest]
#[tokio::test]
async fn npm_finds_no_code_in_what_is_accepted(#[values("contract", "machine")] npm: &str) {
    let npm = Npm::installed(npm);
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(word(), 1..7);
    let lists: Vec<Vec<String>> = (0..LISTS).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    let found = read(&npm, &lists).await;
    assert_eq!(found.len(), LISTS);
    let accepted: Vec<bool> = lists.iter().map(|words| verdict(words, &[]).is_ok()).collect();
    for ((words, accepted), found) in lists.iter().zip(&accepted).zip(&found) {
        assert!(!(*accepted && *found), "accepted, and code to npm: {words:?}");
    }
    for (what, which) in [("accepted", accepted), ("code", found)] {
        let count = which.into_iter().filter(|yes| *yes).count();
        assert!(count >= ENOUGH, "only {count} lists are {what}");
    }
}

async fn read(npm: &Npm, lists: &[Vec<String>]) -> Vec<bool> {
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/launch/reading.js");
    let mut node = tokio::process::Command::new("node")
        .arg(reader)
        .arg(&npm.package)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = node.stdin.take().unwrap();
    stdin.write_all(&serde_json::to_vec(lists).unwrap()).await.unwrap();
    drop(stdin);
    let output = timeout(RUN, node.wait_with_output()).await.expect("npm reads in time").unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}
