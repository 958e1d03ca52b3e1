//! Tasks of the protocol itself, of both eras, and the tools of our own about tasks (mcp.md §9, §14.5; contract 2.3, 2.4,
//! 6.4, 6.10, 6.11).

use std::path::Path;
use std::time::Duration;

use caribou_tests::{Answer, Caribou, HttpFake, Setup, StdioFake, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

const THREAD: &str = "/api/threads/t1/mcp-tasks";

/// A server of revision 2025-11-25 whose tool `research` must be called as a task and asks for a number; the task ends
/// once the file `done` is there. `either` may be called as a task and says what it was asked; `plain` may not.
pub(crate) fn legacy(done: &Path) -> Value {
    let tool = |name: &str, support: &str| {
        json!({ "name": name, "description": name, "inputSchema": { "type": "object" },
                "execution": { "taskSupport": support } })
    };
    let form =
        json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer", "minimum": 3 } } });
    let question = json!({ "jsonrpc": "2.0", "id": "ask-1", "method": "elicitation/create", "params": {
        "message": "How many?", "requestedSchema": form,
        "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "remote-7" } } } });
    let task = |status: &str| json!({ "taskId": "remote-7", "status": status, "ttl": null, "pollInterval": 200 });
    let until_done = |done_steps: Value, otherwise: Value| json!([{ "if_file": { "path": done, "steps": done_steps, "otherwise": otherwise } }]);
    json!({
        "tools": [tool("research", "required"), tool("either", "optional"), tool("plain", "forbidden")],
        "on": {
            "initialize": [{ "result": { "protocolVersion": "2025-11-25", "serverInfo": { "name": "f", "version": "0" },
                "capabilities": { "tools": {}, "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } } } }],
            "tasks/get": until_done(json!([{ "result": task("completed") }]), json!([{ "result": task("input_required") }])),
            "tasks/result": until_done(
                json!([{ "result": { "content": [{ "type": "text", "text": "found it" }] } }]), json!([{ "send": question }])),
            "tasks/cancel": [{ "result": task("cancelled") }],
        },
        "calls": { "research": [{ "result": { "task": task("working") } }], "either": [{ "text": "$PARAMS" }] },
    })
}

/// A server of the modern era that answers every call by a task, which ends once the file `done` is there.
pub(crate) fn modern(done: &Path) -> Value {
    let task = |more: Value| {
        let mut task = json!({ "resultType": "complete", "taskId": "remote-9", "ttlMs": null, "pollIntervalMs": 200 });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([{ "result": task }])
    };
    json!({
        "eras": "modern",
        "tools": [{ "name": "paint", "inputSchema": { "type": "object" } }],
        "on": {
            "server/discover": [{ "result": { "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                "cacheScope": "private",
                "capabilities": { "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } } } }],
            "tools/call": task(json!({ "resultType": "task", "status": "working" })),
            "tasks/get": [{ "if_file": { "path": done,
                "steps": task(json!({ "status": "completed", "result": { "content": [] } })),
                "otherwise": task(json!({ "status": "working" })) } }],
        },
    })
}

fn settings() -> Setup {
    Setup::new().settings("mcp_tasks: {poll_interval_seconds: 1, input_required_poll_interval_seconds: 5}\n")
}

async fn with_legacy() -> (Caribou, StdioFake, std::path::PathBuf) {
    let setup = settings();
    let done = setup.home().join("done");
    let fake = StdioFake::new(setup.home(), "fake", legacy(&done));
    (setup.server("fake", fake.entry()).start().await, fake, done)
}

async fn call(caribou: &Caribou, name: &str, more: Value) -> Answer {
    let mut body = json!({ "name": name, "arguments": {}, "thread_id": "t1" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    caribou.post("/api/mcp/tools/call", body.to_string()).await
}

async fn submitted(caribou: &Caribou, name: &str, more: Value) -> Value {
    let told = call(caribou, name, more).await.json();
    let told = told["result"]["structuredContent"].clone();
    assert!(told["task_id"].is_string(), "{told}");
    told
}

async fn until(caribou: &Caribou, task: &Value, status: &str) -> Value {
    let path = format!("{THREAD}/{}", task.as_str().unwrap());
    eventually(SOON, status, async || {
        let shown = caribou.get(&path).await.json();
        (shown["status"] == status).then_some(shown)
    })
    .await
}

#[tokio::test]
async fn a_legacy_tool_that_must_be_a_task_is_followed_asks_and_ends() {
    // Contract 6.4 (4), 6.11; mcp.md §9.1 and §14.5; architecture.md §10, one declared profile.
    let (caribou, fake, done) = with_legacy().await;
    let told = submitted(&caribou, "fake_research", json!({})).await;
    assert_eq!((&told["task_name"], &told["status"]), (&json!("research"), &json!("submitted")));
    let task = &told["task_id"];
    let asking = until(&caribou, task, "input_required").await;
    let asked = &asking["input_required"];
    assert_eq!((&asked["kind"], &asked["message"]), (&json!("elicitation"), &json!("How many?")));
    assert!(!asking.to_string().contains("remote-7"), "contract 2.3, never exposed: {asking}");
    let name = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let path = format!("{THREAD}/{}/input", task.as_str().unwrap());
    let answer = async |content: Value| {
        let body = json!({ "input_id": name, "response": { "action": "accept", "content": content } });
        caribou.post(&path, body.to_string()).await
    };
    let wrong = answer(json!({ "n": 2 })).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "invalid"), "{wrong:?}");
    assert_eq!(wrong.detail(), "`n` in the answer is less than 3");
    assert_eq!(answer(json!({ "n": 4 })).await.status, 200);
    let replied = eventually(SOON, "the answer reaches the server", async || {
        fake.log().events("recv").into_iter().map(|seen| seen.message()).find(|message| message["id"] == "ask-1")
    });
    assert_eq!(replied.await["result"], json!({ "action": "accept", "content": { "n": 4 } }));
    std::fs::write(&done, "").unwrap();
    let ended = until(&caribou, task, "completed").await;
    assert_eq!(ended["result"]["content"][0]["text"], "found it");

    let log = fake.log();
    let declared = log.received("initialize")[0].message()["params"]["capabilities"].clone();
    let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    assert_eq!(declared, all, "all that callers can be asked");
    assert!(log.calls("research")[0].message()["params"]["task"].is_object());
}

#[tokio::test]
async fn a_legacy_tool_that_may_be_a_task_is_one_when_the_caller_asks() {
    // mcp.md §9.1, who decides: over REST and the command line.
    let (caribou, fake, _done) = with_legacy().await;
    let plain = call(&caribou, "fake_either", json!({})).await.json();
    let as_task = call(&caribou, "fake_either", json!({ "task": true })).await.json();
    let asked = |answer: &Value| answer["result"]["content"][0]["text"].as_str().unwrap().contains(r#""task":{}"#);
    assert_eq!((asked(&plain), asked(&as_task)), (false, true), "{plain} {as_task}");
    let setup = Setup::new().variable("CARIBOU_SERVER", caribou.url());
    let command = setup.command(&["tools", "call", "fake_either", "--task", "--thread", "t1"]).output();
    let output = tokio::time::timeout(SOON, command).await.expect("the command ends").unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(r#""task":{}"#), "{output:?}");

    let before = fake.log().received("tools/call").len();
    let refused = call(&caribou, "fake_plain", json!({ "task": true })).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "invalid"), "{refused:?}");
    assert!(refused.detail().contains("cannot be called as a task"), "{refused:?}");
    assert_eq!(fake.log().received("tools/call").len(), before, "nothing reached the server");
}

#[tokio::test]
async fn a_modern_server_that_answers_by_a_task_is_followed() {
    // mcp.md §9.2, negotiation and who decides; contract 6.4 (4).
    let setup = settings();
    let done = setup.home().join("done");
    let fake = HttpFake::start(modern(&done)).await;
    let mut off = fake.entry();
    off["native_tasks"] = json!("off");
    let caribou = setup.server("fake", fake.entry()).server("off", off).start().await;
    let told = submitted(&caribou, "fake_paint", json!({})).await;
    assert_eq!(told["task_name"], "paint");
    std::fs::write(&done, "").unwrap();
    until(&caribou, &told["task_id"], "completed").await;
    let capabilities = |call: Value| call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
    let extension = json!({ "io.modelcontextprotocol/tasks": {} });
    assert_eq!(capabilities(fake.log().calls("paint")[0].message())["extensions"], extension);
    let again = call(&caribou, "fake_paint", json!({})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "conflict"), "contract 6.4, duplicate: {again:?}");

    let raw = call(&caribou, "off_paint", json!({})).await.json();
    assert_eq!(raw["result"]["resultType"], "task", "what is not understood passes: {raw}");
    let last = fake.log().calls("paint").pop().unwrap();
    assert_eq!(capabilities(last.message()), json!({}));
}

#[tokio::test]
async fn without_durable_tasks_none_is_asked_for_and_a_tool_that_needs_one_says_so() {
    // Contract 6.11, wrapper without an installed runtime; 2.4, agent tools.
    let setup = Setup::new().settings("database: {backend: memory}\n");
    let fake = StdioFake::new(setup.home(), "fake", legacy(&setup.home().join("done")));
    let caribou = setup.server("fake", fake.entry()).start().await;
    let refused = call(&caribou, "fake_research", json!({})).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "unavailable"), "{refused:?}");
    assert!(refused.detail().contains("mcp_tasks.enabled=true"), "{refused:?}");
    assert_eq!(call(&caribou, "fake_either", json!({})).await.status, 200);
    let declared = fake.log().received("initialize")[0].message()["params"]["capabilities"].clone();
    // What callers can be asked is declared wherever they call (architecture.md §10); nothing of tasks is.
    assert_eq!(declared, json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} }));
    let names = caribou.tool_names().await;
    assert_eq!(names, ["fake_research", "fake_either", "fake_plain"]);
}

#[tokio::test]
async fn agents_list_and_cancel_the_tasks_of_their_own_thread() {
    // Contract 2.4, agent tools; 6.10, natural-language cancel.
    let (caribou, fake, _done) = with_legacy().await;
    let tools = caribou.tools().await;
    let ours: Vec<&Value> = tools.iter().filter(|tool| tool["metadata"]["deerflow_mcp"] == false).collect();
    assert_eq!(
        (&ours[0]["name"], &ours[1]["name"]),
        (&json!("list_background_tasks"), &json!("cancel_background_task"))
    );
    assert_eq!(ours.len(), 2);
    let task = submitted(&caribou, "fake_research", json!({})).await["task_id"].clone();
    let said = async |thread: &str, name: &str, arguments: Value| {
        caribou.call_in(thread, name, arguments).await.json()["result"]["structuredContent"].clone()
    };
    let listed = said("t1", "list_background_tasks", json!({ "active_only": true })).await;
    assert_eq!((&listed["tasks"][0]["task_id"], &listed["tasks"][0]["task_name"]), (&task, &json!("research")));
    assert_eq!(said("t2", "list_background_tasks", json!({})).await["tasks"], json!([]));
    let foreign = said("t2", "cancel_background_task", json!({ "task": task })).await;
    assert_eq!((&foreign["cancelled"], &foreign["task"]), (&json!(false), &Value::Null));
    let asked = said("t1", "cancel_background_task", json!({ "task": "Research" })).await;
    assert_eq!((&asked["cancelled"], &asked["task"]["cancel_requested"]), (&json!(false), &json!(true)));
    until(&caribou, &task, "cancelled").await;
    assert_eq!(fake.log().received("tasks/cancel").len(), 1);
    assert_eq!(said("t1", "cancel_background_task", json!({ "task": task })).await["cancelled"], true);
}
