//! Servers that others wrote, installed by `tests/run`.

use caribou_tests::{Setup, third_party};
use serde_json::json;

#[tokio::test]
async fn four_published_servers_are_listed_and_called() {
    let setup = Setup::new();
    let graph = setup.home().join("graph.json");
    let remote = third_party::EverythingHttp::start().await;
    let caribou = setup
        .server("everything", third_party::everything())
        .server("memory", third_party::memory(&graph))
        .server("time", third_party::time())
        .server("remote", remote.entry())
        .start()
        .await;
    let names = caribou.tool_names().await;
    for name in ["everything_echo", "memory_read_graph", "time_get_current_time", "remote_echo"] {
        assert!(names.iter().any(|listed| listed == name), "{name} is not in {names:?}; {}", caribou.log());
    }
    for server in ["everything", "remote"] {
        let answer = caribou.call(&format!("{server}_echo"), json!({ "message": "moss" })).await;
        assert!(answer.text().contains("moss"), "{answer:?}");
    }
    let time = caribou.call("time_get_current_time", json!({ "timezone": "Europe/Oslo" })).await;
    assert!(time.text().contains("Europe/Oslo"), "{time:?}");
    let entity = json!({ "entities": [{ "name": "Rudolf", "entityType": "reindeer", "observations": ["red nose"] }] });
    assert_eq!(caribou.call_in("t", "memory_create_entities", entity).await.status, 200);
    let read = caribou.call_in("t", "memory_read_graph", json!({})).await;
    assert!(read.text().contains("Rudolf"), "{read:?}");
}
