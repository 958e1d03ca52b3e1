//! The frozen configuration of task servers (contract 6.12; architecture.md §10).

use std::sync::atomic::Ordering;

use caribou_core::failure::Code;
use serde_json::{Value, json};

use super::{Does, Scripted, Tasking, task_server, until};
use crate::fake::{anybody, call};
use crate::followed::document;

async fn pending(tasking: &Tasking) -> Vec<String> {
    let view = tasking.setting.runtime.read_config(&anybody()).await.unwrap();
    view.pending_restart.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn a_changed_task_server_waits_for_the_next_start_while_its_tasks_go_on() {
    // Contract 6.12, drift; architecture.md §10, changed task server.
    let tasking = Tasking::new(Scripted::new(Does::Accept("one".to_owned()))).await;
    tasking.submit().await.unwrap();
    for changed in [
        json!({ "r": task_server(&json!({ "tool_call_timeout": 9 })) }),
        json!({ "r": task_server(&json!({ "enabled": false })) }),
        json!({}),
    ] {
        tasking.setting.memory.edit(document(&changed));
        assert_eq!(pending(&tasking).await, ["r"], "{changed}");
        let error = tasking.submit().await.unwrap_err();
        assert_eq!(error.code, Code::ConfigChanged);
        assert!(error.detail.contains("changed after startup (r)") && error.detail.contains("restart"), "{error}");
    }
    let before = tasking.driver.polled.load(Ordering::SeqCst);
    until("another poll", async || tasking.driver.polled.load(Ordering::SeqCst) > before).await;
    tasking.setting.runtime.call_tool(call("r_other", "t")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn presentation_and_other_servers_are_free_to_change_and_what_was_undone_is_no_change() {
    // Contract 6.12, snapshot.
    let tasking = Tasking::new(Scripted::new(Does::Accept("one".to_owned()))).await;
    let shown = json!({ "description": "Reports.", "routing": { "mode": "prefer" } });
    let free = json!({ "r": task_server(&shown), "plain": { "command": "x" } });
    tasking.setting.memory.edit(document(&free));
    assert!(pending(&tasking).await.is_empty());
    tasking.setting.memory.edit(document(&json!({})));
    assert_eq!(pending(&tasking).await, ["r"]);
    tasking.setting.memory.edit(document(&free));
    assert!(pending(&tasking).await.is_empty());
    tasking.submit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn interceptors_are_part_of_what_is_frozen_while_there_is_a_task_server() {
    // Contract 6.12, `mcpInterceptors`.
    let with_interceptors =
        |servers: Value| json!({ "mcpServers": servers, "mcpInterceptors": ["builtin:x"] }).to_string().into_bytes();
    let task = json!({ "r": task_server(&json!({})) });
    let tasking = Tasking::new(Scripted::new(Does::Accept("one".to_owned()))).await;
    tasking.setting.memory.edit(with_interceptors(task));
    assert_eq!(pending(&tasking).await, ["r"]);
    let plain = json!({ "plain": { "command": "x" } });
    let driver = Scripted::new(Does::Accept("one".to_owned()));
    let other = Tasking::with(driver, plain.clone(), Default::default(), &["other"]).await;
    other.setting.memory.edit(with_interceptors(plain));
    assert!(pending(&other).await.is_empty());
    // A server that becomes a task server is followed from the next start on.
    other.setting.memory.edit(document(&json!({ "r": task_server(&json!({})) })));
    assert_eq!(pending(&other).await, ["r"]);
}
