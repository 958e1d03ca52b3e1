//! Tasks as both eras see them: what a toolset makes, who may speak of a task, and another replica (mcp.md §9, §14.5).

use caribou_tests::{Caribou, HttpFake, Postgres, Setup, StdioFake, eventually};
use serde_json::{Value, json};

use super::client::{SOON, Session, messages, modern};
use super::identity::key_of;
use crate::native_tasks;

/// A client that takes tasks.
pub(super) fn capable() -> Value {
    json!({ "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } } })
}

/// Polls as often as a setting allows.
pub(super) fn settings() -> Setup {
    Setup::new().settings("mcp_tasks: {poll_interval_seconds: 1, input_required_poll_interval_seconds: 5}\n")
}

/// What a modern client that takes tasks reads: the status, and the whole answer.
pub(super) async fn ask(caribou: &Caribou, path: &str, method: &str, params: Value) -> (u16, Value) {
    let mut params = params;
    params["_meta"] = capable();
    let answer = caribou.send(modern(caribou, path, method, params)).await;
    (answer.status, messages(&answer).pop().unwrap())
}

/// The result of a request that is answered by one.
pub(super) async fn told(caribou: &Caribou, method: &str, params: Value) -> Value {
    let (status, answer) = ask(caribou, "/mcp", method, params).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

/// The task once it is so.
pub(super) async fn until(caribou: &Caribou, task: &Value, status: &str) -> Value {
    eventually(SOON, status, async || {
        let shown = told(caribou, "tasks/get", json!({ "taskId": task })).await;
        assert_eq!((&shown["resultType"], &shown["taskId"]), (&json!("complete"), task), "{shown}");
        (shown["status"] == status).then_some(shown)
    })
    .await
}

/// The name of a task that a call made.
pub(super) async fn made(caribou: &Caribou, name: &str) -> Value {
    let made = told(caribou, "tools/call", json!({ "name": name, "arguments": {} })).await;
    assert_eq!(made["resultType"], "task", "{made}");
    made["taskId"].clone()
}

/// A server with a toolset, whose tasks ask once, and end like this when they are answered.
async fn with_toolset(end: Value) -> (Caribou, HttpFake) {
    let mut end = end;
    end["task_id"] = json!("$TASK");
    let question = json!({ "prompt": "How many?", "schema": { "type": "object", "required": ["n"],
        "properties": { "n": { "type": "integer" } } } });
    let asks = json!({ "task_id": "$TASK", "status": "input_required", "input_required": question });
    let setup = settings();
    let answered = setup.home().join("answered");
    let told = |what: Value| json!([{ "structured": what }]);
    let fake = HttpFake::start(json!({ "calls": {
        "submit": [{ "structured": { "task_id": "job-1", "status": "running" } }],
        "status": [{ "if_file": { "path": answered, "steps": told(end), "otherwise": told(asks) } }],
        "cancel": [{ "structured": { "task_id": "$TASK", "status": "cancelled" } }],
        "input": [{ "touch": answered }, { "structured": { "taken": true } }],
    } }))
    .await;
    let toolset = json!({ "name": "report", "submit_tool": "submit", "status_tool": "status", "cancel_tool": "cancel",
        "input_tool": "input" });
    let entry = fake.entry_with(json!({ "task_toolsets": [toolset] }));
    (setup.server("s", entry).start().await, fake)
}

#[tokio::test]
async fn a_task_of_a_toolset_is_one_of_the_protocol_to_a_modern_client() {
    // mcp.md §9.2 and §14.5; architecture.md §10, `input_tool`.
    let end = json!({ "status": "completed", "result": { "rows": 7.0 } });
    let (caribou, fake) = with_toolset(end).await;
    let task = made(&caribou, "s_submit").await;
    let asking = until(&caribou, &task, "input_required").await;
    let (name, asked) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!("elicitation/create"), &json!("How many?")));
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["n"]));
    let answer = |action: &str, content: Value| json!({ "taskId": task, "inputResponses": { name: { "action": action, "content": content } } });
    let (status, wrong) = ask(&caribou, "/mcp", "tasks/update", answer("accept", json!({ "n": "x" }))).await;
    assert_eq!((status, &wrong["error"]["code"]), (400, &json!(-32_602)), "{wrong}");
    told(&caribou, "tasks/update", answer("decline", Value::Null)).await;
    assert!(fake.log().calls("input").is_empty(), "a refusal is nothing that the tool has a word for");
    let taken = told(&caribou, "tasks/update", answer("accept", json!({ "n": 3 }))).await;
    assert!(taken.get("taskId").is_none() && taken.get("status").is_none(), "{taken}");
    let ended = until(&caribou, &task, "completed").await;
    assert_eq!(ended["result"]["structuredContent"].to_string(), r#"{"rows":7.0}"#);
    let brought = fake.log().calls("input")[0].message()["params"]["arguments"].clone();
    assert_eq!((&brought["task_id"], &brought["response"]), (&json!("job-1"), &json!({ "n": 3 })));
    assert!(!ended.to_string().contains("job-1"), "contract 2.3, never exposed: {ended}");
}

#[tokio::test]
async fn what_fails_in_a_toolset_is_a_result_that_says_so_and_a_failure_in_the_legacy_era() {
    // mcp.md §7, §9.1, §9.2; §17, S26.
    let end = json!({ "status": "failed", "error": "no such topic" });
    let (caribou, _fake) = with_toolset(end).await;
    let session = Session::open(&caribou, "/mcp").await;
    let listed = session.ask("tools/list", json!({})).await.json()["result"]["tools"].clone();
    assert_eq!(
        (&listed[0]["name"], &listed[0]["execution"]),
        (&json!("s_submit"), &json!({ "taskSupport": "optional" }))
    );
    let plain = session.call("s_submit", json!({})).await.json();
    assert!(plain["result"]["structuredContent"]["task_id"].is_string(), "contract 6.11: {plain}");
    let task = plain["result"]["structuredContent"]["task_id"].clone();
    let asking = until(&caribou, &task, "input_required").await;
    let name = asking["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answers = json!({ name: { "action": "accept", "content": { "n": 3 } } });
    told(&caribou, "tasks/update", json!({ "taskId": task, "inputResponses": answers })).await;
    let ended = until(&caribou, &task, "completed").await;
    let result = json!({ "content": [{ "type": "text", "text": "no such topic" }], "isError": true });
    assert_eq!(ended["result"], result);
    let about = json!({ "taskId": task });
    assert_eq!(session.ask("tasks/get", about.clone()).await.json()["result"]["status"], "failed");
    let legacy = session.ask("tasks/result", about).await.json()["result"].clone();
    assert_eq!((&legacy["isError"], &legacy["content"]), (&json!(true), &result["content"]));
    assert_eq!(legacy["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
}

#[tokio::test]
async fn a_task_that_ended_with_its_servers_error_tells_that_error() {
    // mcp.md §9.1, tasks/result; §9.2, `error`; §14.5.
    let setup = settings();
    let error = json!({ "code": -7, "message": "no colours", "data": { "left": 0.0 } });
    let ended = |more: Value| {
        let mut task = json!({ "taskId": "remote-9", "status": "failed", "ttlMs": null, "ttl": null });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([{ "result": task }])
    };
    let mut modern = native_tasks::modern(&setup.home().join("never"));
    modern["on"]["tasks/get"] = ended(json!({ "resultType": "complete", "error": error }));
    let modern = HttpFake::start(modern).await;
    let mut legacy = native_tasks::legacy(&setup.home().join("never"));
    legacy["on"]["tasks/get"] = ended(json!({ "taskId": "remote-7", "statusMessage": "it broke" }));
    legacy["on"]["tasks/result"] = json!([{ "error": error }]);
    let legacy = StdioFake::new(setup.home(), "old", legacy);
    let caribou = setup.server("new", modern.entry()).server("old", legacy.entry()).start().await;
    let session = Session::open(&caribou, "/mcp").await;
    for (tool, why) in [("new_paint", "the server answered with error -7: no colours"), ("old_research", "it broke")] {
        let task = made(&caribou, tool).await;
        let shown = until(&caribou, &task, "failed").await;
        assert_eq!((&shown["error"], &shown["statusMessage"]), (&error, &json!(why)), "{shown}");
        let told = messages(&session.ask("tasks/result", json!({ "taskId": task })).await).pop().unwrap();
        assert_eq!(told["error"], error, "{told}");
    }
}

#[tokio::test]
async fn a_task_is_not_there_for_anybody_else_nor_at_another_server() {
    // Invariant P1; mcp.md §17, S20 and S25.
    let setup = settings().variable("CARIBOU_AUTH_MODE", "api_keys");
    let (ann, bob) = (key_of(&setup, &["--user", "ann"]).await, key_of(&setup, &["--user", "bob"]).await);
    let fake = HttpFake::start(native_tasks::modern(&setup.home().join("done"))).await;
    let other = HttpFake::start(json!({ "calls": { "t": ["default"] } })).await;
    let caribou = setup.server("fake", fake.entry()).server("other", other.entry()).start().await;
    let of = async |key: &str, path: &str, method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = capable();
        let request = modern(&caribou, path, method, params).header("authorization", format!("Bearer {key}"));
        messages(&caribou.send(request).await).pop().unwrap()
    };
    let task = of(&ann, "/mcp", "tools/call", json!({ "name": "fake_paint" })).await["result"]["taskId"].clone();
    assert!(task.is_string());
    let about = json!({ "taskId": task, "inputResponses": {} });
    let never = json!({ "taskId": format!("mcp-task-{}", "0".repeat(32)), "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unknown = of(&bob, "/mcp", method, never.clone()).await["error"].clone();
        assert_eq!(unknown["code"], -32_602, "{method} {unknown}");
        assert_eq!(of(&bob, "/mcp", method, about.clone()).await["error"], unknown, "{method}: told alike");
        assert_eq!(of(&ann, "/mcp/other", method, about.clone()).await["error"], unknown, "{method}: another server");
    }
    let at_bobs = Session::open_with(&caribou, "/mcp", Some(&bob)).await;
    assert_eq!(at_bobs.ask("tasks/list", json!({})).await.json()["result"]["tasks"], json!([]));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(at_bobs.ask(method, about.clone()).await.json()["error"]["code"], -32_602, "{method}");
    }
    assert!(fake.log().received("tasks/cancel").is_empty());
    assert_eq!(of(&ann, "/mcp/fake", "tasks/get", about.clone()).await["result"]["status"], "working");
    let at_anns = Session::open_with(&caribou, "/mcp", Some(&ann)).await;
    let own = at_anns.ask("tasks/list", json!({})).await.json()["result"]["tasks"].clone();
    assert_eq!(own[0]["taskId"], task, "in another session, and in another era");
    let in_thread = at_anns.ask("tasks/list", json!({ "_meta": { "io.caribou/thread": "t9" } })).await.json();
    assert_eq!(in_thread["result"]["tasks"], json!([]), "who names a thread sees no other's");
}

#[tokio::test]
async fn a_task_is_there_at_another_replica_as_soon_as_its_client_hears_of_it() {
    // Invariant T1; mcp.md §17, S25.
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let first = settings();
    let done = first.home().join("done");
    let fake = HttpFake::start(native_tasks::modern(&done)).await;
    let replica =
        async |setup: Setup| setup.variable("CARIBOU_DATABASE_URL", &url).server("fake", fake.entry()).start().await;
    let replicas = [replica(first).await, replica(settings()).await];
    let task = made(&replicas[0], "fake_paint").await;
    let shown = told(&replicas[1], "tasks/get", json!({ "taskId": task })).await;
    assert_eq!((&shown["taskId"], &shown["status"]), (&task, &json!("working")), "{shown}");
    std::fs::write(&done, "").unwrap();
    for replica in &replicas {
        let ended = until(replica, &task, "completed").await;
        assert_eq!(ended["result"], json!({ "content": [] }));
    }
}

#[tokio::test]
async fn where_nobody_follows_tasks_there_are_none_and_a_wish_for_one_is_passed_over() {
    // mcp.md §9.1: who has not the capability ignores the wish.
    let setup = Setup::new().settings("database: {backend: memory}\n");
    let fake = HttpFake::start(json!({ "calls": { "t": [{ "text": "done" }] } })).await;
    let caribou = setup.server("fake", fake.entry()).start().await;
    let discovered = told(&caribou, "server/discover", json!({})).await;
    assert!(discovered["capabilities"].get("extensions").is_none(), "{discovered}");
    let session = Session::open(&caribou, "/mcp").await;
    assert!(session.greeting["capabilities"].get("tasks").is_none(), "{}", session.greeting);
    let called = session.ask("tools/call", json!({ "name": "fake_t", "task": {} })).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
    let (status, answer) = ask(&caribou, "/mcp", "tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32_601)));
    assert_eq!(session.ask("tasks/get", json!({ "taskId": "x" })).await.json()["error"]["code"], -32_601);
}
