//! The table of contract 6.7, row by row: by tools as it stands, and what its rows are in the two protocols.

use caribou_core::failure::Class;
use caribou_core::task::parse::Misread;
use caribou_core::task::{Status, TaskLimits};
use caribou_ports::task_driver::{DriverError, SubmitTask, Submitted, TaskDriver};

use super::upstream::{Says, Script, handle, local, result, tool};
use crate::tasks::{LegacyTasks, ModernTasks, OrdinaryTools};

/// What came of an answer.
#[derive(Debug, PartialEq)]
enum Means {
    /// A task by this name.
    Task(&'static str),
    /// An ordinary result.
    Answered,
    /// This state, and the error that is stored with it.
    State(Status, Option<&'static str>),
    /// A failure of this class, with these words in it.
    Fails(Class, &'static str),
}

use Means::{Answered, Fails, State, Task};

fn limits() -> TaskLimits {
    TaskLimits { max_status_bytes: 1_000, ..TaskLimits::default() }
}

fn drivers() -> (OrdinaryTools, LegacyTasks, ModernTasks) {
    (OrdinaryTools::new(limits()), LegacyTasks::new(limits()), ModernTasks::new(limits()))
}

fn failed(error: &DriverError, expected: &Means, row: usize) {
    let Fails(class, words) = expected else { panic!("row {row}: {error}") };
    assert!(error.class() == *class && error.to_string().contains(words), "row {row}: {:?} {error}", error.class());
}

async fn submits(driver: &dyn TaskDriver, rows: impl IntoIterator<Item = (Says, Means)>) {
    for (row, (says, expected)) in rows.into_iter().enumerate() {
        let script = Script::new([says]);
        let key = caribou_ports::store::SubmitKey([1; 16]);
        let submit = SubmitTask { task: local(), submit_key: key, task_name: "report", arguments: None };
        match driver.submit(&script, submit).await {
            Ok(Submitted::Task(task)) => {
                assert_eq!(Task(task.remote_id.clone().leak()), expected, "row {row}");
                assert!(!task.driver_data.contains(&task.remote_id), "contract 6.6: no name of it in the data");
            }
            Ok(Submitted::Answered(_)) => assert_eq!(Answered, expected, "row {row}"),
            Err(error) => failed(&error, &expected, row),
        }
        script.seen();
    }
}

/// Rows of one duty; several answers where the driver asks more than once.
async fn asks(driver: &dyn TaskDriver, cancel: bool, rows: impl IntoIterator<Item = (Vec<Says>, Means)>) {
    for (row, (says, expected)) in rows.into_iter().enumerate() {
        let script = Script::new(says);
        let asked = if cancel { driver.cancel(&script, handle()) } else { driver.status(&script, handle()) };
        match asked.await {
            Ok(report) => {
                assert_eq!(
                    State(report.status, report.error.clone().map(|error| &*error.leak())),
                    expected,
                    "row {row}"
                );
                assert_eq!(report.input_required.is_some(), report.status == Status::InputRequired, "row {row}");
            }
            Err(error) => failed(&error, &expected, row),
        }
        script.seen();
    }
}

const RUNS: &str = r#"{"taskId":"r","status":"working"}"#;

#[tokio::test]
async fn a_submit_by_tools() {
    // Contract 6.7, column submit.
    let error = r#"{"isError":true,"content":[{"type":"text","text":"full"}]}"#;
    submits(
        &drivers().0,
        [
            (tool(r#"{"task_id":"a","status":"running","more":1}"#), Task("a")),
            (result(error), Fails(Class::Retry, "MCP task submit tool returned an error: full")),
            (result(r#"{"isError":true,"content":[]}"#), Fails(Class::Retry, "submit tool returned an error")),
            (
                result(r#"{"content":[{"type":"text","text":"{}"}]}"#),
                Fails(Class::Invalid, "structuredContent is missing"),
            ),
            (tool("[]"), Fails(Class::Invalid, "not an object")),
            (tool(r#"{"status":"running"}"#), Fails(Class::Invalid, "task_id is missing")),
            (tool(r#"{"task_id":"a","status":"queued"}"#), Fails(Class::Invalid, "must be running")),
            (Says::Lost, Fails(Class::Unknown, "broke off")),
            (Says::Rpc(-32_603, "down"), Fails(Class::Invalid, "down")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_submit_in_the_protocols() {
    // Contract 6.7, column submit; mcp.md §9.1 and §9.2, create result.
    let (_, legacy, modern) = drivers();
    submits(
        &legacy,
        [
            (result(r#"{"task":{"taskId":"a","status":"working","ttl":null,"pollInterval":500}}"#), Task("a")),
            (result(r#"{"content":[],"isError":true}"#), Answered),
            (result(r#"{"task":{"status":"working"}}"#), Fails(Class::Invalid, "taskId is missing")),
            (result(r#"{"task":{"taskId":"a","status":"queued"}}"#), Fails(Class::Invalid, "the status is none")),
            (result(r#"{"task":null}"#), Fails(Class::Invalid, "not an object")),
            (Says::Rpc(-32_601, "augmentation required"), Fails(Class::Invalid, "augmentation required")),
            (Says::Lost, Fails(Class::Unknown, "broke off")),
        ],
    )
    .await;
    submits(
        &modern,
        [
            (
                result(r#"{"resultType":"task","taskId":"a","status":"working","ttlMs":1,"pollIntervalMs":2}"#),
                Task("a"),
            ),
            (result(r#"{"resultType":"complete","content":[]}"#), Answered),
            (result(r#"{"content":[],"taskId":"a","status":"working"}"#), Answered),
            (result(r#"{"resultType":"task","status":"working"}"#), Fails(Class::Invalid, "taskId is missing")),
            (result(r#"{"resultType":"task","taskId":"a"}"#), Fails(Class::Invalid, "the status is none")),
            (Says::Rpc(-32_021, "sampling needed"), Fails(Class::NotFound, "sampling needed; declare")),
            (Says::Lost, Fails(Class::Unknown, "broke off")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_status_by_tools() {
    // Contract 6.7, column status.
    let one = |structured: &str| vec![tool(structured)];
    let asked = r#"{"task_id":"r","status":"input_required","input_required":{"q":1}}"#;
    asks(
        &drivers().0,
        false,
        [
            (one(r#"{"task_id":"r","status":"running"}"#), State(Status::Working, None)),
            (one(asked), State(Status::InputRequired, None)),
            (one(r#"{"task_id":"r","status":"completed","result":0}"#), State(Status::Completed, None)),
            (one(r#"{"task_id":"r","status":"failed","error":"e"}"#), State(Status::Failed, Some("e"))),
            (one(r#"{"task_id":"r","status":"cancelled"}"#), State(Status::Cancelled, None)),
            (vec![result(r#"{"isError":true}"#)], Fails(Class::Retry, "MCP task status tool returned an error")),
            (one("null"), Fails(Class::Invalid, "structuredContent is missing")),
            (one(r#"{"task_id":"s","status":"running"}"#), Fails(Class::Invalid, "another one")),
            (one(r#"{"task_id":"r","status":"paused"}"#), Fails(Class::Invalid, "the status is none")),
            (
                one(r#"{"task_id":"r","status":"x","error_code":"task_not_found","error":"e"}"#),
                State(Status::Failed, Some("e")),
            ),
            (one(r#"{"task_id":"r","status":"running","error_code":"other"}"#), State(Status::Working, None)),
            (one(r#"{"task_id":"r","status":"input_required"}"#), Fails(Class::Invalid, "input_required is missing")),
            (
                one(r#"{"task_id":"r","status":"running","poll_after_seconds":0}"#),
                Fails(Class::Invalid, "poll_after_seconds"),
            ),
            (one(r#"{"task_id":"r","status":"running","poll_after_seconds":1e20}"#), State(Status::Working, None)),
            (
                one(r#"{"task_id":"r","status":"completed","result_artifact":{}}"#),
                Fails(Class::Invalid, "result_artifact"),
            ),
            (
                one(&format!(r#"{{"task_id":"r","status":"completed","result":"{}"}}"#, "x".repeat(1_000))),
                Fails(Class::Invalid, "max_status_bytes"),
            ),
            (vec![Says::Lost], Fails(Class::Unknown, "broke off")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_status_of_revision_2025_11_25() {
    // mcp.md §9.1 and §14.5: what a tool reports of itself is a completion, a JSON-RPC error is a failure.
    let get = |status: &str| result(&format!(r#"{{"taskId":"r","status":"{status}","statusMessage":"m"}}"#));
    let large = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(1_000));
    let gone = Some("the MCP server no longer knows the task; it said that it keeps it for 60 s");
    asks(
        &drivers().1,
        false,
        [
            (vec![result(RUNS)], State(Status::Working, None)),
            (vec![get("input_required")], State(Status::InputRequired, None)),
            (vec![get("cancelled")], State(Status::Cancelled, None)),
            (vec![get("completed"), result(r#"{"content":[]}"#)], State(Status::Completed, None)),
            (vec![get("failed"), result(r#"{"content":[],"isError":true}"#)], State(Status::Completed, None)),
            (vec![get("failed"), Says::Rpc(-32_603, "down")], State(Status::Failed, Some("m"))),
            (
                vec![result(r#"{"taskId":"r","status":"failed"}"#), Says::Rpc(-32_603, "down")],
                State(Status::Failed, Some("down")),
            ),
            (vec![get("completed"), Says::Rpc(-32_602, "gone")], State(Status::Failed, gone)),
            (vec![get("completed"), Says::Rpc(-32_603, "busy")], Fails(Class::Invalid, "busy")),
            (vec![get("completed"), Says::Lost], Fails(Class::Unknown, "broke off")),
            (vec![get("completed"), result(&large)], Fails(Class::Invalid, "max_status_bytes")),
            (vec![Says::Rpc(-32_602, "unknown task")], State(Status::Failed, gone)),
            (vec![Says::Rpc(-32_603, "down")], Fails(Class::Invalid, "down")),
            (vec![result(r#"{"taskId":"s","status":"working"}"#)], Fails(Class::Invalid, "another one")),
            (vec![get("paused")], Fails(Class::Invalid, "the status is none")),
            (vec![result("[]")], Fails(Class::Invalid, "not an object")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_status_of_the_modern_era() {
    // mcp.md §9.2: the whole state stands in the answer; `failed` means a JSON-RPC error.
    let get = |status: &str, more: &str| {
        vec![result(&format!(r#"{{"resultType":"complete","taskId":"r","status":"{status}"{more}}}"#))]
    };
    let asked = r#","inputRequests":{"k":{"method":"elicitation/create","params":{}}}"#;
    let tool_error = r#","result":{"content":[],"isError":true}"#;
    let rpc_error = r#","error":{"code":-32603,"message":"down"}"#;
    let large = format!(r#","result":{{"x":"{}"}}"#, "x".repeat(1_000));
    let gone = Some("the MCP server no longer knows the task; it said that it keeps it for 60 s");
    asks(
        &drivers().2,
        false,
        [
            (vec![result(RUNS)], State(Status::Working, None)),
            (get("input_required", asked), State(Status::InputRequired, None)),
            (get("input_required", ""), Fails(Class::Invalid, "inputRequests is missing")),
            (get("input_required", r#","inputRequests":[]"#), Fails(Class::Invalid, "inputRequests is missing")),
            (get("cancelled", ""), State(Status::Cancelled, None)),
            (get("completed", tool_error), State(Status::Completed, None)),
            (get("completed", ""), Fails(Class::Invalid, "the result of a completed task is missing")),
            (get("completed", &large), Fails(Class::Invalid, "max_status_bytes")),
            (get("failed", rpc_error), State(Status::Failed, Some("the server answered with error -32603: down"))),
            (get("failed", r#","statusMessage":"m""#), State(Status::Failed, Some("m"))),
            (get("paused", ""), Fails(Class::Invalid, "the status is none")),
            (vec![Says::Rpc(-32_602, "unknown task")], State(Status::Failed, gone)),
            (vec![Says::Rpc(-32_021, "undeclared")], Fails(Class::NotFound, "client_capabilities")),
            (vec![Says::Lost], Fails(Class::Unknown, "broke off")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_cancel_by_tools() {
    // Contract 6.7, column cancel.
    let one = |structured: &str| vec![tool(structured)];
    asks(
        &drivers().0,
        true,
        [
            (one(r#"{"task_id":"r","status":"cancelled"}"#), State(Status::Cancelled, None)),
            (one(r#"{"task_id":"r","status":"completed","result":1}"#), State(Status::Completed, None)),
            (one(r#"{"task_id":"r","status":"failed","error":"e"}"#), State(Status::Failed, Some("e"))),
            (one(r#"{"task_id":"r","status":"running"}"#), Fails(Class::Invalid, "must be terminal")),
            (vec![result(r#"{"isError":true}"#)], Fails(Class::Retry, "MCP task cancel tool returned an error")),
            (one("null"), Fails(Class::Invalid, "structuredContent is missing")),
            (vec![Says::Lost], Fails(Class::Unknown, "broke off")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_cancel_in_the_protocols() {
    // Contract 6.10; mcp.md §9.1: a task that has ended refuses with -32602 and is read; §9.2: the answer is empty.
    let (_, legacy, modern) = drivers();
    let refused = || Says::Rpc(-32_602, "terminal");
    let cancelled = r#"{"taskId":"r","status":"cancelled"}"#;
    let gone = Some("the MCP server no longer knows the task; it said that it keeps it for 60 s");
    let completed = || result(r#"{"taskId":"r","status":"completed"}"#);
    asks(
        &legacy,
        true,
        [
            (vec![result(cancelled)], State(Status::Cancelled, None)),
            (vec![refused(), result(cancelled)], State(Status::Cancelled, None)),
            (vec![refused(), completed(), result("{}")], State(Status::Completed, None)),
            (vec![refused(), refused()], State(Status::Failed, gone)),
            (vec![result(RUNS), result(RUNS)], Fails(Class::Invalid, "has not ended yet")),
            (vec![Says::Rpc(-32_601, "no cancel"), result(RUNS)], Fails(Class::Invalid, "has not ended yet")),
            (vec![result(r#"{"taskId":"s","status":"cancelled"}"#)], Fails(Class::Invalid, "another one")),
            (vec![Says::Lost], Fails(Class::Unknown, "broke off")),
        ],
    )
    .await;
    asks(
        &modern,
        true,
        [
            (vec![result("{}"), result(cancelled)], State(Status::Cancelled, None)),
            (
                vec![result("{}"), result(r#"{"taskId":"r","status":"completed","result":{}}"#)],
                State(Status::Completed, None),
            ),
            (vec![result("{}"), result(RUNS)], Fails(Class::Invalid, "has not ended yet")),
            (vec![refused(), refused()], State(Status::Failed, gone)),
            (vec![Says::Lost], Fails(Class::Unknown, "broke off")),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_toolset_that_is_gone_is_told_without_asking() {
    let (ordinary, ..) = drivers();
    let script = Script::new([]);
    let gone = ordinary.status(&script, caribou_ports::task_driver::TaskHandle { task_name: "old", ..handle() }).await;
    assert!(matches!(&gone, Err(error @ DriverError::NotSupported(_)) if error.class() == Class::NotFound), "{gone:?}");
    assert!(!matches!(gone, Err(DriverError::Misread(Misread::Protocol(_)))));
    assert!(script.seen().is_empty());
}
