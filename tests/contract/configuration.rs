//! Both configuration files: what is wrong is named with its place, never with its value.

use std::process::Output;

use caribou_tests::{Setup, StdioFake};
use serde_json::json;

async fn check(setup: &Setup, extensions: &str) -> Output {
    let mut command = setup.command(&["check"]);
    command.env("CARIBOU_EXTENSIONS_CONFIG_PATH", setup.home().write("extensions.json", extensions));
    command.output().await.unwrap()
}

/// Invariant O3 and contract 1.2: every problem at once, with line and column.
#[tokio::test]
async fn check_names_every_problem_with_its_place_and_no_value() {
    let setup = Setup::new().variable("SECRET_COMMAND", "hunter2-hunter2");
    let extensions = r#"{
  "mcpServers": {
    "good": { "command": "true" },
    "late": { "command": "$SECRET_COMMAND", "tool_call_timeout": 0 },
    "odd": { "type": "http" },
    "prefers": { "command": "true", "routing": { "mode": "require" } }
  }
}"#;
    let output = check(&setup, extensions).await;
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success(), "{told}");
    for word in ["extensions.json", "late", "tool_call_timeout", "odd", "url", "prefers", "mode"] {
        assert!(told.contains(word), "`{word}` is not in {told}");
    }
    assert!(told.contains(":4:") || told.contains("line 4"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}

/// Contract 1.1.
#[tokio::test]
async fn check_is_content_with_a_good_file() {
    let output = check(&Setup::new(), r#"{ "mcpServers": { "good": { "command": "true" } } }"#).await;
    assert!(output.status.success(), "{output:?}");
}

/// Contract 1.8: whole strings only, in arguments and environment alike.
#[tokio::test]
async fn environment_references_are_resolved_in_whole_strings_only() {
    let setup = Setup::new().variable("WORD", "moss");
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "env": [{ "text": "$ENV" }] } }));
    let env = json!({ "WHOLE": "$WORD", "PART": "a $WORD", "UNSET": "$NOT_THERE" });
    let caribou = setup.server("fake", fake.entry_with(json!({ "env": env }))).start().await;
    let seen: serde_json::Value = serde_json::from_str(&caribou.call("fake_env", json!({})).await.text()).unwrap();
    assert_eq!((&seen["WHOLE"], &seen["PART"], &seen["UNSET"]), (&json!("moss"), &json!("a $WORD"), &json!("")));
}

#[tokio::test]
async fn another_address_than_loopback_is_refused() {
    let setup = Setup::new();
    let output = setup.command(&["serve", "--listen", "0.0.0.0:0"]).output().await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("auth.mode"), "{output:?}");
}
