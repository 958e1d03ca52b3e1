//! Which configurations of task servers a Caribou refuses to start with (contract 6.12, startup gate).

use caribou_tests::{Caribou, Setup};
use serde_json::{Value, json};

use super::stand::{toolset, with_toolset};

fn task_server() -> Value {
    with_toolset(json!({ "command": "true" }))
}

/// What a start that fails says.
async fn refused(setup: Setup, yaml: &str) -> String {
    let file = setup.home().write("config.yaml", yaml);
    let output = setup.command(&["serve", "--listen", "127.0.0.1:0", "--config"]).arg(file).output();
    let output = tokio::time::timeout(super::stand::SOON, output).await.expect("it does not start").unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn starts(setup: Setup, yaml: &str) -> Caribou {
    setup.settings(yaml).start().await
}

const OFF: &str = "mcp_tasks: {enabled: false}\n";

const MEMORY: &str = "database: {backend: memory}\n";

#[tokio::test]
async fn tasks_that_nobody_would_follow_or_remember_are_a_refusal_to_start() {
    // Contract 6.12: enabled false, memory backend.
    let told = refused(Setup::new().server("jobs", task_server()), OFF).await;
    assert!(told.contains("mcp_tasks.enabled=true is required") && told.contains("jobs"), "{told}");
    let told = refused(Setup::new().server("jobs", task_server()), MEMORY).await;
    assert!(told.contains("database.backend") && told.contains("jobs"), "{told}");
}

#[tokio::test]
async fn a_task_server_whose_connection_cannot_be_built_is_a_refusal_to_start() {
    // Contract 6.12 and 1.4.
    let twice = json!({ "name": "r", "submit_tool": "a", "status_tool": "a", "cancel_tool": "c" });
    for (entry, said) in [
        (with_toolset(json!({ "type": "http" })), "url"),
        (with_toolset(json!({ "type": "stdio" })), "command"),
        (with_toolset(json!({ "type": "carrier-pigeon", "url": "http://h/" })), "unsupported transport type"),
        (json!({ "command": "true", "task_toolsets": [twice] }), "must be unique across task_toolsets"),
        (json!({ "command": "true", "task_toolsets": [{ "name": " " }] }), "task_toolsets"),
    ] {
        let told = refused(Setup::new().server("jobs", entry), "log: {level: info}\n").await;
        assert!(told.contains(said) && told.contains("jobs"), "{said}: {told}");
    }
    let long = "j".repeat(129);
    let told = refused(Setup::new().server(&long, task_server()), "log: {level: info}\n").await;
    assert!(told.contains("MCP task server name must contain 1 to 128 characters"), "{told}");
}

#[tokio::test]
async fn without_an_enabled_task_server_none_of_this_applies() {
    // Contract 6.12, no toolsets; disabled servers are invisible.
    for yaml in [OFF, MEMORY] {
        let off = json!({ "enabled": false, "command": "true", "task_toolsets": [toolset()] });
        let setup = Setup::new().server("plain", json!({ "command": "true" })).server("off", off);
        let caribou = starts(setup, yaml).await;
        let features = caribou.get("/api/features").await.json();
        assert_eq!(features, json!({ "mcp_tasks": { "enabled": false } }), "the runtime that really started");
    }
    let caribou = starts(Setup::new(), "log: {level: info}\n").await;
    assert_eq!(caribou.get("/api/features").await.json(), json!({ "mcp_tasks": { "enabled": true } }));
}

#[tokio::test]
async fn both_secrets_of_requests_and_tasks_on_one_server_are_a_warning() {
    // Contract 6.13: the background cannot have those secrets.
    let secrets = json!({ "headers": { "X-Tenant": "tenant" } });
    let entry = json!({ "type": "http", "url": "http://127.0.0.1:9/", "headers_from_context": secrets });
    let caribou = starts(Setup::new().server("jobs", with_toolset(entry)), "log: {level: info}\n").await;
    let log = caribou.log();
    let warning = log.lines().find(|line| line.contains("headers_from_context") && line.contains("jobs"));
    assert!(warning.is_some_and(|line| line.contains("WARN")), "{log}");
}
