//! The official conformance suite, at one server behind Caribou: what it asks of a server of each revision, with a
//! server behind of the same era and of the other one (mcp.md §15.4).
//!
//! What fails today is listed beside, and a listed scenario that passes fails the test: the lists only shrink.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use caribou_tests::{Setup, third_party};
use rstest::rstest;
use serde_json::json;

/// How long a run of all scenarios may take on a loaded machine.
const ENOUGH: Duration = Duration::from_secs(240);

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/endpoint").join(name)
}

#[rstest]
#[tokio::test]
async fn the_official_suite_finds_nothing_but_what_is_listed(
    #[values("2025-11-25", "2026-07-28")] revision: &str,
    #[values("legacy", "modern")] behind: &str,
) {
    let entry = json!({ "command": "node", "args": [here("fixture.mjs")], "protocol": behind });
    let caribou = Setup::new().server("all", entry).start().await;
    assert!(!caribou.tool_names().await.is_empty(), "{}", caribou.log());
    let mut suite = third_party::conformance();
    suite.args(["server", "--url", &format!("{}/mcp/all", caribou.url()), "--requirements", revision]);
    suite.arg("--expected-failures").arg(here(&format!("known-{revision}-{behind}.yml")));
    suite.arg("--output-dir").arg(caribou.home().join("results")).current_dir(caribou.home().path());
    let run = suite.stdin(Stdio::null()).kill_on_drop(true).output();
    let run = tokio::time::timeout(ENOUGH, run).await.expect("it ends").unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    let summary = told.split_once("=== SUMMARY ===").map_or(&*told, |(_, summary)| summary);
    assert!(run.status.success(), "{summary}\n{}", String::from_utf8_lossy(&run.stderr));
}

/// What the suite asks of a server with the extension of tasks; it counts in no score.
const TASKS: [&str; 10] = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

#[rstest]
#[tokio::test]
async fn the_official_suite_finds_tasks_of_both_eras_as_a_modern_client_should(
    #[values("legacy", "modern")] behind: &str,
) {
    // mcp.md §15.2, tasks extension; §17, S25 and S26.
    let entry = json!({ "command": "node", "args": [here("fixture.mjs")], "protocol": behind });
    let settings = "mcp_tasks: {poll_interval_seconds: 1, input_required_poll_interval_seconds: 5}\n";
    let caribou = Setup::new().settings(settings).server("all", entry).start().await;
    assert!(!caribou.tool_names().await.is_empty(), "{}", caribou.log());
    let mut failed = Vec::new();
    for scenario in TASKS {
        let mut suite = third_party::conformance();
        suite.args(["server", "--url", &format!("{}/mcp/all", caribou.url()), "--scenario", scenario]);
        suite.arg("--expected-failures").arg(here(&format!("known-tasks-{behind}.yml")));
        suite.arg("--output-dir").arg(caribou.home().join("results")).current_dir(caribou.home().path());
        let run = suite.stdin(Stdio::null()).kill_on_drop(true).output();
        let run = tokio::time::timeout(ENOUGH, run).await.expect("it ends").unwrap();
        if !run.status.success() {
            failed.push(format!("{scenario}: {}", String::from_utf8_lossy(&run.stdout)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
