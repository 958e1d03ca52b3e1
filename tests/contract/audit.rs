//! The audit log: one row for each call and each change, with who, for whom, with which outcome, and nothing else.

use std::time::Duration;

use caribou_tests::{Caribou, Home, Setup, StdioFake, eventually};
use futures::future::join_all;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// Stands in arguments, results, headers, secrets and queries, and may stand in no row.
const CANARY: &str = "canary-7f3a";

const SETTINGS: &str = "\
tool_search: {enabled: true}
guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [fake_forget]}}}
";

fn script() -> Value {
    json!({ "calls": {
        "echo": [{ "text": CANARY }],
        "forget": ["default"],
        "broken": [{ "error": { "code": -32602, "message": CANARY } }],
        "hang": ["hang"],
    } })
}

async fn start(settings: &str) -> (Caribou, StdioFake) {
    let setup = Setup::new().settings(settings);
    let fake = StdioFake::new(setup.home(), "fake", script());
    let routing = json!({ "mode": "prefer", "keywords": ["remember"] });
    let entry = fake.entry_with(json!({ "tools": { "echo": { "routing": routing } } }));
    (setup.server("fake", entry).start().await, fake)
}

/// The rows that the query names, the oldest first, once there are so many.
async fn rows(caribou: &Caribou, query: &str, count: usize) -> Vec<Value> {
    eventually(SOON, "the rows", async || {
        let answer = caribou.get(&format!("/api/mcp/audit?{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let rows = answer.json()["rows"].as_array().cloned().unwrap();
        assert!(rows.len() <= count, "{rows:?}");
        (rows.len() == count).then(|| rows.into_iter().rev().collect())
    })
    .await
}

/// What was done, with which server and tool, how it ended.
fn told(rows: &[Value]) -> Vec<[&str; 4]> {
    let text = |row: &'_ Value, member| row[member].as_str().unwrap().to_owned().leak() as &str;
    rows.iter().map(|row| ["action", "server", "tool", "outcome"].map(|member| text(row, member))).collect()
}

async fn call(caribou: &Caribou, request_id: &str, body: &Value) -> u16 {
    let request = caribou.request("POST", "/api/mcp/tools/call").header("content-type", "application/json");
    let request = request.header("x-request-id", request_id).header("x-context", CANARY);
    caribou.send(request.body(body.to_string())).await.status
}

fn echo() -> Value {
    json!({
        "name": "fake_echo",
        "arguments": { "password": CANARY },
        "user_id": "ann",
        "thread_id": "t1",
        "run_id": CANARY,
        "tool_call_id": CANARY,
        "config": { "context": { "secrets": { "API_KEY": CANARY } } },
        "metadata": { "note": CANARY },
    })
}

/// Architecture §2, identity of callers: one audit row.
#[tokio::test]
async fn a_call_has_one_row_with_exactly_these_members() {
    let (caribou, _fake) = start("").await;
    assert_eq!(call(&caribou, "req-42", &echo()).await, 200);
    let mut row = rows(&caribou, "", 1).await.remove(0);
    let row = row.as_object_mut().unwrap();
    let number = |row: &mut serde_json::Map<String, Value>, member| row.remove(member).unwrap().as_i64().unwrap();
    assert_eq!(number(row, "id"), 1);
    assert!(number(row, "at_ms") > 1_700_000_000_000);
    assert!((0..20_000).contains(&number(row, "duration_ms")));
    let expected = json!({
        "principal": "local",
        "user_id": "ann",
        "thread_id": "t1",
        "action": "call_tool",
        "server": "fake",
        "tool": "fake_echo",
        "outcome": "ok",
        "request_id": "req-42",
        "door": "rest",
    });
    assert_eq!(Value::from(row.clone()), expected);
}

/// Invariant O3; contract 9.3, audit: names of promoted tools, and nothing of what they were found by.
#[tokio::test]
async fn nothing_that_a_caller_or_a_server_said_is_stored() {
    let (caribou, _fake) = start(SETTINGS).await;
    let asked =
        json!({ "query": format!("select:fake_echo,fake_broken,{CANARY}"), "user_id": "ann", "thread_id": "t1" });
    let spoken = json!({ "text": format!("remember {CANARY}"), "user_id": "bob", "thread_id": "t2" });
    for (path, body) in [("search", asked), ("promote", spoken)] {
        assert_eq!(caribou.post(&format!("/api/mcp/tools/{path}"), body.to_string()).await.status, 200);
    }
    assert_eq!(call(&caribou, "req-1", &echo()).await, 200);
    let broken = json!({ "name": "fake_broken", "arguments": [CANARY], "user_id": "ann", "thread_id": "t1" });
    assert_eq!(call(&caribou, "req-2", &broken).await, 502);
    let rows = rows(&caribou, "", 5).await;
    let mut promoted = told(&rows);
    promoted[..2].sort_unstable();
    let expected = [
        ["search_tools", "fake", "fake_broken", "ok"],
        ["search_tools", "fake", "fake_echo", "ok"],
        ["promote_tools", "fake", "fake_echo", "ok"],
        ["call_tool", "fake", "fake_echo", "ok"],
        ["call_tool", "fake", "fake_broken", "upstream_error"],
    ];
    assert_eq!(promoted, expected);
    assert_eq!((&rows[2]["user_id"], &rows[2]["thread_id"]), (&json!("bob"), &json!("t2")));
    let (status, home) = caribou.stop().await;
    assert!(status.success());
    let stored = database(&home);
    assert!(contains(&stored, "fake_echo") && !contains(&stored, CANARY));
}

/// Every byte of the database.
fn database(home: &Home) -> Vec<u8> {
    let files = std::fs::read_dir(home.join("data")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn refused_failed_and_abandoned_calls_have_rows_too() {
    let (caribou, fake) = start(&SETTINGS.replace("tool_search: {enabled: true}", "")).await;
    // A refused call names the server of its tool only where that is known.
    caribou.tools().await;
    for (tool, status) in [("fake_forget", 403), ("fake_unknown\u{0}", 404), ("fake_broken", 502)] {
        assert_eq!(call(&caribou, "r", &json!({ "name": tool })).await, status, "{tool}");
    }
    let request = caribou.request("POST", "/api/mcp/tools/call").header("content-type", "application/json");
    let hanging = tokio::spawn(request.body(json!({ "name": "fake_hang" }).to_string()).send());
    eventually(SOON, "the call", async || {
        fake.log().received("tools/call").iter().any(|seen| seen.raw.contains("hang")).then_some(())
    })
    .await;
    hanging.abort();
    let rows = rows(&caribou, "", 4).await;
    let expected = [
        ["call_tool", "fake", "fake_forget", "denied"],
        ["call_tool", "", "fake_unknown\u{fffd}", "not_found"],
        ["call_tool", "fake", "fake_broken", "upstream_error"],
        ["call_tool", "fake", "fake_hang", "cancelled"],
    ];
    assert_eq!(told(&rows), expected);
}

/// Contract 3.1: what may not be started.
#[tokio::test]
async fn changes_resets_closings_and_refused_launches_have_rows() {
    let (caribou, _fake) = start("").await;
    let send = async |method: &str, path: &str, body: Value| {
        let request = caribou.request(method, path).header("content-type", "application/json");
        caribou.send(request.header("x-request-id", path).body(body.to_string())).await.status
    };
    let refused = json!({ "mcp_servers": { "evil": { "command": "sh", "args": ["-c", CANARY] } } });
    let far =
        json!({ "mcp_servers": { "far": { "type": "http", "url": "http://127.0.0.1:1/mcp", "enabled": false } } });
    let off = json!({ "server_name": "far", "enabled": false });
    assert_eq!(send("POST", "/api/mcp/config/servers", refused).await, 400);
    assert_eq!(send("POST", "/api/mcp/config/servers", far).await, 200);
    assert_eq!(send("PATCH", "/api/mcp/config", off).await, 200);
    assert_eq!(send("DELETE", "/api/mcp/config/servers/nobody", json!({})).await, 404);
    assert_eq!(send("POST", "/api/mcp/cache/reset", json!({})).await, 200);
    assert_eq!(send("DELETE", "/api/threads/t1/mcp-sessions?user_id=ann&server=fake", json!({})).await, 200);
    let rows = rows(&caribou, "", 7).await;
    let expected = [
        ["launch_refused", "evil", "", "invalid"],
        ["change_config", "evil", "", "invalid"],
        ["change_config", "far", "", "ok"],
        ["change_config", "far", "", "ok"],
        ["change_config", "nobody", "", "not_found"],
        ["reset", "", "", "ok"],
        ["close_sessions", "fake", "", "ok"],
    ];
    assert_eq!(told(&rows), expected);
    assert_eq!(rows[0]["request_id"], "/api/mcp/config/servers");
    assert_eq!((&rows[6]["user_id"], &rows[6]["thread_id"]), (&json!("ann"), &json!("t1")));
    assert_eq!((&rows[5]["principal"], &rows[5]["thread_id"]), (&json!("local"), &json!("")));
    let (_, home) = caribou.stop().await;
    assert!(!contains(&database(&home), CANARY));
}

#[tokio::test]
async fn rows_are_found_by_each_of_their_names_and_page_by_page() {
    let (caribou, _fake) = start("").await;
    for n in 0..6 {
        let body = json!({ "name": "fake_echo", "user_id": (["ann", "bob"][n % 2]), "thread_id": "t" });
        call(&caribou, &format!("r{n}"), &body).await;
    }
    call(&caribou, "r6", &json!({ "name": "fake_broken", "user_id": "bob" })).await;
    rows(&caribou, "", 7).await;
    for (query, count) in [
        ("user_id=ann", 3),
        ("user_id=bob&outcome=ok", 3),
        ("tool=fake_broken", 1),
        ("server=fake&principal=local", 7),
        ("outcome=denied", 0),
        ("principal=somebody", 0),
        ("limit=2", 2),
    ] {
        assert_eq!(rows(&caribou, query, count).await.len(), count, "{query}");
    }
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = caribou.get(&format!("/api/mcp/audit?limit=3{before}")).await.json();
        seen.extend(page["rows"].as_array().unwrap().iter().map(|row| row["request_id"].clone()));
        let Some(next) = page["next"].as_i64() else { break };
        before = format!("&before={next}");
    }
    assert_eq!(seen, ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]);
    for query in ["limit=0", "limit=1001", "limit=x", "before=x", "user=ann", "tool=a&tool=b"] {
        let refused = caribou.get(&format!("/api/mcp/audit?{query}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "invalid"), "{query}");
    }
}

#[tokio::test]
async fn the_command_line_shows_the_same() {
    let (caribou, _fake) = start("").await;
    call(&caribou, "req-1", &echo()).await;
    call(&caribou, "req-2", &json!({ "name": "fake_broken" })).await;
    rows(&caribou, "", 2).await;
    let ask = async |words: &[&str]| Setup::new().command(words).output().await.unwrap();
    let all = ask(&["audit", "--server", caribou.url()]).await;
    let shown = String::from_utf8(all.stdout).unwrap();
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["TIME", "BY", "DOOR"], "{shown}");
    assert_eq!(lines[1][5..9], ["call_tool", "fake", "fake_broken", "upstream_error"], "{shown}");
    assert_eq!(lines[2][1..9], ["local", "rest", "ann", "t1", "call_tool", "fake", "fake_echo", "ok"], "{shown}");
    assert!(lines[1][0].starts_with("20") && lines[1][0].ends_with('Z'), "{shown}");
    let words = ["audit", "--user", "ann", "--from", "fake", "--tool", "fake_echo", "--outcome", "ok", "--by", "local"];
    let found = ask(&[&words[..], &["--limit", "1", "--json", "--server", caribou.url()]].concat()).await;
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!((found["rows"].as_array().unwrap().len(), &found["rows"][0]["request_id"]), (1, &json!("req-1")));
    let nowhere = ask(&["audit"]).await;
    assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
}

/// An orderly stop stores what is buffered, and each call once.
#[tokio::test]
async fn every_one_of_many_calls_is_on_record_after_a_stop() {
    const CALLS: usize = 300;
    let (caribou, _fake) = start("").await;
    let bodies: Vec<Value> =
        (0..CALLS).map(|n| json!({ "name": "fake_echo", "thread_id": format!("t{}", n % 5) })).collect();
    let ids: Vec<String> = (0..CALLS).map(|n| format!("r{n}")).collect();
    let answers = join_all(ids.iter().zip(&bodies).map(|(id, body)| call(&caribou, id, body))).await;
    assert!(answers.iter().all(|status| [200, 503].contains(status)), "{answers:?}");
    let (status, home) = caribou.stop().await;
    assert!(status.success());
    let stored = database(&home);
    let missing: Vec<&String> = ids.iter().filter(|id| !contains(&stored, id)).collect();
    assert_eq!(missing, Vec::<&String>::new());
}

#[tokio::test]
async fn without_a_record_calls_are_served_and_there_is_nothing_to_read() {
    let (caribou, _fake) = start("audit: {enabled: false}\n").await;
    assert_eq!(call(&caribou, "r", &echo()).await, 200);
    let refused = caribou.get("/api/mcp/audit").await;
    assert_eq!((refused.status, refused.code().as_str()), (404, "not_found"));
    assert!(refused.detail().contains("`audit.enabled`"), "{refused:?}");
}

#[tokio::test]
async fn what_is_recorded_is_counted() {
    let (caribou, _fake) = start("").await;
    call(&caribou, "r", &echo()).await;
    rows(&caribou, "", 1).await;
    let counted = eventually(SOON, "the count", async || {
        let metrics = caribou.get("/metrics").await.body;
        metrics.contains("caribou_audit_rows_total").then_some(metrics)
    });
    let metrics = counted.await;
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {metrics}"));
        line.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(value("caribou_audit_rows_total"), "1");
    assert_eq!(value("caribou_audit_dropped_total"), "0");
    assert_eq!(value("caribou_audit_buffered"), "0");
}
