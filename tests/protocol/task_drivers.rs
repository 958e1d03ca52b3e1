//! The drivers of tasks against servers that others wrote: revision 2025-11-25 in `server-everything`, the extension of
//! the modern era in FastMCP, each over stdio and HTTP. A driver is handed one session, as the runtime does.

mod over_session;

use std::time::Duration;

use caribou_core::failure::Class;
use caribou_core::task::{Report, Status, TaskId, TaskLimits};
use caribou_mcp::tasks::{LegacyTasks, ModernTasks};
use caribou_ports::store::{NewAnswer, SubmitKey};
use caribou_ports::task_driver::{DriverError, RemoteTask, SubmitTask, Submitted, TaskDriver, TaskHandle};
use caribou_tests::{eventually, third_party};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::over_session::OverSession;

/// How long a state may take to come; the research of `server-everything` takes four seconds.
const PATIENCE: Duration = Duration::from_secs(30);

fn legacy() -> LegacyTasks {
    LegacyTasks::new(TaskLimits::default())
}

fn modern() -> ModernTasks {
    ModernTasks::new(TaskLimits::default())
}

async fn begin(driver: &dyn TaskDriver, server: &OverSession, tool: &str, arguments: Value) -> RemoteTask {
    let arguments = RawValue::from_string(arguments.to_string()).unwrap();
    let (task, submit_key) = (TaskId([1; 16]), SubmitKey([2; 16]));
    let asked = SubmitTask { task, submit_key, task_name: tool, arguments: Some(&arguments) };
    match driver.submit(server, asked).await.unwrap() {
        Submitted::Task(task) => task,
        Submitted::Answered(result) => panic!("no task but {result}"),
    }
}

fn handle(task: &RemoteTask) -> TaskHandle<'_> {
    let (remote_id, driver_data) = (task.remote_id.as_str(), task.driver_data.as_str());
    TaskHandle { task: TaskId([1; 16]), task_name: "", remote_id, driver_data }
}

/// Asks until the task stands like this.
async fn reach(driver: &dyn TaskDriver, server: &OverSession, task: &RemoteTask, status: Status) -> Report {
    eventually(PATIENCE, &format!("{status:?}"), async || {
        let report = driver.status(server, handle(task)).await.unwrap();
        assert!(report.status == status || !report.status.is_terminal(), "{report:?}");
        (report.status == status).then_some(report)
    })
    .await
}

fn json_of(raw: Option<&RawValue>) -> Value {
    serde_json::from_str(raw.expect("it is there").get()).unwrap()
}

/// Takes the question of a task, and answers it.
async fn answer(
    driver: &dyn TaskDriver,
    server: &OverSession,
    task: &RemoteTask,
    asked: &Report,
    content: Value,
) -> Value {
    let question = json_of(asked.input_required.as_deref());
    assert!(!question.to_string().contains(&task.remote_id), "contract 2.3: the remote's name is shown: {question}");
    let name = question["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let body = json!({ "action": "accept", "content": content }).to_string();
    driver.answer(server, handle(task), &[NewAnswer { input_id: name, body }]).await.unwrap();
    question
}

#[tokio::test]
async fn research_of_revision_2025_11_25_asks_a_person_and_goes_on_with_the_answer() {
    // mcp.md §9.1, input; over stdio and HTTP.
    let remote = third_party::EverythingHttp::start().await;
    for entry in [third_party::everything(), remote.entry()] {
        let server = OverSession::open(entry, json!({ "elicitation": {} })).await;
        let arguments = json!({ "topic": "python", "ambiguous": true });
        let task = begin(&legacy(), &server, "simulate-research-query", arguments).await;
        assert_eq!(task.poll_after_seconds, Some(1.0));
        let asked = reach(&legacy(), &server, &task, Status::InputRequired).await;
        let question = answer(&legacy(), &server, &task, &asked, json!({ "interpretation": "snake" })).await;
        assert_eq!(question["kind"], "elicitation");
        assert_eq!(question["requestedSchema"]["required"], json!(["interpretation"]));
        let ended = reach(&legacy(), &server, &task, Status::Completed).await;
        let result = json_of(ended.result.as_deref());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("**Clarification**: snake"), "{text}");
        assert!(!result.to_string().contains(&task.remote_id), "contract 2.3");
        server.close().await;
    }
}

#[tokio::test]
async fn research_of_revision_2025_11_25_that_was_cancelled_stays_cancelled() {
    // Contract 6.10; mcp.md §9.1, tasks/cancel: a task that has ended refuses and is read.
    let server = OverSession::open(third_party::everything(), json!({})).await;
    let task = begin(&legacy(), &server, "simulate-research-query", json!({ "topic": "moss" })).await;
    for _ in 0..2 {
        assert_eq!(legacy().cancel(&server, handle(&task)).await.unwrap().status, Status::Cancelled);
    }
    let unknown = TaskHandle { remote_id: "no-such-task", ..handle(&task) };
    let report = legacy().status(&server, unknown).await.unwrap();
    assert_eq!(report.status, Status::Failed, "mcp.md §9.1, unknown id: {report:?}");
    let late = NewAnswer { input_id: "q-1".to_owned(), body: "{}".to_owned() };
    let refused = legacy().answer(&server, handle(&task), &[late]).await;
    assert!(matches!(&refused, Err(error @ DriverError::NotSupported(_)) if error.class() == Class::NotFound));
    server.close().await;
}

#[tokio::test]
async fn tasks_of_the_modern_era_end_in_each_way() {
    // mcp.md §9.2; §14.5: what a tool reports of itself is a completion. Over stdio and HTTP.
    let remote = third_party::FastMcpTasksHttp::start().await;
    for entry in [third_party::fastmcp_tasks(), remote.entry()] {
        let server = OverSession::open(entry, json!({ "elicitation": {} })).await;
        let sum = begin(&modern(), &server, "add", json!({ "a": 19, "b": 23 })).await;
        let ended = reach(&modern(), &server, &sum, Status::Completed).await;
        assert_eq!(json_of(ended.result.as_deref())["structuredContent"]["result"], 42);

        let torn = begin(&modern(), &server, "tear", json!({})).await;
        let ended = reach(&modern(), &server, &torn, Status::Completed).await;
        assert_eq!(json_of(ended.result.as_deref())["isError"], true);

        let painted = begin(&modern(), &server, "ask", json!({})).await;
        let asked = reach(&modern(), &server, &painted, Status::InputRequired).await;
        let question = answer(&modern(), &server, &painted, &asked, json!({ "name": "red" })).await;
        assert_eq!(question["message"], "Which colour?");
        let ended = reach(&modern(), &server, &painted, Status::Completed).await;
        assert_eq!(json_of(ended.result.as_deref())["content"][0]["text"], "painted it red");

        let brood = begin(&modern(), &server, "brood", json!({})).await;
        assert_eq!(reach(&modern(), &server, &brood, Status::Working).await.poll_after_seconds, Some(5.0));
        let cancelled = eventually(PATIENCE, "the cancelled task ends", async || {
            modern().cancel(&server, handle(&brood)).await.ok()
        });
        assert_eq!(cancelled.await.status, Status::Cancelled);

        let unknown = TaskHandle { remote_id: "no-such-task", ..handle(&brood) };
        assert_eq!(modern().status(&server, unknown).await.unwrap().status, Status::Failed);
        server.close().await;
    }
}
