//! Modern clients and the tasks of servers of both eras (mcp.md §9.2, §14.5).

use caribou_tests::{Caribou, HttpFake, StdioFake, eventually};
use serde_json::{Value, json};

use super::client::{SOON, messages, modern};
use super::tasks::{ask, made, settings, told, until};
use crate::native_tasks;

async fn with_legacy() -> (Caribou, StdioFake, std::path::PathBuf) {
    let setup = settings();
    let done = setup.home().join("done");
    let fake = StdioFake::new(setup.home(), "fake", native_tasks::legacy(&done));
    (setup.server("fake", fake.entry()).start().await, fake, done)
}

#[tokio::test]
async fn a_task_of_a_legacy_server_is_driven_by_get_and_update_only() {
    // mcp.md §17, B8.
    let (caribou, fake, done) = with_legacy().await;
    let discovered = told(&caribou, "server/discover", json!({})).await["capabilities"].clone();
    assert_eq!(discovered["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    assert!(discovered.get("tasks").is_none(), "{discovered}");
    let made = told(&caribou, "tools/call", json!({ "name": "fake_research", "task": { "ttl": 5 } })).await;
    let has = |name: &str| made.get(name).is_some();
    assert_eq!(
        (&made["resultType"], &made["status"], &made["ttlMs"]),
        (&json!("task"), &json!("working"), &Value::Null)
    );
    assert!(has("createdAt") && has("lastUpdatedAt") && made["pollIntervalMs"].is_u64(), "{made}");
    assert!(
        !has("task") && !has("ttl") && !has("pollInterval") && !has("result"),
        "flat, and by its own names: {made}"
    );
    let task = made["taskId"].clone();
    let asking = until(&caribou, &task, "input_required").await;
    assert!(!asking.to_string().contains("remote-7"), "contract 2.3, never exposed: {asking}");
    let (name, asked) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!("elicitation/create"), &json!("How many?")));
    let answer = json!({ "action": "accept", "content": { "n": 4 } });
    let answers = json!({ "taskId": task, "inputResponses": { name: answer, "never asked": {} } });
    for _ in 0..2 {
        let taken = told(&caribou, "tasks/update", answers.clone()).await;
        assert_eq!(taken["resultType"], "complete");
        let shown = told(&caribou, "tasks/get", json!({ "taskId": task })).await;
        assert!(shown["inputRequests"].get(name).is_none(), "an answered question is not asked again: {shown}");
    }
    let replied = eventually(SOON, "the answer reaches the server", async || {
        fake.log().events("recv").into_iter().map(|seen| seen.message()).find(|message| message["id"] == "ask-1")
    });
    assert_eq!(replied.await["result"], answer);
    std::fs::write(&done, "").unwrap();
    let ended = until(&caribou, &task, "completed").await;
    assert_eq!(ended["result"]["content"][0]["text"], "found it");
    let ack = told(&caribou, "tasks/cancel", json!({ "taskId": task })).await;
    assert!(ack.get("status").is_none() && ack.get("taskId").is_none(), "{ack}");
    assert_eq!(until(&caribou, &task, "completed").await["result"], ended["result"], "invariant T2");
}

#[tokio::test]
async fn a_tool_that_may_be_a_task_is_one_for_whoever_takes_them_and_plain_for_others() {
    // mcp.md §14.5, M + ext and M without ext.
    let (caribou, fake, _done) = with_legacy().await;
    let taken = told(&caribou, "tools/call", json!({ "name": "fake_either" })).await;
    assert!(taken["content"][0]["text"].as_str().unwrap().contains(r#""task":{}"#), "asked for, and answered: {taken}");
    let plain = caribou.send(modern(&caribou, "/mcp", "tools/call", json!({ "name": "fake_either" }))).await;
    assert!(!plain.body.contains(r#"task\":{}"#) && plain.status == 200, "{plain:?}");
    let before = fake.log().received("tools/call").len();
    let needs = caribou.send(modern(&caribou, "/mcp", "tools/call", json!({ "name": "fake_research" }))).await;
    let error = messages(&needs).pop().unwrap()["error"].clone();
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    assert_eq!((needs.status, &error["code"]), (400, &json!(-32_021)), "{error}");
    assert_eq!(error["data"]["requiredCapabilities"], extension);
    assert_eq!(fake.log().received("tools/call").len(), before, "nothing reached the server");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let request = modern(&caribou, "/mcp", method, json!({ "taskId": "x", "inputResponses": {} }));
        let refused = caribou.send(request).await;
        let error = refused.json()["error"].clone();
        assert_eq!((refused.status, &error["code"]), (400, &json!(-32_021)), "{method} {error}");
        assert_eq!(error["data"]["requiredCapabilities"], extension);
    }
    for method in ["tasks/list", "tasks/result"] {
        let (status, answer) = ask(&caribou, "/mcp", method, json!({ "taskId": "x" })).await;
        assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32_601)), "{method}");
    }
}

#[tokio::test]
async fn a_modern_server_is_offered_tasks_only_for_a_client_that_takes_them() {
    // mcp.md §9.2, negotiation; §14.2, declare upstream only what this caller can answer.
    let setup = settings();
    let done = setup.home().join("done");
    let fake = HttpFake::start(native_tasks::modern(&done)).await;
    let caribou = setup.server("fake", fake.entry()).start().await;
    let declared =
        |call: &Value| call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"].clone();
    let plain = caribou.send(modern(&caribou, "/mcp", "tools/call", json!({ "name": "fake_paint" }))).await;
    assert_eq!(plain.status, 200, "{plain:?}");
    assert_eq!(declared(&fake.log().calls("paint")[0].message()), Value::Null);
    let task = made(&caribou, "fake_paint").await;
    assert_eq!(declared(&fake.log().calls("paint")[1].message()), json!({ "io.modelcontextprotocol/tasks": {} }));
    let shown = told(&caribou, "tasks/get", json!({ "taskId": task })).await;
    assert_eq!(shown["status"], "working", "at once: {shown}");
    std::fs::write(&done, "").unwrap();
    assert_eq!(until(&caribou, &task, "completed").await["result"], json!({ "content": [] }));
    let header = modern(&caribou, "/mcp", "tasks/get", json!({ "taskId": task, "_meta": super::tasks::capable() }));
    let (client, built) = header.build_split();
    let mut built = built.unwrap();
    built.headers_mut().insert("mcp-name", "another".parse().unwrap());
    let refused = client.execute(built).await.unwrap();
    assert_eq!(refused.status(), 400, "mcp.md §9.2, HTTP");
}
