//! Which tools are shown, and what background calls carry (contract 6.11, 6.13).

use std::sync::atomic::Ordering;

use caribou_core::config::Secret;
use caribou_core::failure::Code;
use caribou_core::task::{MissingTool, TaskLimits};
use caribou_runtime::{CallTool, Options, RequestSecrets};
use serde_json::json;

use super::{Does, Scripted, Tasking, ann, task_server, until};
use crate::fake::{anybody, call};
use crate::followed::Setting;

const TOOLS: [&str; 4] = ["submit", "status", "cancel", "other"];

fn accepting() -> Scripted {
    Scripted::new(Does::Accept("one".to_owned()))
}

#[tokio::test(start_paused = true)]
async fn only_the_submitting_tool_and_ordinary_ones_are_shown_and_can_be_called() {
    // Contract 6.11, exposure.
    let tasking = Tasking::new(accepting()).await;
    let listed = tasking.setting.runtime.list_tools(&anybody(), &ann()).await.unwrap();
    let of_server = listed.tools.iter().filter(|tool| tool.server.as_str() == "r");
    let names: Vec<&str> = of_server.map(|tool| &*tool.name).collect();
    assert_eq!(names, ["r_submit", "r_other"]);
    assert!(listed.tools[0].tool.get().contains("This starts a background task"));
    let error = tasking.setting.runtime.call_tool(call("r_status", "t")).await.err().unwrap();
    assert_eq!(error.code, Code::NotFound);
    tasking.setting.runtime.call_tool(call("r_other", "t")).await.unwrap();
    assert!(tasking.stored().await.is_empty(), "an ordinary tool makes no task");
}

#[tokio::test(start_paused = true)]
async fn a_submitting_tool_without_anybody_who_follows_tasks_says_what_is_missing() {
    // Contract 6.11, wrapper without runtime.
    let setting = Setting::new(json!({ "r": task_server(&json!({})) })).await;
    *setting.fake.tools.lock().unwrap() = TOOLS.map(str::to_owned).into();
    let error = setting.runtime.call_tool(call("r_submit", "t")).await.err().unwrap();
    for what in ["not initialized", "mcp_tasks.enabled", "SQL"] {
        assert!(error.detail.contains(what), "{error}");
    }
    assert_eq!(setting.fake.calls.load(Ordering::SeqCst), 0);
    // The verbs of contract 2.3, 503.
    let listed = setting.runtime.list_tasks(&anybody(), &ann(), 50).await.unwrap_err();
    assert_eq!((listed.code, listed.detail.as_str()), (Code::Unavailable, "MCP task repo not available"));
    let cancelled = setting.runtime.cancel_task(&anybody(), &ann(), "mcp-task-1").await.unwrap_err();
    assert_eq!((cancelled.code, cancelled.detail.as_str()), (Code::Unavailable, "MCP task service not available"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_tool_of_a_toolset_costs_all_tools_or_those_of_its_server() {
    // Contract 6.11, missing tool; architecture.md §10.
    for (missing_tool, is_other_shown) in [(MissingTool::FailAll, false), (MissingTool::FailServer, true)] {
        let servers = json!({ "r": task_server(&json!({})), "plain": { "command": "x" } });
        let options = Options { tasks: TaskLimits { missing_tool, ..TaskLimits::default() }, ..Options::default() };
        let tasking = Tasking::with(accepting(), servers, options, &["submit", "status", "other"]).await;
        let listed = tasking.setting.runtime.list_tools(&anybody(), &ann()).await;
        match listed {
            Ok(listed) => {
                assert!(is_other_shown);
                assert!(listed.tools.iter().any(|tool| tool.server.as_str() == "plain"));
                assert!(listed.tools.iter().all(|tool| tool.server.as_str() != "r"));
                let (_, reason) = &listed.failed[0];
                assert!(reason.contains("has no tool `cancel`"), "{reason}");
            }
            Err(error) => {
                assert!(!is_other_shown);
                assert!(error.detail.contains("has no tool `cancel`"), "{error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_background_call_carries_the_users_credential_and_no_secret_of_the_request() {
    // Contract 6.13, 8.5.
    let more = json!({
        "user_auth": { "header": "X-User", "users": { "ann": "Bearer of-ann" } },
        "headers_from_context": { "headers": { "X-Tenant": "tenant" } },
    });
    let servers = json!({ "r": task_server(&more) });
    let tasking = Tasking::with(accepting(), servers, Options::default(), &TOOLS).await;
    let secrets = RequestSecrets(vec![("tenant".to_owned(), Secret::new("t-1"))]);
    tasking.setting.runtime.call_tool(CallTool { secrets, ..call("r_submit", "t") }).await.unwrap();
    until("a poll", async || tasking.driver.polled.load(Ordering::SeqCst) > 0).await;
    let sent = tasking.setting.fake.sent.lock().unwrap().clone();
    let names = |at: usize| sent[at].session_headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec!["X-User".to_owned(), "X-Tenant".to_owned()], vec!["X-User".to_owned()]));
    assert_eq!(sent[1].session_headers[0].1, "Bearer of-ann");
}
