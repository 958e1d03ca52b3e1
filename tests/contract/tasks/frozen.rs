//! The configuration that running tasks go by (contract 6.12, frozen snapshot): an edit of a task server is stored and
//! waits for the next start, and everything else is free to change.

use caribou_tests::{Answer, HttpFake, Setup, eventually};
use rstest::rstest;
use serde_json::{Value, json};

use super::stand::{FAST, SOON, Stand, endless, mcp_tasks, running, says, script, with_toolset};

const CONFIG: &str = "/api/mcp/config";

async fn send(stand: &Stand, method: &str, path: &str, body: Value) -> Answer {
    stand.caribou.send(stand.caribou.request(method, path).json(&body)).await
}

/// The servers as they are stored and shown.
async fn stored(stand: &Stand) -> Value {
    stand.caribou.get(CONFIG).await.json()["mcp_servers"].clone()
}

/// Stores the servers with one of them changed.
async fn change(stand: &Stand, change: impl FnOnce(&mut Value)) -> Answer {
    let mut servers = stored(stand).await;
    change(&mut servers);
    let answer = send(stand, "PUT", CONFIG, json!({ "mcp_servers": servers })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// A change of the stored servers.
type Edit = Box<dyn FnOnce(&mut Value)>;

fn pending(answer: &Answer) -> Value {
    answer.json().get("pending_restart").cloned().unwrap_or(json!([]))
}

/// A task server `s` whose tasks run until `file` is there, and an ordinary server `other`.
async fn with_other(file: &std::path::Path, source: &str) -> (Stand, HttpFake) {
    let ended = says("completed", json!({}));
    let status = json!([[{ "if_file": { "path": file, "steps": ended, "otherwise": running() } }]]);
    let (fake, other) = (
        HttpFake::start(script(status, json!([says("cancelled", json!({}))]))).await,
        HttpFake::start(json!({ "calls": { "t": ["default"] } })).await,
    );
    let setup = Setup::new().settings(&mcp_tasks(FAST)).server("other", other.entry());
    let setup = setup.variable("CARIBOU_CONFIG_SOURCE", source);
    (Stand::before(fake, setup, json!({ "headers": { "X-Own": "first" } })).await, other)
}

#[rstest]
#[tokio::test]
async fn an_edit_of_a_task_server_waits_for_the_next_start_and_its_tasks_go_on_as_before(
    #[values("file", "database")] source: &str,
) {
    // Contract 6.12; architecture.md §10, changed task server.
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let (stand, _other) = with_other(&ready, source).await;
    let task = stand.submit().await;
    stand.until(&task, "working").await;
    let put = change(&stand, |servers| servers["s"]["headers"]["X-Own"] = json!("second")).await;
    assert_eq!(pending(&put), json!(["s"]), "{put:?}");
    let read = stand.caribou.get(CONFIG).await;
    assert_eq!(pending(&read), json!(["s"]));

    let refused = stand.try_submit().await;
    assert_eq!(refused.code(), "config_changed", "{refused:?}");
    assert_eq!(refused.detail(), "MCP task configuration changed after startup (s); restart Caribou");
    assert_eq!(stand.caribou.call("other_t", json!({})).await.status, 200);
    let polls = stand.calls("status");
    stand.until_called("status", polls + 2).await;
    std::fs::write(&ready, "").unwrap();
    stand.until(&task, "completed").await;
    for seen in [stand.log().calls("submit"), stand.log().calls("status")].concat() {
        assert_eq!(seen.headers["x-own"], "first");
    }

    let back = change(&stand, |servers| servers["s"]["headers"]["X-Own"] = json!("first")).await;
    assert_eq!(pending(&back), json!([]), "what was undone is no change: {back:?}");
    stand.submit().await;
    assert!(stand.caribou.log().contains("MCP task configuration changed after startup (s)"));
}

#[tokio::test]
async fn a_task_server_that_is_switched_off_or_removed_is_asked_about_its_tasks_all_the_same() {
    // Contract 6.12: background calls always use the configuration of the start.
    for is_removed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let (stand, _other) = with_other(&ready, "file").await;
        let (first, second) = (stand.submit().await, stand.submit().await);
        stand.until(&first, "working").await;
        let answer = if is_removed {
            change(&stand, |servers| drop(servers.as_object_mut().unwrap().remove("s"))).await
        } else {
            send(&stand, "PATCH", CONFIG, json!({ "server_name": "s", "enabled": false })).await
        };
        assert_eq!((answer.status, pending(&answer)), (200, json!(["s"])), "{answer:?}");
        stand.cancel(&second).await;
        stand.until(&second, "cancelled").await;
        std::fs::write(&ready, "").unwrap();
        stand.until(&first, "completed").await;
        assert_ne!(stand.try_submit().await.status, 200);
    }
}

#[tokio::test]
async fn presentation_other_servers_and_skills_are_free_to_change() {
    // Contract 6.12, what the snapshot leaves out.
    let folder = tempfile::tempdir().unwrap();
    let (stand, other) = with_other(&folder.path().join("never"), "file").await;
    let routing = json!({ "mode": "prefer", "priority": 3, "keywords": ["ice"] });
    let edits: [(&str, Edit); 6] = [
        ("description", Box::new(|servers| servers["s"]["description"] = json!("writes reports"))),
        ("routing", Box::new(move |servers| servers["s"]["routing"] = routing)),
        ("tools", Box::new(|servers| servers["s"]["tools"] = json!({ "other": { "routing": { "mode": "prefer" } } }))),
        ("another server", Box::new(|servers| servers["other"]["headers"] = json!({ "X-New": "1" }))),
        ("a new server", Box::new(move |servers| servers["third"] = other.entry())),
        ("none of another", Box::new(|servers| drop(servers.as_object_mut().unwrap().remove("other")))),
    ];
    for (what, edit) in edits {
        let put = change(&stand, edit).await;
        assert_eq!(pending(&put), json!([]), "{what}: {put:?}");
        stand.submit().await;
    }
    assert!(!stand.caribou.log().contains("changed after startup"));
}

#[tokio::test]
async fn a_server_that_becomes_a_task_server_is_one_from_the_next_start_on() {
    // Contract 6.12: only what was there at the start is followed.
    let folder = tempfile::tempdir().unwrap();
    let (stand, _other) = with_other(&folder.path().join("never"), "file").await;
    let new = HttpFake::start(endless()).await;
    let put = change(&stand, |servers| servers["new"] = with_toolset(new.entry())).await;
    assert_eq!(pending(&put), json!(["new"]), "{put:?}");
    let refused = stand.caribou.call("new_submit", json!({})).await;
    assert_ne!(refused.status, 200, "{refused:?}");
    assert_eq!(new.log().calls("submit").len(), 0);
    stand.submit().await;
}

#[tokio::test]
async fn an_edit_by_hand_counts_as_one_over_the_api() {
    // Contract 6.12: any later load.
    let folder = tempfile::tempdir().unwrap();
    let (stand, _other) = with_other(&folder.path().join("never"), "file").await;
    let file = stand.caribou.home().join("extensions_config.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("first", "second")).unwrap();
    let refused = eventually(SOON, "the edit", async || {
        let answer = stand.try_submit().await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert_eq!(refused.code(), "config_changed", "{refused:?}");
    assert_eq!(pending(&stand.caribou.get(CONFIG).await), json!(["s"]));
}

#[tokio::test]
async fn interceptors_are_part_of_it_while_there_is_a_task_server_and_free_without_one() {
    // Contract 6.12, mcpInterceptors.
    for has_tasks in [true, false] {
        let fake = HttpFake::start(endless()).await;
        let entry = if has_tasks { with_toolset(fake.entry()) } else { fake.entry() };
        let caribou = Setup::new().settings(&mcp_tasks(FAST)).server("s", entry).start().await;
        let file = caribou.home().join("extensions_config.json");
        let mut document: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        document["mcpInterceptors"] = json!(["builtin:request-id"]);
        std::fs::write(&file, document.to_string()).unwrap();
        if has_tasks {
            let expected = json!(["s"]);
            eventually(SOON, "the edit", async || {
                let read = caribou.get(CONFIG).await;
                (pending(&read) == expected).then_some(())
            })
            .await;
            assert_eq!(caribou.call("s_submit", json!({})).await.code(), "config_changed");
        } else {
            let intercepted = async || {
                caribou.call("s_other", json!({})).await;
                fake.log().calls("other").last().and_then(|seen| seen.headers.get("x-request-id").cloned())
            };
            eventually(SOON, "the interceptor", intercepted).await;
            assert_eq!(pending(&caribou.get(CONFIG).await), json!([]));
        }
    }
}

#[tokio::test]
async fn after_a_restart_the_edit_holds_for_new_tasks() {
    // Contract 6.12, cleared at shutdown.
    let folder = tempfile::tempdir().unwrap();
    let (stand, _other) = with_other(&folder.path().join("never"), "file").await;
    change(&stand, |servers| servers["s"]["headers"]["X-Own"] = json!("second")).await;
    let (caribou, fake) = stand.parted();
    let (_, home) = caribou.stop().await;
    let written = home.join("extensions_config.json");
    let setup = Setup::new().settings(&mcp_tasks(FAST));
    let setup = setup.variable("CARIBOU_EXTENSIONS_CONFIG_PATH", written.to_str().unwrap());
    let stand = Stand::before(fake, setup, json!({})).await;
    stand.submit().await;
    assert_eq!(stand.log().calls("submit")[0].headers["x-own"], "second");
    assert_eq!(pending(&stand.caribou.get(CONFIG).await), json!([]));
}
