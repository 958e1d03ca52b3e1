//! How the tools of a toolset are offered (contract 6.11).

use caribou_tests::{HttpFake, Setup};
use serde_json::{Value, json};

use super::stand::{FAST, Stand, endless, mcp_tasks, toolset, with_toolset};

/// A server whose submitting tool says more of itself than others do.
fn described() -> Value {
    let mut script = endless();
    let plain = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number", "maximum": 1e3 } } });
    script["tools"] = json!([
        { "name": "submit", "description": "Writes a report.", "inputSchema": schema, "outputSchema": { "type": "object" },
          "annotations": { "readOnlyHint": false }, "_meta": { "x": [1] } },
        plain("status"), plain("cancel"), plain("input"), plain("other"),
    ]);
    script
}

#[tokio::test]
async fn only_the_submitting_tool_and_ordinary_ones_are_offered() {
    // Contract 6.11: hidden tools, wrapper, ordinary tools.
    let stand = Stand::http(described()).await;
    let tools = stand.caribou.tools().await;
    let named =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{tools:?}")).clone();
    assert_eq!(tools.iter().filter(|tool| tool["server"] == "s").count(), 2, "{tools:?}");
    let submit = named("s_submit").to_string();
    for kept in [
        r#""properties":{"n":{"type":"number","maximum":"#,
        r#""_meta":{"x":[1]}"#,
        "Writes a report.",
        "background task",
    ] {
        assert!(submit.contains(kept), "{kept}: {submit}");
    }
    assert!(!submit.contains("outputSchema"), "{submit}");
    assert!(!named("s_other").to_string().contains("background task"));
    let other = stand.caribou.call("s_other", json!({ "a": 1 })).await;
    assert_eq!((other.status, other.text().as_str()), (200, r#"{"a":1}"#), "{other:?}");
    for hidden in ["s_status", "s_cancel", "s_input"] {
        let answer = stand.caribou.call(hidden, json!({ "task_id": "remote-1" })).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"), "{answer:?}");
    }
    let found = stand.caribou.post("/api/mcp/tools/search", r#"{"query":"status cancel input"}"#).await;
    assert!(!found.body.contains("s_status") && !found.body.contains("s_cancel"), "{found:?}");
    assert_eq!(stand.calls("status") + stand.calls("cancel") + stand.calls("input"), 0);
}

#[tokio::test]
async fn a_tool_that_is_not_there_costs_every_tool_or_only_those_of_its_server() {
    // Contract 6.11, missing raw tool; architecture.md §10, `mcp_tasks.missing_tool`.
    for (more, offered) in [("", false), (", missing_tool: fail_server", true)] {
        let (fake, good) =
            (HttpFake::start(endless()).await, HttpFake::start(json!({ "calls": { "t": ["default"] } })).await);
        let mut lacking = toolset();
        lacking["status_tool"] = json!("stat");
        let caribou = Setup::new()
            .settings(&mcp_tasks(&format!("{FAST}{more}")))
            .server("s", fake.entry_with(json!({ "task_toolsets": [lacking] })))
            .server("good", good.entry())
            .start()
            .await;
        let listed = caribou.get("/api/mcp/tools").await;
        let called = caribou.call("good_t", json!({})).await;
        if offered {
            assert_eq!((called.status, caribou.tool_names().await), (200, vec!["good_t".to_owned()]));
        } else {
            assert_eq!((listed.status, called.status), (503, 503), "{listed:?} {called:?}");
        }
        for told in [&listed.body, &caribou.log(), &caribou.call("s_submit", json!({})).await.body] {
            assert!(told.contains("has no tool `stat`"), "{told}");
        }
        assert!(fake.log().received("tools/call").is_empty());
    }
}

#[tokio::test]
async fn a_task_server_that_cannot_be_discovered_costs_only_its_own_tools() {
    // Contract 6.11: one that failed discovery is just skipped.
    let good = HttpFake::start(json!({ "calls": { "t": ["default"] } })).await;
    let away = with_toolset(json!({ "type": "http", "url": "http://127.0.0.1:9/mcp" }));
    let caribou = Setup::new().server("s", away).server("good", good.entry()).start().await;
    assert_eq!(caribou.tool_names().await, ["good_t"]);
    assert_eq!(caribou.call("good_t", json!({})).await.status, 200);
}
