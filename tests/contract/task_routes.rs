//! The routes of durable tasks (contract 2.3, 2.4), over the reports of the demo server.

use std::time::Duration;

use caribou_tests::{Answer, Caribou, Setup, caribou::binary, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

const THREAD: &str = "/api/threads/t1/mcp-tasks";

/// One that follows the reports of a server named `demo`.
fn with_reports() -> Setup {
    let setup = Setup::new().settings("mcp_tasks: {poll_interval_seconds: 1}\n");
    let toolset = json!({
        "name": "report", "submit_tool": "report_submit", "status_tool": "report_status",
        "cancel_tool": "report_cancel", "input_tool": "report_input",
    });
    let program = binary("caribou-under-test");
    setup.server("demo", json!({ "command": program, "args": ["demo-server"], "task_toolsets": [toolset] }))
}

async fn submit(caribou: &Caribou) -> String {
    let told = caribou.call_in("t1", "demo_report_submit", json!({ "topic": "ice" })).await.json();
    told["result"]["structuredContent"]["task_id"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

async fn until(caribou: &Caribou, task: &str, status: &str) -> Value {
    eventually(SOON, status, async || {
        let shown = caribou.get(&format!("{THREAD}/{task}")).await.json();
        (shown["status"] == status).then_some(shown)
    })
    .await
}

async fn answer(caribou: &Caribou, task: &str, body: Value) -> Answer {
    caribou.post(&format!("{THREAD}/{task}/input"), body.to_string()).await
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

const ITEM: [&str; 8] =
    ["task_id", "task_name", "status", "created_at", "updated_at", "error", "tracking_degraded", "cancel_requested"];

const MORE: [&str; 12] = [
    "last_polled_at",
    "last_poll_error",
    "last_cancel_error",
    "cancel_attempt_count",
    "notification_status",
    "notification_error",
    "notification_attempt_count",
    "result",
    "result_preview",
    "result_truncated",
    "result_artifact",
    "input_required",
];

#[tokio::test]
async fn a_list_and_a_task_have_exactly_the_members_of_the_contract() {
    // Contract 2.3, list item, detail, order, never exposed; contract 2.4, features.
    let caribou = with_reports().start().await;
    assert_eq!(caribou.get("/api/features").await.json(), json!({ "mcp_tasks": { "enabled": true } }));
    assert_eq!(caribou.get(THREAD).await.json(), json!([]));
    let (first, second) = (submit(&caribou).await, submit(&caribou).await);
    let listed = caribou.get(THREAD).await;
    let items = listed.json();
    assert_eq!((&items[0]["task_id"], &items[1]["task_id"]), (&json!(second), &json!(first)), "the newest first");
    assert_eq!(keys(&items[0]), ITEM);
    assert_eq!(caribou.get(&format!("{THREAD}?limit=1")).await.json().as_array().unwrap().len(), 1);
    until(&caribou, &first, "input_required").await;
    let shown = caribou.get(&format!("{THREAD}/{first}")).await;
    let detail = shown.json();
    assert_eq!(keys(&detail), [&ITEM[..], &MORE].concat());
    assert_eq!(detail["task_name"], "report");
    assert!(detail["last_polled_at"].as_str().unwrap().ends_with('Z') && detail["input_required"].is_object());
    for hidden in ["report-", "driver", "lease", "demo", "user_id", "remote"] {
        assert!(!listed.body.contains(hidden) && !shown.body.contains(hidden), "{hidden}: {}", shown.body);
    }
}

#[tokio::test]
async fn an_answer_is_taken_once_and_brings_the_task_to_its_end() {
    // Contract 2.3, POST input: 404, 409, 422; contract 6.8, result.
    let caribou = with_reports().start().await;
    let task = submit(&caribou).await;
    let early = answer(&caribou, &task, json!({ "input_id": "a", "answers": { "format": "text" } })).await;
    assert_eq!((early.status, early.code().as_str()), (409, "conflict"), "nothing is asked yet");
    until(&caribou, &task, "input_required").await;
    let wrong = answer(&caribou, &task, json!({ "input_id": "a", "answers": { "format": 7 } })).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "invalid"), "{wrong:?}");
    let right = json!({ "input_id": "a", "response": { "format": "text" } });
    assert_eq!(answer(&caribou, &task, right.clone()).await.status, 200);
    assert_eq!(answer(&caribou, &task, right).await.status, 200, "the same again changes nothing");
    let other = answer(&caribou, &task, json!({ "input_id": "a", "answers": { "format": "table" } })).await;
    assert_eq!(other.status, 409, "{other:?}");
    let done = until(&caribou, &task, "completed").await;
    assert_eq!(done["result"], "A text on ice: it runs in the background, asks, and ends.");
    let unknown = "mcp-task-00000000000000000000000000000000";
    let missing = answer(&caribou, unknown, json!({ "input_id": "a", "answers": {} })).await;
    assert_eq!((missing.status, missing.detail().as_str()), (404, "MCP task not found"));
}

#[tokio::test]
async fn a_list_has_50_tasks_unless_asked_for_1_to_100() {
    // Contract 2.3, limit; 2.1, thread_id.
    let caribou = with_reports().start().await;
    for _ in 0..51 {
        submit(&caribou).await;
    }
    let length = async |query: &str| {
        let listed = caribou.get(&format!("{THREAD}{query}")).await;
        assert_eq!(listed.status, 200, "{listed:?}");
        listed.json().as_array().unwrap().len()
    };
    assert_eq!((length("").await, length("?limit=1").await, length("?limit=100").await), (50, 1, 51));
    let long = "t".repeat(65);
    for path in [
        format!("{THREAD}?limit=0"),
        format!("{THREAD}?limit=101"),
        format!("{THREAD}?limit=ten"),
        format!("{THREAD}?limit=1&limit=2"),
        format!("{THREAD}?limmit=1"),
        format!("/api/threads/{long}/mcp-tasks"),
        "/api/threads/a.b/mcp-tasks".to_owned(),
        "/api/threads/a%20b/mcp-tasks/mcp-task-00000000000000000000000000000000".to_owned(),
    ] {
        let refused = caribou.get(&path).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "invalid"), "{path}: {refused:?}");
    }
    assert_eq!(caribou.get("/api/threads/nobodys/mcp-tasks").await.json(), json!([]), "an unknown thread is empty");
}

#[tokio::test]
async fn a_task_is_there_in_its_own_thread_only() {
    // Contract 2.3, 404.
    let caribou = with_reports().start().await;
    let task = submit(&caribou).await;
    for path in [
        format!("/api/threads/t2/mcp-tasks/{task}"),
        format!("/api/threads/t2/mcp-tasks/{task}/events"),
        format!("{THREAD}/{task}?user_id=bob"),
        format!("{THREAD}/mcp-task-00000000000000000000000000000000"),
        format!("{THREAD}/nothing"),
    ] {
        let answer = caribou.get(&path).await;
        assert_eq!((answer.status, answer.detail().as_str()), (404, "MCP task not found"), "{path}");
    }
    let cancel = caribou.post(&format!("/api/threads/t2/mcp-tasks/{task}/cancel"), "").await;
    assert_eq!((cancel.status, cancel.detail().as_str()), (404, "MCP task not found"));
}

#[tokio::test]
async fn a_cancel_answers_at_once_and_the_task_ends_as_its_server_says() {
    // Contract 2.3, POST cancel; contract 6.10.
    let caribou = with_reports().start().await;
    let task = submit(&caribou).await;
    let asked = caribou.post(&format!("{THREAD}/{task}/cancel"), "").await;
    assert_eq!((asked.status, &asked.json()["cancel_requested"]), (200, &json!(true)));
    let ended = until(&caribou, &task, "cancelled").await;
    let again = caribou.post(&format!("{THREAD}/{task}/cancel"), "").await;
    assert_eq!((again.status, &again.json()["updated_at"]), (200, &ended["updated_at"]), "an end stays as it is");
}

/// The events of a stream: number, and status.
fn told(stream: &str) -> Vec<(i64, String)> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {name}: {block}"))
    };
    let blocks = stream.split("\n\n").filter(|block| block.contains("event: task"));
    blocks
        .map(|block| {
            let data: Value = serde_json::from_str(&field(block, "data: ")).unwrap();
            (field(block, "id: ").parse().unwrap(), data["status"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[tokio::test]
async fn events_are_listed_and_streamed_to_the_end_and_go_on_where_a_client_left() {
    // Invariant T3 and N1: every change is an event, in order, without gaps.
    let caribou = with_reports().start().await;
    let task = submit(&caribou).await;
    let path = format!("{THREAD}/{task}/events");
    let stream = |last: &'static str| {
        let request = caribou.request("GET", &path).header("accept", "text/event-stream");
        caribou.send(if last.is_empty() { request } else { request.header("last-event-id", last) })
    };
    let (whole, ()) = futures::join!(stream(""), async {
        until(&caribou, &task, "input_required").await;
        let body = json!({ "input_id": "a", "answers": { "format": "table" } });
        assert_eq!(answer(&caribou, &task, body).await.status, 200);
    });
    assert_eq!((whole.status, whole.content_type.as_str()), (200, "text/event-stream"));
    let events = told(&whole.body);
    let numbers: Vec<i64> = events.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=i64::try_from(events.len()).unwrap()).collect::<Vec<_>>());
    assert_eq!((events[0].1.as_str(), events.last().unwrap().1.as_str()), ("submitted", "completed"));
    assert_eq!(told(&stream("1").await.body), events[1..]);
    assert_eq!(stream("99").await.status, 204, "nothing can follow any more");
    let listed = caribou.get(&format!("{path}?after=1&limit=1")).await.json();
    assert_eq!((&listed["events"][0]["seq"], &listed["next"]), (&json!(2), &json!(2)));
    assert_eq!(listed["events"][0]["event"]["task_id"], json!(task));
}

#[tokio::test]
async fn admins_see_the_tasks_of_everybody_page_by_page() {
    let caribou = with_reports().start().await;
    for (user, thread) in [("ann", "a"), ("bob", "b"), ("ann", "c")] {
        let body = json!({
            "name": "demo_report_submit", "arguments": { "topic": "ice" }, "user_id": user, "thread_id": thread,
        });
        assert_eq!(caribou.post("/api/mcp/tools/call", body.to_string()).await.status, 200);
    }
    let list = async |query: &str| caribou.get(&format!("/api/mcp-tasks?{query}")).await.json();
    let threads = |page: &Value| -> Vec<String> {
        let tasks = page["tasks"].as_array().unwrap().iter();
        tasks
            .map(|task| format!("{}:{}", task["user_id"].as_str().unwrap(), task["thread_id"].as_str().unwrap()))
            .collect()
    };
    let first = list("limit=2").await;
    assert_eq!(threads(&first), ["ann:c", "bob:b"]);
    assert_eq!(first["tasks"][0]["server"], "demo");
    let second = list(&format!("limit=2&cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!((threads(&second), &second["next"]), (vec!["ann:a".to_owned()], &Value::Null));
    assert_eq!(threads(&list("user_id=ann&thread_id=a&server=demo&active=true").await), ["ann:a"]);
    assert_eq!(threads(&list("active=false").await), [""; 0]);
    let task = first["tasks"][0]["task_id"].as_str().unwrap();
    let retold = caribou.post(&format!("/api/mcp-tasks/{task}/redeliver"), "").await;
    assert_eq!((retold.status, retold.code().as_str()), (409, "conflict"), "nothing was given up");
}

#[tokio::test]
async fn others_see_neither_the_tasks_of_a_user_nor_those_of_everybody() {
    // Contract 2.1 and 2.3, permissions; invariant P1.
    let setup = with_reports().variable("CARIBOU_AUTH_MODE", "api_keys");
    let mut made = Vec::new();
    for user in ["ann", "bob"] {
        let create = setup.command(&["keys", "create", "--json", "--user", user]).output();
        let created = tokio::time::timeout(SOON, create).await.expect("the command ends").unwrap();
        let key: Value = serde_json::from_slice(&created.stdout).unwrap();
        made.push(format!("Bearer {}", key["key"].as_str().unwrap()));
    }
    let [ann, bob] = &made[..] else { panic!("two keys") };
    let caribou = setup.start().await;
    let ask = |bearer: &str, method: &str, path: &str, body: Value| {
        let request = caribou.request(method, path).header("authorization", bearer);
        caribou.send(if body.is_null() { request } else { request.json(&body) })
    };
    let call = json!({ "name": "demo_report_submit", "arguments": { "topic": "ice" }, "thread_id": "t1" });
    let told = ask(ann, "POST", "/api/mcp/tools/call", call).await.json();
    let task = told["result"]["structuredContent"]["task_id"].as_str().unwrap();
    let own = format!("{THREAD}/{task}");
    assert_eq!(ask(ann, "GET", &own, Value::Null).await.status, 200);
    assert_eq!(ask(bob, "GET", &own, Value::Null).await.detail(), "MCP task not found");
    assert_eq!(ask(bob, "POST", &format!("{own}/cancel"), Value::Null).await.status, 404);
    assert_eq!(ask(bob, "GET", &format!("{own}?user_id=ann"), Value::Null).await.status, 403);
    assert_eq!(ask(bob, "GET", THREAD, Value::Null).await.status, 404, "a thread owned by someone else");
    for (method, path) in [("GET", "/api/mcp-tasks".to_owned()), ("POST", format!("/api/mcp-tasks/{task}/redeliver"))] {
        let refused = ask(ann, method, &path, Value::Null).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "denied"), "{path}");
    }
    assert_eq!(ask("", "GET", THREAD, Value::Null).await.status, 401);
}

#[tokio::test]
async fn without_a_database_tasks_are_not_available() {
    // Contract 2.3, 503 bodies; contract 2.4, features.
    let caribou = Setup::new().settings("database: {backend: memory}\n").start().await;
    assert_eq!(caribou.get("/api/features").await.json(), json!({ "mcp_tasks": { "enabled": false } }));
    let listed = caribou.get(THREAD).await;
    assert_eq!((listed.status, listed.detail().as_str()), (503, "MCP task repo not available"));
    let task = format!("{THREAD}/mcp-task-00000000000000000000000000000000");
    for path in [task.clone(), format!("{task}/events"), "/api/mcp-tasks".to_owned()] {
        let read = caribou.get(&path).await;
        assert_eq!((read.status, read.detail().as_str()), (503, "MCP task repo not available"), "{path}");
    }
    for (path, body) in [(format!("{task}/cancel"), ""), (format!("{task}/input"), r#"{"input_id":"a","answers":{}}"#)]
    {
        let asked = caribou.post(&path, body).await;
        assert_eq!((asked.status, asked.detail().as_str()), (503, "MCP task service not available"), "{path}");
    }
}
