//! Legacy clients and the tasks of servers of both eras (mcp.md §9.1, §14.5).

use caribou_tests::{Answer, Caribou, HttpFake, StdioFake, eventually};
use serde_json::{Value, json};

use super::client::{SOON, Session, Stream, messages, post, request};
use super::tasks::settings;
use crate::native_tasks;

async fn with_legacy() -> (Caribou, StdioFake, std::path::PathBuf) {
    let setup = settings();
    let done = setup.home().join("done");
    let fake = StdioFake::new(setup.home(), "fake", native_tasks::legacy(&done));
    (setup.server("fake", fake.entry()).start().await, fake, done)
}

fn last(answer: &Answer) -> Value {
    messages(answer).pop().unwrap()
}

/// The task that a call with the wish for one is answered by.
async fn made(session: &Session<'_>, name: &str) -> Value {
    let call = json!({ "name": name, "arguments": {}, "task": { "ttl": 60_000 } });
    let answer = last(&session.ask("tools/call", call).await);
    let task = answer["result"]["task"].clone();
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &Value::Null), "{answer}");
    assert!(task["pollInterval"].is_u64() && task["createdAt"].is_string(), "{task}");
    task["taskId"].clone()
}

async fn get(session: &Session<'_>, task: &Value) -> Value {
    last(&session.ask("tasks/get", json!({ "taskId": task })).await)["result"].clone()
}

#[tokio::test]
async fn a_client_that_asks_for_a_task_is_asked_what_it_asks_and_gets_its_result() {
    // mcp.md §9.1: create, get, input, result.
    let (caribou, fake, done) = with_legacy().await;
    let session = Session::open(&caribou, "/mcp").await;
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(session.greeting["capabilities"]["tasks"], tasks);
    let listed = session.ask("tools/list", json!({})).await.json()["result"]["tools"].clone();
    let support = |at: usize| listed[at]["execution"]["taskSupport"].clone();
    assert_eq!([support(0), support(1), support(2)], ["required", "optional", "forbidden"].map(|word| json!(word)));

    let task = made(&session, "fake_research").await;
    let body = request(9, "tasks/result", &json!({ "taskId": task }));
    let mut stream = Stream::of(session.with(post(&caribou, "/mcp", body))).await;
    let asked = stream.next().await.unwrap();
    assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!("elicitation/create"), &json!("How many?")));
    assert_eq!(asked["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
    assert_eq!(get(&session, &task).await["status"], "input_required");
    let answer = json!({ "action": "accept", "content": { "n": 4 } });
    let answered = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
    assert_eq!(session.send(answered.to_string()).await.status, 202);
    let replied = eventually(SOON, "the answer reaches the server", async || {
        fake.log().events("recv").into_iter().map(|seen| seen.message()).find(|message| message["id"] == "ask-1")
    });
    assert_eq!(replied.await["result"], answer);
    std::fs::write(&done, "").unwrap();
    let ended = stream.next().await.unwrap();
    assert_eq!((&ended["id"], &ended["result"]["content"][0]["text"]), (&json!(9), &json!("found it")), "{ended}");
    assert_eq!(ended["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
    assert!(stream.next().await.is_none());
    let shown = get(&session, &task).await;
    assert_eq!((&shown["status"], shown.get("result")), (&json!("completed"), None), "never the payload: {shown}");
    let late = last(&session.ask("tasks/cancel", json!({ "taskId": task })).await);
    assert_eq!(late["error"]["code"], -32_602, "terminal: {late}");
}

#[tokio::test]
async fn a_client_that_asks_for_no_task_waits_for_the_end_of_one_that_must_be() {
    // mcp.md §14.5, L without tasks.
    let (caribou, _fake, done) = with_legacy().await;
    let session = Session::open(&caribou, "/mcp").await;
    let body = request(9, "tools/call", &json!({ "name": "fake_research", "arguments": {} }));
    let mut stream = Stream::of(session.with(post(&caribou, "/mcp", body))).await;
    let asked = stream.next().await.unwrap();
    assert_eq!(asked["params"]["message"], "How many?", "{asked}");
    let answered = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
    assert_eq!(session.send(answered.to_string()).await.status, 202);
    std::fs::write(&done, "").unwrap();
    let ended = stream.next().await.unwrap();
    assert_eq!(ended["result"]["content"][0]["text"], "found it", "{ended}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_waits_takes_its_task_along() {
    // mcp.md §8; nobody ever heard of the task.
    let (caribou, fake, _done) = with_legacy().await;
    let session = Session::open(&caribou, "/mcp").await;
    let body = request(9, "tools/call", &json!({ "name": "fake_research", "arguments": {} }));
    let mut stream = Stream::of(session.with(post(&caribou, "/mcp", body))).await;
    assert_eq!(stream.next().await.unwrap()["method"], "elicitation/create");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
    assert_eq!(session.send(cancelled.to_string()).await.status, 202);
    assert!(stream.next().await.is_none(), "nothing more is said of it");
    eventually(SOON, "the server hears of it", async || {
        (!fake.log().received("tasks/cancel").is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_wish_for_a_task_is_kept_though_the_server_answers_at_once() {
    // mcp.md §17, B9.
    let (caribou, fake, _done) = with_legacy().await;
    let session = Session::open(&caribou, "/mcp").await;
    let task = made(&session, "fake_either").await;
    let result = last(&session.ask("tasks/result", json!({ "taskId": task })).await)["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains(r#""task":{}"#), "{result}");
    assert_eq!(get(&session, &task).await["status"], "completed");
    let before = fake.log().received("tools/call").len();
    let misused = last(&session.ask("tools/call", json!({ "name": "fake_plain", "task": {} })).await);
    assert_eq!(misused["error"]["code"], -32_601, "mcp.md §9.1, tool level: {misused}");
    assert_eq!(fake.log().received("tools/call").len(), before, "nothing reached the server");
}

#[tokio::test]
async fn tasks_are_cancelled_at_once_and_listed_page_by_page() {
    // mcp.md §9.1, tasks/cancel and tasks/list.
    let (caribou, fake, done) = with_legacy().await;
    let session = Session::open(&caribou, "/mcp").await;
    let long = made(&session, "fake_research").await;
    let cancelled = last(&session.ask("tasks/cancel", json!({ "taskId": long })).await)["result"].clone();
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&long, &json!("cancelled")));
    eventually(SOON, "the server hears of it", async || {
        (!fake.log().received("tasks/cancel").is_empty()).then_some(())
    })
    .await;
    std::fs::write(&done, "").unwrap();
    assert_eq!(get(&session, &long).await["status"], "cancelled");
    let outcome = last(&session.ask("tasks/result", json!({ "taskId": long })).await);
    assert!(outcome["error"]["message"].as_str().unwrap().contains("was cancelled"), "{outcome}");

    let mut names = vec![long];
    for _ in 0..25 {
        names.insert(0, made(&session, "fake_either").await);
    }
    let list = async |cursor: Option<&Value>| {
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        last(&session.ask("tasks/list", params).await)
    };
    let of = |page: &Value| -> Vec<Value> {
        page["result"]["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].clone()).collect()
    };
    let first = list(None).await;
    let cursor = first["result"]["nextCursor"].clone();
    let second = list(Some(&cursor)).await;
    assert!(second["result"].get("nextCursor").is_none(), "{second}");
    assert_eq!([of(&first), of(&second)].concat(), names, "everything that can be read is listed, the newest first");
    let tampered = json!(cursor.as_str().unwrap().replace(['0', '1'], "2"));
    assert_eq!(list(Some(&tampered)).await["error"]["code"], -32_602);
    let elsewhere = Session::open(&caribou, "/mcp/fake").await;
    let foreign = last(&elsewhere.ask("tasks/list", json!({ "cursor": cursor })).await);
    assert_eq!(foreign["error"]["code"], -32_602, "a cursor is of its place: {foreign}");
}

#[tokio::test]
async fn a_task_of_a_modern_server_is_one_of_the_legacy_era_too() {
    // mcp.md §14.5, L with tasks and M upstream.
    let setup = settings();
    let done = setup.home().join("done");
    let fake = HttpFake::start(native_tasks::modern(&done)).await;
    let caribou = setup.server("fake", fake.entry()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    let listed = session.ask("tools/list", json!({})).await.json()["result"]["tools"].clone();
    assert_eq!(listed[0]["execution"], json!({ "taskSupport": "optional" }), "{listed}");
    let task = made(&session, "fake_paint").await;
    assert_eq!(get(&session, &task).await["status"], "working");
    std::fs::write(&done, "").unwrap();
    let result = last(&session.ask("tasks/result", json!({ "taskId": task })).await)["result"].clone();
    assert_eq!(result["content"], json!([]), "{result}");
    let other = Session::open(&caribou, "/mcp").await;
    assert_eq!(get(&other, &task).await["status"], "completed", "a client that comes back finds its task");
}
