//! The tools of our own about background tasks (contract 2.4, agent tools; 6.10, natural-language cancel).

use std::sync::Arc;

use caribou_core::failure::Code;
use caribou_core::guardrails::{Guardrails, Written};
use caribou_core::identity::ToolRules;
use caribou_core::ids::Scope;
use caribou_core::task::Status;
use caribou_core::task::native::Wish;
use caribou_runtime::{CallTool, Caller, Options, VerbError};
use serde_json::{Value, json};

use super::{Does, Scripted, Tasking, ann, task_server, until};
use crate::fake::{anybody, call, raw};
use crate::followed::Setting;

const LIST: &str = "list_background_tasks";
const CANCEL: &str = "cancel_background_task";

async fn tasking() -> Tasking {
    Tasking::new(Scripted::new(Does::Accept("one".to_owned()))).await
}

async fn ask(tasking: &Tasking, name: &str, arguments: Value) -> Result<Value, VerbError> {
    ask_as(tasking, call(name, "t"), arguments).await
}

async fn ask_as(tasking: &Tasking, call: CallTool, arguments: Value) -> Result<Value, VerbError> {
    let call = CallTool { arguments: Some(raw(&arguments.to_string())), ..call };
    let called = tasking.setting.runtime.call_tool(call).await?;
    let result: Value = serde_json::from_str(called.result.get()).unwrap();
    assert_eq!(result["content"][0]["text"], result["structuredContent"].to_string());
    Ok(result["structuredContent"].clone())
}

async fn names(setting: &Setting, caller: &Caller) -> Vec<String> {
    let listed = setting.runtime.list_tools(caller, &ann()).await.unwrap();
    listed.tools.iter().filter(|tool| tool.is_ours).map(|tool| tool.name.to_string()).collect()
}

fn only(allowed: &str) -> Caller {
    let mut caller = anybody();
    caller.principal.tools = Arc::new(ToolRules { allowed: Some(vec![allowed.to_owned()]), denied: Vec::new() });
    caller
}

#[tokio::test(start_paused = true)]
async fn they_are_shown_while_something_makes_tasks_that_are_followed_here() {
    // Contract 2.4: only while the submitter is installed; 9.3: never deferred.
    let tasks = Options { tool_search: true, ..Options::default() };
    let driver = Scripted::new(Does::Accept("one".to_owned()));
    let tools = ["submit", "status", "cancel", LIST];
    let servers = json!({ "r": task_server(&json!({ "tool_name_prefix": false })) });
    let with = Tasking::with(driver, servers, tasks, &tools).await;
    assert_eq!(names(&with.setting, &anybody()).await, [LIST, CANCEL]);
    let listed = with.setting.runtime.list_tools(&anybody(), &ann()).await.unwrap();
    let last = listed.tools.last().unwrap();
    assert_eq!((&*last.name, last.server.as_str()), (CANCEL, "caribou"), "behind the tools of servers");
    assert!(!listed.deferred.iter().any(|name| **name == *CANCEL));
    let same = listed.tools.iter().filter(|tool| &*tool.name == LIST).count();
    assert_eq!(same, 1, "no server poses as us");
    assert_eq!(names(&with.setting, &only("cancel_*")).await, [CANCEL]);

    let plain = json!({ "plain": { "command": "x" } });
    let idle = Tasking::with(Scripted::new(Does::Refuse), plain, Options::default(), &["other"]).await;
    assert!(names(&idle.setting, &anybody()).await.is_empty(), "nothing makes tasks");
    let without = Setting::new(json!({ "r": task_server(&json!({})) })).await;
    *without.fake.tools.lock().unwrap() = ["submit", "status", "cancel"].map(str::to_owned).into();
    assert!(names(&without, &anybody()).await.is_empty(), "nobody follows tasks");
    let unknown = without.runtime.call_tool(call(LIST, "t")).await.err().unwrap();
    assert_eq!(unknown.code, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_the_newest_tasks_of_the_thread_and_nothing_of_the_remote() {
    // Contract 2.4, list: only safe local fields.
    let tasking = tasking().await;
    assert_eq!(ask(&tasking, LIST, json!({})).await.unwrap(), json!({ "tasks": [] }));
    let told = tasking.submit().await.unwrap();
    let listed = ask(&tasking, LIST, json!({ "active_only": true })).await.unwrap();
    let task = &listed["tasks"][0];
    assert_eq!((&task["task_id"], &task["task_name"]), (&told["structuredContent"]["task_id"], &json!("report")));
    for hidden in ["\"one\"", "driver", "server", "result", "error"] {
        assert!(!listed.to_string().contains(hidden), "{hidden}: {listed}");
    }
    *tasking.driver.status.lock().unwrap() = Status::Completed;
    until("the end", async || tasking.stored().await[0].snapshot.status == Status::Completed).await;
    assert_eq!(ask(&tasking, LIST, json!({ "active_only": true })).await.unwrap()["tasks"], json!([]));
    assert_eq!(ask(&tasking, LIST, json!({})).await.unwrap()["tasks"][0]["status"], "completed");
    for (user, thread) in [("ann", "other"), ("bob", "t")] {
        let call = CallTool { scope: Scope::new(Some(user), Some(thread)), ..call(LIST, "t") };
        assert_eq!(ask_as(&tasking, call, json!({})).await.unwrap()["tasks"], json!([]), "{user} {thread}");
    }
    let wrong = ask(&tasking, LIST, json!({ "active_only": 1 })).await.unwrap_err();
    assert_eq!(wrong.code, Code::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_by_its_name_its_id_or_as_the_only_one_in_its_own_thread() {
    // Contract 6.10, natural-language cancel; 2.4, cancel.
    let tasking = tasking().await;
    let none = ask(&tasking, CANCEL, json!({})).await.unwrap();
    assert_eq!((&none["cancelled"], &none["task"]), (&json!(false), &Value::Null));
    assert!(none["message"].as_str().unwrap().contains("no active background task"), "{none}");
    tasking.submit().await.unwrap();
    *tasking.driver.does.lock().unwrap() = Does::Accept("two".to_owned());
    let second = tasking.submit().await.unwrap()["structuredContent"]["task_id"].clone();
    let several = ask(&tasking, CANCEL, json!({ "task": " REPORT " })).await.unwrap();
    assert_eq!(several["cancelled"], false);
    assert!(several["message"].as_str().unwrap().contains("several active background tasks match"), "{several}");

    let other = CallTool { scope: Scope::new(Some("bob"), Some("t")), ..call(CANCEL, "t") };
    let foreign = ask_as(&tasking, other, json!({ "task": second })).await.unwrap();
    assert_eq!(foreign["task"], Value::Null, "another user's task is none");

    let asked = ask(&tasking, CANCEL, json!({ "task": second })).await.unwrap();
    assert_eq!((&asked["cancelled"], &asked["task"]["task_id"]), (&json!(false), &second), "not until it has ended");
    assert_eq!(asked["task"]["cancel_requested"], true);
    until("the cancel", async || tasking.driver.cancelled.lock().unwrap().contains(&"two".to_owned())).await;
    until("the end", async || tasking.stored().await.iter().any(|task| task.snapshot.status == Status::Cancelled))
        .await;
    let again = ask(&tasking, CANCEL, json!({ "task": second })).await.unwrap();
    assert_eq!(again["cancelled"], true, "it is cancelled already: {again}");
    let left = ask(&tasking, CANCEL, json!({ "task": null })).await.unwrap();
    assert_ne!(left["task"]["task_id"], second, "the only one that is left");
    until("both", async || tasking.driver.cancelled.lock().unwrap().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn permissions_and_guardrails_hold_for_them_too() {
    // Contract 2.1; architecture.md §10, guardrails.
    let tasking = tasking().await;
    let refused = ask_as(&tasking, CallTool { caller: only("r_*"), ..call(LIST, "t") }, json!({})).await.unwrap_err();
    assert_eq!(refused.code, Code::Denied);
    let (guardrails, unusable) = Guardrails::of(Written {
        enabled: true,
        fail_closed: true,
        provider: Some("allowlist".to_owned()),
        allowed_tools: None,
        denied_tools: vec![CANCEL.to_owned()],
    });
    assert!(unusable.is_none());
    let options = Options { guardrails, ..Options::default() };
    let driver = Scripted::new(Does::Accept("one".to_owned()));
    let servers = json!({ "r": task_server(&json!({})) });
    let guarded = Tasking::with(driver, servers, options, &["submit", "status", "cancel"]).await;
    assert_eq!(names(&guarded.setting, &anybody()).await, [LIST]);
    let listed = guarded.setting.runtime.list_tools(&anybody(), &ann()).await.unwrap();
    assert!(listed.denied.iter().any(|name| **name == *CANCEL));
    assert_eq!(ask(&guarded, CANCEL, json!({})).await.unwrap_err().code, Code::Denied);
    let as_task = CallTool { task: Wish::Asked, ..call(LIST, "t") };
    assert_eq!(guarded.setting.runtime.call_tool(as_task).await.err().unwrap().code, Code::Invalid);
}
