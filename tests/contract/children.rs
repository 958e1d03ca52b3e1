//! Child processes: nothing outlives anybody, failures are told, secrets are not.

use std::time::{Duration, Instant};

use caribou_tests::process::{is_alive, zombies};
use caribou_tests::{Caribou, Setup, StdioFake, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// A server that leaves neither at the end of its input nor on SIGTERM.
fn stubborn() -> Value {
    json!({ "ignore_sigterm": true, "eof": ["hang"], "calls": { "who": [{ "text": "$PID" }] } })
}

/// Reaped or at least dead: after Caribou is gone it is for the system to reap.
async fn gone(pids: &[u32], within: Duration) {
    eventually(within, "all processes gone", async || pids.iter().all(|pid| !is_alive(*pid)).then_some(())).await;
}

#[tokio::test]
async fn a_killed_caribou_leaves_no_child_behind() {
    let (caribou, fake) = Caribou::with_stdio(stubborn()).await;
    assert_eq!(caribou.call("fake_who", json!({})).await.status, 200);
    let all = caribou.descendants();
    assert!(all.len() >= 2 && fake.log().pids().iter().any(|pid| all.contains(pid)), "{all:?}");
    let _home = caribou.kill().await;
    gone(&all, Duration::from_secs(2)).await;
}

/// Contract 4.2, point 5.
#[tokio::test]
async fn a_stopped_caribou_leaves_no_child_behind() {
    let (caribou, _fake) = Caribou::with_stdio(stubborn()).await;
    assert_eq!(caribou.call("fake_who", json!({})).await.status, 200);
    let all = caribou.descendants();
    let (status, _home) = caribou.stop().await;
    assert!(status.success(), "{status}");
    gone(&all, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_closed_session_takes_its_whole_process_tree_along() {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", stubborn());
    let server = fake.entry()["command"].as_str().unwrap().to_owned();
    // A launcher as `npx` is one: the true server is its child and shares its pipes.
    let launcher = format!("trap 'exit 0' TERM; exec 3<&0; '{server}' <&3 & wait");
    let entry = json!({ "command": "sh", "args": ["-c", launcher], "env": fake.variables() });
    let caribou = setup.server("fake", entry).start().await;
    assert_eq!(caribou.call_in("t", "fake_who", json!({})).await.status, 200);
    let pids = fake.log().pids();
    assert_eq!(caribou.delete("/api/threads/t/mcp-sessions").await.status, 200);
    let alive: Vec<&u32> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(alive.is_empty(), "closed, but {alive:?} live on");
}

#[tokio::test]
async fn a_crash_at_start_is_told_with_its_last_words_and_backs_off() {
    let trace = format!("{}ImportError: fake\n", "  at frame (/srv/module.js)\n".repeat(40));
    let (caribou, fake) = Caribou::with_stdio(json!({ "start": [{ "stderr": trace }, { "die": 3 }] })).await;
    let begun = Instant::now();
    let servers = eventually(SOON, "the failure", async || {
        let servers = caribou.get("/api/mcp/servers").await.json();
        (servers["servers"][0]["state"] == "failed").then_some(servers)
    })
    .await;
    let told = servers["servers"][0].to_string();
    assert!(told.contains("ImportError: fake") && told.contains("exit code 3"), "{told}");
    for _ in 0..30 {
        caribou.get("/api/mcp/tools").await;
    }
    let (starts, seconds) = (fake.log().pids().len(), begun.elapsed().as_secs());
    assert!(starts <= 4 + usize::try_from(seconds).unwrap(), "{starts} starts in {seconds} s");
    assert!(zombies(caribou.pid()).is_empty());
}

/// Invariant O3.
#[tokio::test]
async fn a_secret_that_a_server_prints_is_masked() {
    let setup = Setup::new().variable("FAKE_TOKEN", "hunter2-hunter2");
    let fake = StdioFake::new(
        setup.home(),
        "fake",
        json!({ "start": [{ "stderr": "token is hunter2-hunter2\n" }, { "die": 1 }] }),
    );
    let entry = fake.entry_with(json!({ "env": { "TOKEN": "$FAKE_TOKEN" } }));
    let caribou = setup.server("fake", entry).start().await;
    let told = eventually(SOON, "the last words", async || {
        let servers = caribou.get("/api/mcp/servers").await.body;
        servers.contains("token is").then_some(servers)
    })
    .await;
    assert!(!told.contains("hunter2"), "{told}");
    assert!(!caribou.log().contains("hunter2"), "{}", caribou.log());
}

#[tokio::test]
async fn a_child_sees_only_the_environment_it_was_given() {
    let setup =
        Setup::new().variable("LEAKY", "yes").variable("WANTED", "yes").settings("stdio:\n  inherit_env: [WANTED]\n");
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "env": [{ "text": "$ENV" }] } }));
    let caribou = setup.server("fake", fake.entry()).start().await;
    let seen: Value = serde_json::from_str(&caribou.call("fake_env", json!({})).await.text()).unwrap();
    let allowed = [
        "FAKE_LOG",
        "FAKE_SCRIPT",
        "WANTED",
        "HOME",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "USER",
        "LANG",
        "LANGUAGE",
        "TMPDIR",
        "TMP",
        "TEMP",
    ];
    for name in seen.as_object().unwrap().keys() {
        let known = allowed.contains(&name.as_str()) || name.starts_with("LC_") || name.starts_with("CARIBOU_");
        assert!(known, "{name} reached the child");
    }
    assert_eq!(seen["WANTED"], "yes");
}

/// Contract 4.6.
#[tokio::test]
async fn a_thread_has_its_own_working_and_temporary_folder() {
    let setup = Setup::new();
    let calls = json!({ "cwd": [{ "text": "$CWD" }], "env": [{ "text": "$ENV" }] });
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": calls }));
    let own = StdioFake::new(setup.home(), "own", json!({ "calls": calls }));
    let members = json!({ "cwd": setup.home().path(), "env": { "TMPDIR": "/dev/shm" } });
    let caribou = setup.server("fake", fake.entry()).server("own", own.entry_with(members)).start().await;
    let mut folders = Vec::new();
    for thread in ["a", "b"] {
        let folder = caribou.call_in(thread, "fake_cwd", json!({})).await.text();
        let env: Value = serde_json::from_str(&caribou.call_in(thread, "fake_env", json!({})).await.text()).unwrap();
        assert!(folder.contains(thread) && folder.ends_with("/user-data/workspace"), "{folder}");
        for name in ["TMPDIR", "TMP", "TEMP"] {
            assert_eq!(env[name], format!("{folder}/.mcp/tmp"), "{name}");
        }
        folders.push(folder);
    }
    assert_ne!(folders[0], folders[1]);
    assert_eq!(caribou.call("own_cwd", json!({})).await.text(), caribou.home().path().display().to_string());
    let env: Value = serde_json::from_str(&caribou.call("own_env", json!({})).await.text()).unwrap();
    assert_eq!(env["TMPDIR"], "/dev/shm");
}

/// Contract 4.6: an explicit `cwd` holds for discovery and calls alike; without one, discovery runs where Caribou does.
#[tokio::test]
async fn a_configured_folder_holds_for_discovery_too() {
    let setup = Setup::new();
    let folder = setup.home().join("own folder");
    std::fs::create_dir(&folder).unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": "$ID", "result": { "tools": [
        { "name": "here", "description": "$CWD", "inputSchema": { "type": "object" } }
    ] } });
    let script = json!({ "on": { "tools/list": [{ "send": list }] }, "calls": { "here": [{ "text": "$CWD" }] } });
    let fake = StdioFake::new(setup.home(), "fake", script);
    let caribou = setup.server("fake", fake.entry_with(json!({ "cwd": "own folder" }))).start().await;
    assert_eq!(caribou.tools().await[0]["tool"]["description"], folder.display().to_string());
    assert_eq!(caribou.call("fake_here", json!({})).await.text(), folder.display().to_string());
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_nobody() {
    for end in ["\n", ""] {
        let flood =
            json!({ "repeat": { "times": 256, "steps": [{ "stderr": format!("{}{end}", "x".repeat(4096)) }] } });
        let script = json!({ "start": [flood], "calls": { "echo": [flood, { "text": "done" }] } });
        let (caribou, _fake) = Caribou::with_stdio(script).await;
        for _ in 0..10 {
            assert_eq!(caribou.call("fake_echo", json!({})).await.text(), "done");
        }
    }
}
