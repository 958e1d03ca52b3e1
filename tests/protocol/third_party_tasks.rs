//! Tasks of servers that others wrote, followed by Caribou from the call to the end: asked about by its poller, one
//! question each answered by a person, whatever dies meanwhile.

use std::time::Duration;

use caribou_tests::{Caribou, Home, Setup, eventually, third_party};
use serde_json::{Value, json};

/// How long a state may take to come; the research of `server-everything` takes four seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The tasks of the thread that everything here is called in.
const TASKS: &str = "/api/threads/t1/mcp-tasks";

/// A setup that keeps its data beyond one Caribou.
fn kept(data: &Home) -> Setup {
    let data = data.join("data");
    Setup::new()
        .settings("mcp_tasks: {poll_interval_seconds: 1}\n")
        .variable("CARIBOU_DATA_DIR", data.to_str().unwrap())
}

/// Calls a tool as a task: its name here.
async fn begin(caribou: &Caribou, tool: &str, arguments: Value) -> String {
    let call = json!({ "name": tool, "arguments": arguments, "thread_id": "t1", "task": true });
    let answer = caribou.post("/api/mcp/tools/call", call.to_string()).await;
    let told = &answer.json()["result"]["structuredContent"];
    told["task_id"].as_str().unwrap_or_else(|| panic!("no task but {answer:?}; {}", caribou.log())).to_owned()
}

/// Waits until the task stands like this.
async fn until(caribou: &Caribou, task: &str, status: &str) -> Value {
    eventually(PATIENCE, &format!("{task} is {status}"), async || {
        let shown = caribou.get(&format!("{TASKS}/{task}")).await.json();
        (shown["status"] == status).then_some(shown)
    })
    .await
}

/// Answers the question of a task.
async fn answer(caribou: &Caribou, task: &str, asked: &Value, content: Value) {
    let requests = asked["input_required"]["inputRequests"].as_object();
    let name = requests.and_then(|requests| requests.keys().next()).unwrap_or_else(|| panic!("no question: {asked}"));
    let input = json!({ "input_id": name, "response": { "action": "accept", "content": content } });
    let answered = caribou.post(&format!("{TASKS}/{task}/input"), input.to_string()).await;
    assert!(answered.status < 300, "{answered:?}");
}

#[tokio::test]
async fn research_of_revision_2025_11_25_is_followed_over_stdio_and_http_and_its_question_answered() {
    // mcp.md §9.1, input.
    let remote = third_party::EverythingHttp::start().await;
    for entry in [third_party::everything(), remote.entry()] {
        let caribou = kept(&Home::new()).server("lab", entry).start().await;
        let research = json!({ "topic": "python", "ambiguous": true });
        let task = begin(&caribou, "lab_simulate-research-query", research).await;
        let asked = until(&caribou, &task, "input_required").await;
        answer(&caribou, &task, &asked, json!({ "interpretation": "snake" })).await;
        let done = until(&caribou, &task, "completed").await;
        assert!(done["result"].to_string().contains("**Clarification**: snake"), "{done}");
    }
}

#[tokio::test]
async fn research_that_lived_in_a_session_of_a_caribou_that_was_killed_ends_in_an_honest_error() {
    // architecture.md §10, pinned tasks: the server keeps its tasks in memory, one store for each session.
    let data = Home::new();
    let caribou = kept(&data).server("lab", third_party::everything()).start().await;
    let task = begin(&caribou, "lab_simulate-research-query", json!({ "topic": "moss", "ambiguous": true })).await;
    until(&caribou, &task, "input_required").await;
    let _home = caribou.kill().await;
    let caribou = kept(&data).server("lab", third_party::everything()).start().await;
    let ended = until(&caribou, &task, "failed").await;
    assert!(ended["error"].as_str().unwrap().starts_with("task lost: server restarted"), "{ended}");
}

#[tokio::test]
async fn a_task_of_the_modern_era_outlives_the_caribou_that_follows_it() {
    // mcp.md §9.2: whoever knows the name of a task may ask about it.
    let remote = third_party::FastMcpTasksHttp::start().await;
    let data = Home::new();
    let caribou = kept(&data).server("fast", remote.entry()).start().await;
    let task = begin(&caribou, "fast_ask", json!({})).await;
    let asked = until(&caribou, &task, "input_required").await;
    let _home = caribou.kill().await;
    let caribou = kept(&data).server("fast", remote.entry()).start().await;
    answer(&caribou, &task, &asked, json!({ "name": "red" })).await;
    let done = until(&caribou, &task, "completed").await;
    assert!(done["result"].to_string().contains("painted it red"), "{done}");
}
