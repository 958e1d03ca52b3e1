//! Lists of tools: pages that never end, entries that are wrong, neighbours that are worse.

use std::time::{Duration, Instant};

use caribou_tests::fake::tool;
use caribou_tests::{Caribou, HttpFake, Setup, StdioFake, eventually};
use rstest::rstest;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

fn page(tools: Value, cursor: &str) -> Value {
    let result = json!({ "tools": tools, "nextCursor": cursor });
    json!({ "on": { "tools/list": [{ "send": { "jsonrpc": "2.0", "id": "$ID", "result": result } }] } })
}

#[rstest]
#[case::the_same_page_for_ever(page(json!([tool("a"), tool("b")]), "c1"), 2)]
#[case::empty_pages_for_ever(page(json!([]), "again"), 0)]
#[tokio::test]
async fn a_cursor_that_loops_ends_the_list_with_a_warning(#[case] script: Value, #[case] tools: usize) {
    let (caribou, fake) = Caribou::with_stdio(script).await;
    let listed = caribou.tool_names().await;
    assert_eq!(listed.len(), tools, "{listed:?}");
    assert!(fake.log().received("tools/list").len() <= 3);
    let servers = caribou.get("/api/mcp/servers").await.json();
    assert!(servers["servers"][0]["warnings"].to_string().contains("cursor"), "{servers}");
}

#[tokio::test]
async fn all_pages_are_followed_and_each_tool_keeps_its_bytes() {
    let odd = r#"{"zz":1.0,"name":"odd","inputSchema":{"type":"object","properties":{"b":{},"a":{"maximum":18446744073709551617}}},"_meta":{"k":null}}"#;
    let tools: Vec<String> = (0..25).map(|n| tool(&format!("t{n}")).to_string()).chain([odd.to_owned()]).collect();
    let script = format!(r#"{{"page": 10, "tools": [{}]}}"#, tools.join(","));
    let (caribou, _fake) = Caribou::with_stdio(script.as_str()).await;
    let answer = caribou.get("/api/mcp/tools").await;
    assert_eq!(answer.json()["tools"].as_array().unwrap().len(), 26);
    assert!(answer.body.contains(odd), "{}", answer.body);
}

#[tokio::test]
async fn one_malformed_tool_takes_no_other_along() {
    let mut nameless = tool("x");
    nameless.as_object_mut().unwrap().remove("name");
    let tools = json!([tool("good"), nameless, "just a text", null, { "name": 7 }, tool("good"), tool("fine")]);
    let (caribou, _fake) = Caribou::with_stdio(json!({ "tools": tools })).await;
    assert_eq!(caribou.tool_names().await, ["fake_good", "fake_fine"]);
    assert_eq!(caribou.call("fake_good", json!({ "k": 1 })).await.text(), r#"{"k":1}"#);
}

#[tokio::test]
async fn a_bad_neighbour_hides_nobody_else() {
    let setup = Setup::new();
    let good = StdioFake::new(setup.home(), "good", json!({ "calls": { "tool": ["default"] } }));
    let exits =
        StdioFake::new(setup.home(), "exits", json!({ "start": [{ "stderr": "no such module\n" }, { "die": 1 }] }));
    let hangs = StdioFake::new(setup.home(), "hangs", json!({ "start": ["hang"] }));
    let garbles = StdioFake::new(
        setup.home(),
        "garbles",
        json!({ "on": { "server/discover": [{ "bytes": "%%%\n" }], "initialize": [{ "bytes": "%%%\n" }] } }),
    );
    let html = HttpFake::start(
        json!({ "http": { "always": { "code": 200, "body": "<html>", "headers": { "content-type": "text/html" } } } }),
    )
    .await;
    let broken = HttpFake::start(json!({ "http": { "always": { "code": 500, "body": "boom" } } })).await;
    let refused =
        json!({ "type": "http", "url": format!("http://127.0.0.1:{}/mcp", caribou_tests::network::free_port()) });
    let caribou = setup
        .settings("calls:\n  list_wait_seconds: 3\n")
        .server("good", good.entry())
        .server("exits", exits.entry())
        .server("hangs", hangs.entry())
        .server("garbles", garbles.entry())
        .server("html", html.entry())
        .server("broken", broken.entry())
        .server("refused", refused)
        .server("dropped", json!({ "type": "carrier-pigeon" }))
        .start()
        .await;
    let begun = Instant::now();
    assert_eq!(caribou.tool_names().await, ["good_tool"]);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let servers = caribou.get("/api/mcp/servers").await.json();
    let state = |name: &str| {
        let mut all = servers["servers"].as_array().unwrap().iter();
        all.find(|server| server["name"] == name).unwrap_or_else(|| panic!("{name}: {servers}"))["state"].clone()
    };
    assert_eq!((state("good"), state("exits"), state("dropped")), (json!("ready"), json!("failed"), json!("dropped")));
    assert_eq!((state("html"), state("broken"), state("refused")), (json!("failed"), json!("failed"), json!("failed")));
}

#[tokio::test]
async fn a_changed_list_is_read_again_a_few_times_not_fifty() {
    let changed = json!({ "send": { "jsonrpc": "2.0", "method": "notifications/tools/list_changed" } });
    let script = json!({
        "tools": [tool("grow"), tool("alpha")],
        "calls": { "grow": [{ "tools": [tool("grow"), tool("beta")] }, { "repeat": { "times": 50, "steps": [changed] } }, { "text": "grown" }] },
    });
    let (caribou, fake) = Caribou::with_stdio(script).await;
    assert_eq!(caribou.tool_names().await, ["fake_grow", "fake_alpha"]);
    assert_eq!(caribou.call("fake_grow", json!({})).await.text(), "grown");
    // A process of its own lists as it did when it started, so whichever is asked: few are.
    let asked = || fake.log().received("tools/list").len();
    eventually(SOON, "another listing", async || {
        caribou.tools().await;
        (asked() >= 2).then_some(())
    })
    .await;
    assert!(asked() < 10, "{} listings", asked());
}
