//! The official SDKs as clients, of both eras, with `server-everything` behind Caribou.

use std::process::Stdio;
use std::time::Duration;

use caribou_tests::caribou::binary;
use caribou_tests::{Caribou, Setup, third_party};
use serde_json::{Value, json};
use tokio::process::Command;

/// How long a client may take on a loaded machine.
const ENOUGH: Duration = Duration::from_secs(90);

async fn with_everything() -> Caribou {
    let caribou = Setup::new().server("everything", third_party::everything()).start().await;
    assert!(!caribou.tool_names().await.is_empty(), "{}", caribou.log());
    caribou
}

/// What a client of these replicas says that it saw.
pub(super) async fn told(replicas: &[&Caribou], mut command: Command) -> Value {
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(ENOUGH, command.output()).await.expect("it ends").unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let logs = || replicas.iter().map(|caribou| caribou.log()).collect::<String>();
    assert!(output.status.success(), "{errors}\n{}", logs());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The Python SDK at this address; or with the process to start, as JSON.
pub(super) fn python(server: &str, mode: &str, prefix: &str) -> Command {
    let mut command = third_party::python_sdk();
    command.args(["-c", include_str!("client.py"), server, mode, prefix]);
    command
}

/// The TypeScript SDK at this address.
pub(super) fn typescript(server: &str, script: &str, prefix: &str) -> Command {
    let mut command = Command::new("node");
    command.args(["--input-type=module", "--eval", script, "--"]);
    command.arg(third_party::typescript_sdk()).args([server, prefix]);
    command
}

/// What every client sees of all servers, and of the one.
pub(super) fn check(told: &Value, version: &str, prefix: &str) {
    assert_eq!((&told["version"], &told["server"]), (&version.into(), &"caribou".into()), "{told}");
    assert_eq!(told["echo"], "Echo: moss", "{told}");
    assert!(told["tools"].as_array().unwrap().contains(&json!(format!("{prefix}echo"))), "{told}");
    assert_eq!(told["progress"].as_array().unwrap().len(), 2, "{told}");
    assert!(told["prompts"].as_array().unwrap().contains(&json!(format!("{prefix}simple-prompt"))), "{told}");
    assert_eq!(told["read"][1], true, "what is listed is read back by the same URI: {told}");
}

#[tokio::test]
async fn the_python_sdk_lists_and_calls_in_both_eras() {
    let caribou = with_everything().await;
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        for (path, prefix) in [("/mcp", "everything_"), ("/mcp/everything", "")] {
            let server = format!("{}{path}", caribou.url());
            check(&told(&[&caribou], python(&server, mode, prefix)).await, version, prefix);
        }
    }
}

#[tokio::test]
async fn the_python_sdk_does_the_same_over_http_sse() {
    // mcp.md §3.4.
    let setup = Setup::new().settings("mcp_endpoint: {http_sse: true}\n");
    let caribou = setup.server("everything", third_party::everything()).start().await;
    assert!(!caribou.tool_names().await.is_empty(), "{}", caribou.log());
    for (path, prefix) in [("/sse", "everything_"), ("/sse/everything", "")] {
        let server = format!("{}{path}", caribou.url());
        check(&told(&[&caribou], python(&server, "sse", prefix)).await, "2025-11-25", prefix);
    }
}

#[tokio::test]
async fn the_python_sdk_does_the_same_with_a_process_that_it_starts() {
    let caribou = with_everything().await;
    let program = binary("caribou-under-test");
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        for (path, prefix) in [("", "everything_"), ("/mcp/everything", "")] {
            let server = format!("{}{path}", caribou.url());
            let front = json!({ "command": program, "args": ["stdio"], "env": { "CARIBOU_SERVER": server } });
            check(&told(&[&caribou], python(&front.to_string(), mode, prefix)).await, version, prefix);
        }
    }
}

#[tokio::test]
async fn the_typescript_sdk_lists_and_calls_in_a_session_and_ends_it() {
    let caribou = with_everything().await;
    for (path, prefix) in [("/mcp", "everything_"), ("/mcp/everything", "")] {
        let server = format!("{}{path}", caribou.url());
        let told = told(&[&caribou], typescript(&server, include_str!("client.mjs"), prefix)).await;
        check(&told, "2025-11-25", prefix);
        assert_eq!(told["session"], "string", "{told}");
    }
}

#[tokio::test]
async fn the_typescript_sdk_calls_a_tool_as_a_task_and_answers_what_it_asks() {
    // mcp.md §9.1: a task of another server, followed here, and seen by a client that others wrote.
    let settings = "mcp_tasks: {poll_interval_seconds: 1, input_required_poll_interval_seconds: 5}\n";
    let caribou = Setup::new().settings(settings).server("everything", third_party::everything()).start().await;
    assert!(!caribou.tool_names().await.is_empty(), "{}", caribou.log());
    for (path, prefix) in [("/mcp", "everything_"), ("/mcp/everything", "")] {
        let server = format!("{}{path}", caribou.url());
        let told = told(&[&caribou], typescript(&server, include_str!("client_tasks.mjs"), prefix)).await;
        assert_eq!((&told["support"], &told["after"]), (&"required".into(), &"completed".into()), "{told}");
        assert_eq!(told["asked"].as_array().map(Vec::len), Some(1), "{told}");
        assert!(told["text"].as_str().unwrap().contains("**Clarification**: snake"), "{told}");
        assert_eq!(told["listed"][0], told["task"], "{told}");
        assert_eq!(told["seen"][0], "working", "{told}");
    }
}
