//! Changes of lists and of resources, from servers of either era to clients of either era (mcp.md §5, 14.3; §17, S16).

use std::collections::BTreeSet;
use std::path::PathBuf;

use caribou_tests::{Caribou, HttpFake, Postgres, Setup, StdioFake, eventually, know_one_another};
use serde_json::{Value, json};

use super::client::{SOON, Session, Stream, modern};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

const LISTS: [&str; 3] = ["tools", "prompts", "resources"];

fn capabilities() -> Value {
    let told = json!({ "listChanged": true });
    json!({ "tools": told, "prompts": told, "resources": { "subscribe": true, "listChanged": true } })
}

/// A legacy server whose tool `touch` tells of everything there is to tell.
fn telling(setup: &Setup) -> StdioFake {
    StdioFake::new(setup.home(), "a", script())
}

fn script() -> Value {
    let info = json!({ "name": "fake", "version": "0" });
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities(), "serverInfo": info });
    let send =
        |method: String, params: Value| json!({ "send": { "jsonrpc": "2.0", "method": method, "params": params } });
    let mut touch = vec![send("notifications/resources/updated".to_owned(), json!({ "uri": "a://1" }))];
    touch.extend(LISTS.map(|kind| send(format!("notifications/{kind}/list_changed"), json!({}))));
    touch.push(json!({ "text": "told" }));
    let on = json!({ "initialize": [{ "result": greeting }], "resources/subscribe": [{ "result": {} }],
        "resources/unsubscribe": [{ "result": {} }] });
    json!({ "on": on, "calls": { "pid": [{ "text": "$PID" }], "touch": touch } })
}

async fn started() -> (Caribou, StdioFake) {
    let setup = Setup::new();
    let fake = telling(&setup);
    let entry = fake.entry();
    let caribou = setup.server("a", entry).start().await;
    assert_eq!(caribou.tool_names().await, ["a_pid", "a_touch"]);
    (caribou, fake)
}

/// Waits until the server was asked for this so often.
async fn asked(fake: &StdioFake, method: &str, times: usize) {
    let what = format!("`{method}` comes {times} times");
    eventually(SOON, &what, async || (fake.log().received(method).len() == times).then_some(())).await;
}

/// What the next messages of a stream are, sorted: method and URI. That something may have changed may be told twice.
async fn told(stream: &mut Stream, count: usize) -> Vec<(String, Option<String>)> {
    let mut told = BTreeSet::new();
    while told.len() < count {
        let message = stream.next().await.expect("the stream is open");
        let uri = message["params"]["uri"].as_str().map(str::to_owned);
        told.insert((message["method"].as_str().unwrap().to_owned(), uri));
    }
    told.into_iter().collect()
}

fn everything(uri: &str) -> Vec<(String, Option<String>)> {
    let lists = ["prompts", "resources", "tools"].map(|kind| (format!("notifications/{kind}/list_changed"), None));
    let mut all = Vec::from(lists);
    all.push(("notifications/resources/updated".to_owned(), Some(uri.to_owned())));
    all.sort();
    all
}

#[tokio::test]
async fn a_legacy_session_hears_of_the_lists_and_of_what_it_is_subscribed_to() {
    let (caribou, fake) = started().await;
    for (turn, (path, prefix, uri)) in [("/mcp", "a_", "caribou:a/a://1"), ("/mcp/a", "", "a://1")].iter().enumerate() {
        let session = Session::open(&caribou, path).await;
        assert_eq!(session.greeting["capabilities"]["resources"], json!({ "subscribe": true, "listChanged": true }));
        let before = session.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(before.json()["result"], json!({}), "{before:?}");
        assert_eq!(fake.log().received("resources/subscribe").len(), turn + 1, "the server was asked");
        let mut stream = session.listen().await;
        asked(&fake, "resources/subscribe", turn + 1).await;
        let subscribed = fake.log().received("resources/subscribe").pop().unwrap();
        assert_eq!(subscribed.message()["params"], json!({ "uri": "a://1" }));
        session.call(&format!("{prefix}touch"), json!({})).await;
        assert_eq!(told(&mut stream, 4).await, everything(uri));
        session.ask("resources/unsubscribe", json!({ "uri": uri })).await;
        asked(&fake, "resources/unsubscribe", turn + 1).await;
        assert_eq!(session.end().await.status, 200);
    }
    let session = Session::open(&caribou, "/mcp").await;
    let nowhere = session.ask("resources/subscribe", json!({ "uri": "caribou:b/b://1" })).await.json();
    assert_eq!(nowhere["error"]["code"], -32_002, "{nowhere}");
}

#[tokio::test]
async fn a_modern_client_hears_what_it_asked_for_and_nothing_else() {
    // mcp.md §17, S16.
    let (caribou, fake) = started().await;
    let listen = async |filter: Value| {
        let mut stream =
            Stream::of(modern(&caribou, "/mcp", "subscriptions/listen", json!({ "notifications": filter }))).await;
        let first = stream.next().await.unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        (stream, first["params"]["notifications"].clone())
    };
    let uris = json!(["caribou:a/a://1", "caribou:b/b://1"]);
    let wish = json!({ "promptsListChanged": true, "toolsListChanged": false, "resourceSubscriptions": uris });
    let (mut some, granted) = listen(wish).await;
    assert_eq!(granted, json!({ "promptsListChanged": true, "resourceSubscriptions": ["caribou:a/a://1"] }));
    let (mut lists, granted) = listen(json!({ "resourcesListChanged": true })).await;
    assert_eq!(granted, json!({ "resourcesListChanged": true }));
    asked(&fake, "resources/subscribe", 1).await;
    let touch = modern(&caribou, "/mcp", "tools/call", json!({ "name": "a_touch" }));
    assert_eq!(caribou.send(touch).await.status, 200);
    let (prompts, updated) = ("notifications/prompts/list_changed", "notifications/resources/updated");
    let heard = told(&mut some, 2).await;
    assert_eq!(heard, [(prompts.to_owned(), None), (updated.to_owned(), Some("caribou:a/a://1".to_owned()))]);
    let only = lists.next().await.unwrap();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": 7 });
    assert_eq!((&only["method"], &only["params"]["_meta"]), (&"notifications/resources/list_changed".into(), &meta));
    drop(some);
    asked(&fake, "resources/unsubscribe", 1).await;
}

#[tokio::test]
async fn a_modern_servers_lost_stream_is_opened_again_and_the_gap_told_as_one_change() {
    // mcp.md 14.3, a stream that breaks.
    let setup = Setup::new();
    let (go, gone) = (setup.home().join("go"), setup.home().join("gone"));
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": "$ID" });
    let send =
        |method: &str, params: Value| json!({ "send": { "jsonrpc": "2.0", "method": method, "params": params } });
    let subset = json!({ "resourceSubscriptions": ["a://1"] });
    let granted = send("notifications/subscriptions/acknowledged", json!({ "notifications": subset, "_meta": meta }));
    let updated = send("notifications/resources/updated", json!({ "uri": "a://1", "_meta": meta }));
    let first = json!([granted, { "until_file": go }, updated, { "touch": gone }, "end"]);
    let listen = json!([{ "if_file": { "path": gone, "steps": [granted, "hang"], "otherwise": first } }]);
    let discovered = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {
        "tools": {}, "resources": { "subscribe": true } } });
    let on = json!({ "server/discover": [{ "result": discovered }], "subscriptions/listen": listen });
    let fake = HttpFake::start(
        json!({ "eras": "modern", "on": on, "http": { "answers": "sse" }, "calls": { "t": ["default"] } }),
    )
    .await;
    let caribou = setup.server("far", fake.entry()).start().await;
    assert_eq!(caribou.tool_names().await, ["far_t"]);
    let session = Session::open(&caribou, "/mcp").await;
    let mut stream = session.listen().await;
    let uri = json!({ "uri": "caribou:far/a://1" });
    assert_eq!(session.ask("resources/subscribe", uri.clone()).await.json()["result"], json!({}));
    let listens = async |times: usize| {
        let seen = || fake.log().received("subscriptions/listen");
        eventually(SOON, "it listens", async || (seen().len() >= times).then_some(())).await;
        seen().pop().unwrap().message()["params"]["notifications"].clone()
    };
    // For the request that subscribes, and for the stream.
    assert_eq!(listens(2).await, json!({ "resourceSubscriptions": ["a://1"] }));
    let watched = stream.next().await.unwrap();
    assert_eq!(watched["params"], uri, "what may have changed before it was watched here");
    touch(&go);
    for what in ["the server's own", "what may have been missed"] {
        let message = stream.next().await.unwrap();
        assert_eq!(
            (&message["method"], &message["params"]),
            (&"notifications/resources/updated".into(), &uri),
            "{what}"
        );
    }
    listens(3).await;
}

#[tokio::test]
async fn what_a_legacy_server_refuses_is_refused_to_the_client() {
    // mcp.md §5, the granted subset; 14.3.
    let setup = Setup::new();
    let mut script = script();
    let no = json!({ "code": -32_002, "message": "no such thing", "data": { "uri": "a://2" } });
    let closed = setup.home().join("closed");
    script["on"]["resources/subscribe"] =
        json!([{ "if_file": { "path": closed, "steps": [{ "error": no }], "otherwise": [{ "result": {} }] } }]);
    let fake = StdioFake::new(setup.home(), "a", script);
    let caribou = setup.server("a", fake.entry()).start().await;
    assert_eq!(caribou.tool_names().await, ["a_pid", "a_touch"]);
    let session = Session::open(&caribou, "/mcp").await;
    touch(&closed);
    let told = session.ask("resources/subscribe", json!({ "uri": "caribou:a/a://2" })).await.json()["error"].clone();
    assert_eq!((&told["code"], &told["message"]), (&no["code"], &no["message"]), "{told}");
    let listen = async || {
        let wish =
            json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["caribou:a/a://2"] } });
        let mut stream = Stream::of(modern(&caribou, "/mcp", "subscriptions/listen", wish)).await;
        stream.next().await.unwrap()["params"]["notifications"].clone()
    };
    assert_eq!(listen().await, json!({ "toolsListChanged": true }));
    std::fs::remove_file(&closed).unwrap();
    assert_eq!(listen().await["resourceSubscriptions"], json!(["caribou:a/a://2"]));
}

#[tokio::test]
async fn what_a_modern_server_does_not_grant_is_granted_to_nobody() {
    // mcp.md §5, the granted subset; 14.3.
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": "$ID" });
    let granted = json!({ "notifications": { "resourceSubscriptions": ["a://1"] }, "_meta": meta });
    let granted = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": granted });
    let discovered = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {
        "tools": {}, "resources": { "subscribe": true } } });
    let on = json!({ "server/discover": [{ "result": discovered }],
        "subscriptions/listen": [{ "send": granted }, "hang"] });
    let script = json!({ "eras": "modern", "on": on, "http": { "answers": "sse" }, "calls": { "t": ["default"] } });
    let fake = HttpFake::start(script).await;
    let caribou = Setup::new().server("far", fake.entry()).start().await;
    assert_eq!(caribou.tool_names().await, ["far_t"]);
    let session = Session::open(&caribou, "/mcp").await;
    let [first, second] = ["caribou:far/a://1", "caribou:far/a://2"];
    let told = session.ask("resources/subscribe", json!({ "uri": second })).await.json()["error"].clone();
    assert!(told["message"].as_str().unwrap().contains("does not tell of changes"), "{told}");
    assert_eq!(session.ask("resources/subscribe", json!({ "uri": first })).await.json()["result"], json!({}));
    let wish = json!({ "notifications": { "resourceSubscriptions": [first, second] } });
    let mut stream = Stream::of(modern(&caribou, "/mcp", "subscriptions/listen", wish)).await;
    let acknowledged = stream.next().await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"], json!({ "resourceSubscriptions": [first] }), "{acknowledged}");
}

fn touch(path: &PathBuf) {
    std::fs::write(path, "").unwrap();
}

/// Two replicas of one cluster with the same server.
async fn two_replicas(settings: &str) -> (Postgres, [Caribou; 2], StdioFake) {
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let first = Setup::new();
    let fake = telling(&first);
    let replica = async |setup: Setup| {
        let setup = setup.variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0");
        let setup = setup.variable("CARIBOU_CLUSTER_SECRET", SECRET).settings(settings);
        let caribou = setup.server("a", fake.entry()).start().await;
        assert_eq!(caribou.tool_names().await, ["a_pid", "a_touch"]);
        caribou
    };
    let replicas = [replica(first).await, replica(Setup::new()).await];
    know_one_another(&replicas).await;
    (database, replicas, fake)
}

#[tokio::test]
async fn whichever_replica_notices_every_client_hears() {
    // mcp.md §17, bridge; 14.6.
    let (_database, replicas, fake) = two_replicas("").await;
    let here = Session::open(&replicas[0], "/mcp").await;
    let there = here.at(&replicas[1]);
    // The one child of this session lives in one replica; the other one reaches it from there.
    for (turn, (stream_at, asked_at)) in [(&there, &here), (&here, &there)].into_iter().enumerate() {
        let mut stream = stream_at.listen().await;
        let uri = json!({ "uri": "caribou:a/a://1" });
        assert_eq!(asked_at.ask("resources/subscribe", uri.clone()).await.json()["result"], json!({}));
        asked(&fake, "resources/subscribe", turn + 1).await;
        let called = asked_at.call("a_touch", json!({})).await;
        assert_eq!(called.status, 200, "{called:?}");
        assert_eq!(told(&mut stream, 4).await, everything("caribou:a/a://1"));
        asked_at.ask("resources/unsubscribe", uri).await;
        asked(&fake, "resources/unsubscribe", turn + 1).await;
    }
}

#[tokio::test]
async fn a_stream_outlives_the_replica_that_holds_what_it_watches() {
    // mcp.md §17, bridge.
    let (_database, [first, second], fake) = two_replicas("cluster: {profile: fast}").await;
    let opened = Session::open(&first, "/mcp").await;
    let called = opened.call("a_pid", json!({})).await.json();
    let pid: u32 = called["result"]["content"][0]["text"].as_str().unwrap().parse().unwrap();
    let (id, greeting) = (opened.id.clone(), opened.greeting.clone());
    let (dying, living) = if first.descendants().contains(&pid) { (first, second) } else { (second, first) };
    assert!(dying.descendants().contains(&pid), "one of them holds the child");
    let session = Session { caribou: &living, path: "/mcp".to_owned(), id, greeting, key: None };
    let mut stream = session.listen().await;
    let uri = json!({ "uri": "caribou:a/a://1" });
    session.ask("resources/subscribe", uri.clone()).await;
    asked(&fake, "resources/subscribe", 1).await;
    assert_eq!(stream.next().await.unwrap()["params"], uri, "it is watched here");
    // Its files stay: the script of the server is among them.
    let _home = dying.kill().await;
    let message = stream.next().await.expect("the stream is open");
    assert_eq!((&message["method"], &message["params"]), (&"notifications/resources/updated".into(), &uri), "once");
    assert_eq!(fake.log().received("resources/subscribe").len(), 2, "the next child was asked again");
}
