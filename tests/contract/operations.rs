//! What operators look at: health, metrics, the API's description, and that nothing grows.

use std::time::Duration;

use caribou_tests::process::{open_files, rss_kib};
use caribou_tests::{Caribou, Setup, StdioFake, eventually};
use futures::future::join_all;
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn health_metrics_and_the_description_of_the_api_are_served() {
    let (caribou, _fake) = Caribou::with_stdio(json!({ "calls": { "echo": ["default"] } })).await;
    assert_eq!(caribou.get("/healthz").await.status, 200);
    eventually(SOON, "readiness", async || (caribou.get("/readyz").await.status == 200).then_some(())).await;
    caribou.call("fake_echo", json!({ "password": "hunter2" })).await;
    let metrics = caribou.get("/metrics").await.body;
    assert!(metrics.contains("caribou_") && !metrics.contains("hunter2"), "{metrics}");
    let description = caribou.get("/openapi.json").await.json();
    for path in ["/api/mcp/tools", "/api/mcp/tools/call", "/api/mcp/servers", "/api/mcp/sessions"] {
        assert!(description["paths"].get(path).is_some(), "{path}");
    }
    let missing = caribou.get("/api/nothing").await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "not_found"));
}

/// Invariant B1: what is closed is gone, with its process, its descriptors and its memory.
#[tokio::test]
async fn many_sessions_opened_and_closed_leave_nothing_behind() {
    const ROUNDS: usize = 10;
    const THREADS: usize = 20;
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "echo": ["default"] } }));
    let caribou = setup.server("fake", fake.entry()).start().await;
    let (mut files, mut memory) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let all = (0..THREADS).map(|n| {
            let caribou = &caribou;
            async move {
                let thread = format!("r{round}-{n}");
                assert_eq!(caribou.call_in(&thread, "fake_echo", json!({})).await.status, 200);
                assert_eq!(caribou.delete(&format!("/api/threads/{thread}/mcp-sessions")).await.status, 200);
            }
        });
        join_all(all).await;
        let left = fake.alive().len();
        assert!(left <= 1, "{left} processes, of which discovery may keep one");
        files.push(open_files(caribou.pid()));
        memory.push(rss_kib(caribou.pid()));
    }
    assert!(files[ROUNDS - 1] <= files[1] + 5, "{files:?}");
    assert!(memory[ROUNDS - 1] <= memory[ROUNDS / 2] + 4096, "{memory:?}");
}
