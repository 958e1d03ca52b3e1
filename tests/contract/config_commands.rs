//! `caribou config` and `caribou servers`: by themselves on the file, and against a running replica.

use std::process::Output;
use std::time::Duration;

use caribou_tests::{Caribou, Setup, StdioFake, eventually};
use serde_json::{Value, json};

/// How long a command may take on a loaded machine.
const ENOUGH: Duration = Duration::from_secs(60);

async fn run(setup: &Setup, words: &[&str]) -> Output {
    finish(setup.command(words)).await
}

async fn finish(mut command: tokio::process::Command) -> Output {
    tokio::time::timeout(ENOUGH, command.output()).await.expect("the command ends").unwrap()
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn done(setup: &Setup, words: &[&str]) -> String {
    let output = run(setup, words).await;
    assert!(output.status.success(), "{words:?}: {}", told(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn init_writes_what_serves_at_once_and_never_over_a_file() {
    let setup = Setup::new();
    let folder = setup.home().join("new");
    let init = ["config", "init", "--dir", folder.to_str().unwrap(), "--json"];
    let first: Value = serde_json::from_str(&done(&setup, &init).await).unwrap();
    assert_eq!(first["written"].as_array().unwrap().len(), 3);
    let mut check = setup.command(&["check", "--config"]);
    check.arg(folder.join("config.yaml")).env("CARIBOU_EXTENSIONS_CONFIG_PATH", folder.join("extensions_config.json"));
    let checked = finish(check).await;
    assert!(
        checked.status.success() && told(&checked).contains("0 servers to serve, 0 left out"),
        "{}",
        told(&checked)
    );
    std::fs::write(folder.join("extensions_config.json"), "mine").unwrap();
    let second: Value = serde_json::from_str(&done(&setup, &init).await).unwrap();
    assert_eq!((&second["written"], second["kept"].as_array().unwrap().len()), (&json!([]), 3));
    assert_eq!(std::fs::read_to_string(folder.join("extensions_config.json")).unwrap(), "mine");
}

/// The file is changed in place; the servers it names are not started.
#[tokio::test]
async fn the_file_is_shown_and_changed_without_a_replica() {
    let setup = Setup::new().server(
        "far",
        json!({ "type": "http", "url": "http://127.0.0.1:9",
        "headers": { "A": "hunter2" }, "oauth": { "token_url": "https://t", "client_secret": "hunter2" } }),
    );
    // Each command writes the setup's file anew, so the changes go to a copy.
    setup.command(&[]);
    let file = setup.home().join("copy.json");
    std::fs::copy(setup.home().join("extensions_config.json"), &file).unwrap();
    let on_file = async |words: &[&str]| {
        let words = [words, &["--extensions", file.to_str().unwrap()]].concat();
        done(&setup, &words).await
    };
    let stored = || serde_json::from_str::<Value>(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(!on_file(&["config", "get", "--json"]).await.contains("hunter2"));
    on_file(&["config", "disable", "far"]).await;
    assert_eq!(stored()["mcpServers"]["far"]["enabled"], false);
    on_file(&["config", "set", "far", "routing.priority=7", "description=two words"]).await;
    let far = stored()["mcpServers"]["far"].clone();
    assert_eq!((&far["routing"]["priority"], &far["description"]), (&json!(7), &json!("two words")));
    assert_eq!((&far["headers"]["A"], &far["oauth"]["client_secret"]), (&json!("hunter2"), &json!("hunter2")));
    on_file(&["config", "add", "a b", "command=uvx", r#"args=["mcp-server-time"]"#, "enabled=false"]).await;
    assert_eq!(stored()["mcpServers"]["a b"]["args"], json!(["mcp-server-time"]));
    assert!(on_file(&["config", "get"]).await.contains("uvx mcp-server-time"));
    let different = run(&setup, &["config", "diff", file.to_str().unwrap(), "--json"]).await;
    let names: Value = serde_json::from_slice(&different.stdout).unwrap();
    assert_eq!((different.status.code(), &names[0]["server"]), (Some(1), &json!("far")), "{}", told(&different));
    on_file(&["config", "diff", file.to_str().unwrap()]).await;
    on_file(&["config", "remove", "a b"]).await;
    assert!(stored()["mcpServers"].get("a b").is_none());
    let refused = run(&setup, &["config", "add", "x", "command=/bin/true"]).await;
    assert!(!refused.status.success() && told(&refused).contains("single executable name"), "{}", told(&refused));
}

#[tokio::test]
async fn a_running_replica_is_changed_when_one_is_named() {
    let (caribou, fake) = Caribou::with_stdio(json!({ "calls": { "echo": ["default"] } })).await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    let setup = Setup::new().variable("CARIBOU_SERVER", caribou.url());
    done(&setup, &["config", "disable", "fake"]).await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 404);
    eventually(ENOUGH, "its children are gone", async || fake.alive().is_empty().then_some(())).await;
    let shown = done(&setup, &["servers"]).await;
    assert!(shown.contains("disabled") && shown.contains("switched off in the configuration"), "{shown}");
    let reset: Value = serde_json::from_str(&done(&setup, &["config", "reset", "--json"]).await).unwrap();
    assert_eq!(reset["reach"], "directory");
}

/// Why a server is absent: dropped, failed, or denied by policy; each with its reason.
#[tokio::test]
async fn servers_that_are_absent_say_why() {
    let setup = Setup::new().settings(
        "guardrails:\n  enabled: true\n  provider:\n    use: allowlist\n    config:\n      denied_tools: [kept_echo]\n",
    );
    let fake = StdioFake::new(setup.home(), "kept", json!({ "calls": { "echo": ["default"] } }));
    let setup = setup.server("kept", fake.entry()).server("bad", json!({ "type": "http" }));
    let caribou = setup.server("gone", json!({ "command": "no-such-program" })).start().await;
    caribou.get("/api/mcp/tools").await;
    let answer = caribou.get("/api/mcp/servers").await.json();
    let absent = |name: &str| {
        let servers = answer["servers"].as_array().unwrap();
        servers.iter().find(|server| server["name"] == name).unwrap()["absent"].clone()
    };
    assert_eq!([absent("kept"), absent("bad"), absent("gone")], ["policy", "dropped", "failed"], "{answer}");
    let shown = done(&Setup::new().variable("CARIBOU_SERVER", caribou.url()), &["servers"]).await;
    for reason in ["guardrails deny all of its 1 tools", "url", "no-such-program"] {
        assert!(shown.contains(reason), "{shown}");
    }
}
