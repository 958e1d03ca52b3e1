//! What clients that listen are told of their tasks (mcp.md §9.1 and §9.2, notifications; §14.3).

use caribou_tests::{Caribou, HttpFake, Postgres, Setup, StdioFake, know_one_another};
use serde_json::{Value, json};

use super::client::{Session, Stream, messages, modern};
use super::identity::key_of;
use super::tasks::{capable, settings};
use crate::native_tasks;

/// The stream of a modern client that takes tasks and names these, and what it is granted.
async fn listening(caribou: &Caribou, tasks: &Value, key: Option<&str>) -> (Stream, Value) {
    let params = json!({ "notifications": { "taskIds": tasks }, "_meta": capable() });
    let request = modern(caribou, "/mcp", "subscriptions/listen", params);
    let request =
        key.into_iter().fold(request, |request, key| request.header("authorization", format!("Bearer {key}")));
    let mut stream = Stream::of(request).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    (stream, first["params"]["notifications"].clone())
}

/// The task that is told of next, without what ties it to its stream.
async fn next_of(stream: &mut Stream) -> Value {
    let message = stream.next().await.expect("the stream is open");
    assert_eq!(message["method"], "notifications/tasks", "{message}");
    let mut task = message["params"].clone();
    let meta = task.as_object_mut().unwrap().remove("_meta");
    assert_eq!(meta, Some(json!({ "io.modelcontextprotocol/subscriptionId": 7 })));
    task
}

/// The status that a legacy stream tells of next.
async fn status_of(stream: &mut Stream) -> Value {
    let message = stream.next().await.expect("the stream is open");
    assert_eq!(message["method"], "notifications/tasks/status", "{message}");
    message["params"].clone()
}

#[tokio::test]
async fn a_modern_client_is_told_all_of_the_tasks_that_it_names() {
    // mcp.md §9.2, notifications; invariant P1.
    let setup = settings().variable("CARIBOU_AUTH_MODE", "api_keys");
    let (ann, bob) = (key_of(&setup, &["--user", "ann"]).await, key_of(&setup, &["--user", "bob"]).await);
    let done = setup.home().join("done");
    let fake = HttpFake::start(native_tasks::modern(&done)).await;
    let caribou = setup.server("fake", fake.entry()).start().await;
    let ask = async |method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = capable();
        let request = modern(&caribou, "/mcp", method, params).header("authorization", format!("Bearer {ann}"));
        messages(&caribou.send(request).await).pop().unwrap()["result"].clone()
    };
    let task = ask("tools/call", json!({ "name": "fake_paint" })).await["taskId"].clone();
    let never = format!("mcp-task-{}", "0".repeat(32));
    let (mut stream, granted) = listening(&caribou, &json!([task, never]), Some(&ann)).await;
    assert_eq!(granted, json!({ "taskIds": [task] }), "what there is not is not granted");
    let (_strangers, granted) = listening(&caribou, &json!([task]), Some(&bob)).await;
    assert_eq!(granted, json!({}), "nor what is another's");
    let now = next_of(&mut stream).await;
    assert_eq!((&now["taskId"], &now["status"]), (&task, &json!("working")), "how it stands: {now}");
    std::fs::write(&done, "").unwrap();
    let ended = next_of(&mut stream).await;
    assert_eq!((&ended["status"], &ended["result"]), (&json!("completed"), &json!({ "content": [] })), "{ended}");
    let mut read = ask("tasks/get", json!({ "taskId": task })).await;
    for of_results in ["resultType", "_meta"] {
        read.as_object_mut().unwrap().remove(of_results);
    }
    assert_eq!(ended, read, "as `tasks/get` tells it");

    let undeclared = json!({ "notifications": { "taskIds": [task] } });
    let request = modern(&caribou, "/mcp", "subscriptions/listen", undeclared);
    let refused = caribou.send(request.header("authorization", format!("Bearer {ann}"))).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32_021)), "{refused:?}");
}

#[tokio::test]
async fn a_legacy_session_is_told_how_its_tasks_go_on_and_no_other_session_is() {
    // mcp.md §9.1, `notifications/tasks/status`.
    let setup = settings();
    let done = setup.home().join("done");
    let fake = StdioFake::new(setup.home(), "fake", native_tasks::legacy(&done));
    let caribou = setup.server("fake", fake.entry()).start().await;
    let (session, other) = (Session::open(&caribou, "/mcp").await, Session::open(&caribou, "/mcp").await);
    let (mut stream, mut others) = (session.listen().await, other.listen().await);
    let call = json!({ "name": "fake_research", "arguments": {}, "task": {} });
    let made = messages(&session.ask("tools/call", call).await).pop().unwrap()["result"]["task"].clone();
    let asks = status_of(&mut stream).await;
    assert_eq!((&asks["taskId"], &asks["status"]), (&made["taskId"], &json!("input_required")), "{asks}");
    assert!(asks["createdAt"].is_string() && asks["pollInterval"].is_u64() && asks.get("ttl").is_some(), "{asks}");
    std::fs::write(&done, "").unwrap();
    let ended = status_of(&mut stream).await;
    assert_eq!((&ended["taskId"], &ended["status"]), (&made["taskId"], &json!("completed")), "{ended}");
    assert!(ended.get("result").is_none(), "never the payload: {ended}");
    assert_eq!(other.end().await.status, 200);
    assert_eq!(others.next().await, None);
}

#[tokio::test]
async fn whichever_replica_follows_a_task_its_client_is_told() {
    // mcp.md 14.6.
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let first = settings();
    let done = first.home().join("done");
    let fake = HttpFake::start(native_tasks::modern(&done)).await;
    let replica = async |setup: Setup| {
        let setup = setup.variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0");
        let setup = setup.variable("CARIBOU_CLUSTER_SECRET", "0123456789abcdef0123456789abcdef");
        setup.server("fake", fake.entry()).start().await
    };
    let replicas = [replica(first).await, replica(settings()).await];
    know_one_another(&replicas).await;
    let here = Session::open(&replicas[0], "/mcp").await;
    let mut legacy = here.at(&replicas[1]).listen().await;
    let call = json!({ "name": "fake_paint", "arguments": {}, "task": {} });
    let task = messages(&here.ask("tools/call", call).await).pop().unwrap()["result"]["task"]["taskId"].clone();
    let mut streams = Vec::new();
    for replica in &replicas {
        let (mut stream, granted) = listening(replica, &json!([task]), None).await;
        assert_eq!(granted, json!({ "taskIds": [task] }));
        assert_eq!(next_of(&mut stream).await["status"], "working");
        streams.push(stream);
    }
    std::fs::write(&done, "").unwrap();
    for stream in &mut streams {
        assert_eq!(next_of(stream).await["status"], "completed");
    }
    let ended = status_of(&mut legacy).await;
    assert_eq!((&ended["taskId"], &ended["status"]), (&task, &json!("completed")), "{ended}");
}
