//! What is asked of a server, word by word.

use caribou_core::task::TaskLimits;
use caribou_ports::store::{NewAnswer, SubmitKey};
use caribou_ports::task_driver::{SubmitTask, Submitted, TaskDriver};
use serde_json::value::RawValue;

use super::upstream::{Script, handle, local, result, tool};
use crate::tasks::{LegacyTasks, ModernTasks, OrdinaryTools};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn submit(arguments: Option<&RawValue>) -> SubmitTask<'_> {
    SubmitTask { task: local(), submit_key: SubmitKey([1; 16]), task_name: "report", arguments }
}

#[tokio::test]
async fn tools_are_called_with_the_callers_arguments_and_the_remotes_name() {
    // Contract 6.6, arguments.
    let driver = OrdinaryTools::new(TaskLimits::default());
    let script = Script::new([
        tool(r#"{"task_id":"r","status":"running"}"#),
        tool(r#"{"task_id":"r","status":"running"}"#),
        tool(r#"{"task_id":"r","status":"running"}"#),
        tool(r#"{"task_id":"r","status":"cancelled"}"#),
    ]);
    let arguments = raw(r#"{"b":9223372036854775809,"a":1.0}"#);
    driver.submit(&script, submit(Some(&arguments))).await.unwrap();
    driver.submit(&script, submit(None)).await.unwrap();
    driver.status(&script, handle()).await.unwrap();
    driver.cancel(&script, handle()).await.unwrap();
    assert_eq!(
        script.seen(),
        [
            r#"report_start {"b":9223372036854775809,"a":1.0}"#,
            "report_start -",
            r#"report_status {"task_id":"r"}"#,
            r#"report_cancel {"task_id":"r"}"#
        ]
    );
}

#[tokio::test]
async fn a_call_asks_for_a_task_and_the_tasks_are_asked_about_by_name() {
    // mcp.md §9.1 and §9.2.
    let legacy = LegacyTasks::new(TaskLimits::default());
    let script = Script::new([
        result(r#"{"task":{"taskId":"r","status":"working","pollInterval":1500}}"#),
        result(r#"{"taskId":"r","status":"completed"}"#),
        result(r#"{"content":[],"x":1.0,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"r"}}}"#),
    ]);
    let Submitted::Task(task) = legacy.submit(&script, submit(Some(&raw("{}")))).await.unwrap() else {
        panic!("a task")
    };
    assert_eq!(task.poll_after_seconds, Some(1.5), "mcp.md §9.1, pollInterval");
    let ended = legacy.status(&script, handle()).await.unwrap();
    assert_eq!(ended.result.unwrap().get(), r#"{"content":[],"x":1.0}"#, "invariant W1, but for the remote's name");
    let about = r#"{"taskId":"r"}"#;
    assert_eq!(
        script.seen(),
        ["report {} as task {}".to_owned(), format!("tasks/get {about}"), format!("tasks/result {about}")]
    );

    let modern = ModernTasks::new(TaskLimits::default());
    let done = r#"{"taskId":"r","status":"completed","result":{"x":1.0,"big":9223372036854775809}}"#;
    let script = Script::new([
        result(r#"{"resultType":"task","taskId":"r","status":"working","pollIntervalMs":250}"#),
        result(done),
        result("{}"),
        result(done),
    ]);
    let Submitted::Task(task) = modern.submit(&script, submit(None)).await.unwrap() else { panic!("a task") };
    assert_eq!(task.poll_after_seconds, Some(0.25), "mcp.md §9.2, pollIntervalMs");
    let ended = modern.status(&script, handle()).await.unwrap();
    assert_eq!(ended.result.unwrap().get(), r#"{"x":1.0,"big":9223372036854775809}"#);
    modern.cancel(&script, handle()).await.unwrap();
    let expected = ["report - as task {}".to_owned()].into_iter();
    let expected = expected.chain(["get", "cancel", "get"].map(|verb| format!("tasks/{verb} {about}")));
    assert_eq!(script.seen(), expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn only_an_answer_of_the_modern_era_makes_a_task_of_a_plain_call() {
    // mcp.md §9.2: the server decides.
    let flat = raw(r#"{"resultType":"task","taskId":"r","status":"working"}"#);
    let modern = ModernTasks::new(TaskLimits::default());
    assert_eq!(modern.created(&flat).unwrap().map(|task| task.remote_id).as_deref(), Some("r"));
    assert!(modern.created(&raw(r#"{"content":[]}"#)).unwrap().is_none());
    assert!(modern.created(&raw(r#"{"resultType":"task"}"#)).is_err());
    assert!(LegacyTasks::new(TaskLimits::default()).created(&flat).unwrap().is_none());
}

#[tokio::test]
async fn each_answer_is_one_call_of_the_input_tool_with_its_name() {
    // architecture.md §10, input_tool.
    let answers = ["a", "b"].map(|name| NewAnswer { input_id: name.to_owned(), body: r#"{"x":1.0}"#.to_owned() });
    let driver = OrdinaryTools::new(TaskLimits::default());
    let script = Script::new([result(r#"{"content":[]}"#), result(r#"{"isError":true}"#)]);
    assert!(driver.answer(&script, handle(), &answers).await.is_err(), "the second was refused");
    let called = |name: &str| format!(r#"report_input {{"task_id":"r","input_id":"{name}","response":{{"x":1.0}}}}"#);
    assert_eq!(script.seen(), [called("a"), called("b")]);

    let mute = caribou_ports::task_driver::TaskHandle { task_name: "mute", ..handle() };
    let refused = driver.answer(&Script::new([]), mute, &answers).await.unwrap_err();
    assert!(refused.to_string().contains("`input_tool`"), "{refused}");
}
