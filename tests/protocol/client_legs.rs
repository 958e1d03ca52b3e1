//! The official conformance suite, at Caribou as a client: its upstream side at the servers that the suite plays
//! (mcp.md §15.3, §15.4).
//!
//! What fails today is listed beside, and a listed scenario that passes fails the test: the lists only shrink. A
//! scenario in which nothing was seen of the client passes in the suite, but not here.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use caribou_tests::{Caribou, Setup, third_party};
use rstest::rstest;
use serde_json::Value;

/// How long a run of all scenarios may take on a loaded machine.
const ENOUGH: Duration = Duration::from_secs(170);

/// What the suite grants each scenario, which waits for those before it, in milliseconds.
const ENOUGH_FOR_ONE: &str = "160000";

/// A scenario that measures a pause.
const TIMED: &str = "sse-retry";

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/client_legs").join(name)
}

/// Runs the suite with these further arguments, with Caribou as the client that it tries: whether it is content, and
/// all that it says.
async fn tried(caribou: &Caribou, arguments: &[&str]) -> (bool, String) {
    let mut suite = third_party::conformance();
    suite.args(["client", "--command"]).arg(format!("python3 {}", here("driver.py").display()));
    suite.args(["--timeout", ENOUGH_FOR_ONE, "--output-dir", "results"]).args(arguments);
    suite.env("NODE_OPTIONS", format!("--import {}", here("closing.mjs").display()));
    suite.env("DRIVEN_CARIBOU", caribou.url()).current_dir(caribou.home().path());
    let run = suite.stdin(Stdio::null()).kill_on_drop(true).output();
    let run = tokio::time::timeout(ENOUGH, run).await.expect("it ends").unwrap();
    let told = [run.stdout, run.stderr].map(|told| String::from_utf8_lossy(&told).into_owned());
    (run.status.success(), told.concat())
}

/// Whether all that is wrong is a pause that was kept for too long: that is said of a loaded machine too.
fn is_late(caribou: &Caribou, told: &str) -> bool {
    let unexpected: Vec<_> = told.lines().filter_map(|line| line.strip_prefix("  ✗ ")).collect();
    let is_stale = told.lines().any(|line| line.starts_with("  ✓ "));
    unexpected == [TIMED] && !is_stale && faults(caribou, TIMED) == [["client-sse-retry-timing", "WARNING"]]
}

/// What was not right in a scenario: check and severity.
fn faults(caribou: &Caribou, scenario: &str) -> Vec<[String; 2]> {
    let folders = std::fs::read_dir(caribou.home().join("results")).unwrap();
    let mut folders = folders.map(|entry| entry.unwrap().path());
    let folder = folders.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(scenario)).unwrap();
    let checks = std::fs::read(folder.join("checks.json")).unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
    let of = |check: &Value| ["id", "status"].map(|key| check[key].as_str().unwrap().to_owned());
    checks.iter().map(of).filter(|[_, status]| ["FAILURE", "WARNING"].contains(&status.as_str())).collect()
}

/// The scenarios that passed, each with the number of its checks that did.
fn passed(told: &str) -> Vec<(&str, u32)> {
    let lines = told.lines().filter_map(|line| line.strip_prefix("✓ ")?.split_once(": "));
    lines.map(|(scenario, told)| (scenario, told.split_once(' ').unwrap().0.parse().unwrap())).collect()
}

#[rstest]
#[tokio::test]
async fn the_official_suite_finds_nothing_but_what_is_listed(#[values("2025-11-25", "2026-07-28")] revision: &str) {
    let caribou = Setup::new().start().await;
    let known = here(&format!("known-client-{revision}.yml"));
    let known = ["--requirements", revision, "--expected-failures", known.to_str().unwrap()];
    let (is_content, told) = tried(&caribou, &known).await;
    assert!(is_content || is_late(&caribou, &told), "{told}\n{}", caribou.log());
    let unseen: Vec<_> = passed(&told).into_iter().filter(|(_, checks)| *checks == 0).collect();
    assert!(unseen.is_empty(), "nothing was seen of the client: {unseen:?}");
}

/// What the suite asks of clients beside its score: what was added later, and extensions.
#[rstest]
#[case("json-schema-2020-12-preservation", "2025-11-25")]
#[case("json-schema-2020-12-preservation", "2026-07-28")]
#[case("auth/client-credentials-basic", "2025-11-25")]
#[case("auth/client-credentials-basic", "2026-07-28")]
#[tokio::test]
async fn the_official_suite_finds_nothing_beside_its_score(#[case] scenario: &str, #[case] revision: &str) {
    let caribou = Setup::new().start().await;
    let (is_content, told) = tried(&caribou, &["--scenario", scenario, "--spec-version", revision]).await;
    assert!(is_content, "{told}\n{}", caribou.log());
}
