//! Clients of HTTP+SSE, the transport of 2024-11-05 (mcp.md §3.4).

use caribou_tests::{Answer, Caribou, Home, Postgres, Setup, StdioFake, eventually, know_one_another};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::client::{SOON, Stream, request};
use super::identity::key_of;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Served at all.
const ON: &str = "mcp_endpoint: {http_sse: true}\n";

/// A client with its stream open.
struct Client {
    stream: Stream,
    /// Where its messages go, as it was told.
    address: String,
    key: Option<String>,
}

impl Client {
    /// Opens the stream at `path`.
    async fn open(caribou: &Caribou, path: &str, key: Option<&str>) -> Self {
        let mut get = caribou.request("GET", path).header("accept", "text/event-stream");
        if let Some(key) = key {
            get = get.header("authorization", format!("Bearer {key}"));
        }
        let mut stream = Stream::of(get).await;
        let (event, address) = stream.event().await.unwrap();
        assert_eq!(event, "endpoint");
        assert!(address.starts_with(&format!("{path}?session_id=")), "{address}");
        Self { stream, address, key: key.map(str::to_owned) }
    }

    /// And with what old clients begin with.
    async fn begin(caribou: &Caribou, path: &str) -> Self {
        let mut client = Self::open(caribou, path, None).await;
        let greeting = client.ask(caribou, "initialize", hello()).await;
        assert_eq!(greeting["result"]["protocolVersion"], "2024-11-05", "{greeting}");
        assert_eq!(greeting["result"]["serverInfo"]["name"], "caribou", "{greeting}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.post(caribou, initialized.to_string()).await.status, 202);
        client
    }

    async fn post(&self, at: &Caribou, body: String) -> Answer {
        let mut post = at.request("POST", &self.address).header("content-type", "application/json").body(body);
        if let Some(key) = &self.key {
            post = post.header("authorization", format!("Bearer {key}"));
        }
        at.send(post).await
    }

    /// Sends a request, which is taken.
    async fn send(&self, at: &Caribou, method: &str, params: Value) {
        let taken = self.post(at, request(7, method, &params)).await;
        assert_eq!((taken.status, &*taken.body), (202, ""), "{taken:?}");
    }

    /// Sends a request; the next message, which must answer it.
    async fn ask(&mut self, at: &Caribou, method: &str, params: Value) -> Value {
        self.send(at, method, params).await;
        let answer = self.told().await.unwrap();
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }

    /// The next message but those that tell of changed lists, which come whenever servers are discovered; `None` at the end.
    async fn told(&mut self) -> Option<Value> {
        loop {
            let message = self.stream.next().await?;
            if message["method"] != "notifications/tools/list_changed" {
                return Some(message);
            }
        }
    }
}

fn hello() -> Value {
    let info = json!({ "name": "t", "version": "1" });
    json!({ "protocolVersion": "2024-11-05", "capabilities": { "elicitation": {} }, "clientInfo": info })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

/// What a server asks in the middle of a call.
fn question() -> Value {
    json!({ "send": { "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": "?" } } })
}

fn script(go: &std::path::Path) -> Value {
    json!({ "calls": {
        "count": [{ "text": "$N" }],
        "slow": [{ "progress": 1 }, { "progress": 2 }, { "until_file": go }, { "text": "done" }],
        "ask": [question(), "hang"],
        "stuck": ["hang"],
    } })
}

/// A server that counts, is slow until the file `go` is there, asks, or does nothing for ever.
fn serving(setup: Setup) -> Setup {
    let fake = StdioFake::new(setup.home(), "fake", script(&setup.home().join("go")));
    setup.server("fake", fake.entry())
}

#[tokio::test]
async fn it_is_not_there_unless_it_is_switched_on() {
    let caribou = serving(Setup::new()).start().await;
    for path in ["/sse", "/sse/fake"] {
        assert_eq!(caribou.get(path).await.status, 404, "{path}");
        assert_eq!(caribou.post(path, "{}").await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn an_old_client_reads_every_answer_on_its_one_stream() {
    let caribou = serving(Setup::new().settings(ON)).start().await;
    let mut client = Client::begin(&caribou, "/sse").await;
    assert_eq!(client.ask(&caribou, "ping", json!({})).await["result"], json!({}));
    let listed = client.ask(&caribou, "tools/list", json!({})).await;
    let names: Vec<_> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["fake_ask", "fake_count", "fake_slow", "fake_stuck"]);
    for n in ["1", "2"] {
        let counted = client.ask(&caribou, "tools/call", json!({ "name": "fake_count" })).await;
        assert_eq!(text(&counted), n, "the stream is one session");
    }
    let unknown = client.ask(&caribou, "tools/call", json!({ "name": "nothing" })).await;
    assert_eq!(unknown["error"]["code"], -32_602);

    let mut other = Client::begin(&caribou, "/sse/fake").await;
    let counted = other.ask(&caribou, "tools/call", json!({ "name": "count" })).await;
    assert_eq!(text(&counted), "1", "by the server's own names, in a session of its own");
}

#[tokio::test]
async fn nothing_but_a_ping_comes_before_initialize() {
    let caribou = serving(Setup::new().settings(ON)).start().await;
    let mut client = Client::open(&caribou, "/sse", None).await;
    assert_eq!(client.ask(&caribou, "ping", json!({})).await["result"], json!({}));
    assert_eq!(client.ask(&caribou, "tools/list", json!({})).await["error"]["code"], -32_600);
    assert_eq!(client.ask(&caribou, "initialize", json!({})).await["error"]["code"], -32_602);
    assert!(client.ask(&caribou, "initialize", hello()).await["result"].is_object());
    assert!(client.ask(&caribou, "tools/list", json!({})).await["result"].is_object());
}

#[tokio::test]
async fn a_message_that_cannot_be_taken_is_refused_by_status() {
    let settings = "mcp_endpoint: {http_sse: true}\nrest: {max_body_bytes: 1024}\n";
    let caribou = serving(Setup::new().settings(settings)).start().await;
    let client = Client::open(&caribou, "/sse", None).await;
    let ping = || request(1, "ping", &json!({}));
    let to = async |address: &str, body: String, kind: &str| {
        caribou.send(caribou.request("POST", address).header("content-type", kind).body(body)).await.status
    };
    let json = "application/json";
    assert_eq!(to("/sse", ping(), json).await, 400, "no session");
    assert_eq!(to("/sse?session_id=a&at=b", ping(), json).await, 404, "none of ours");
    let lost = client.address.split("&at=").next().unwrap();
    assert_eq!(to(&format!("{lost}&at=b"), ping(), json).await, 404, "a replica that is gone");
    assert_eq!(
        to(&client.address.replace("/sse?", "/sse/fake?"), ping(), json).await,
        404,
        "a session is of its place"
    );
    assert_eq!(to(&client.address, "{".to_owned(), json).await, 400);
    assert_eq!(to(&client.address, ping(), "text/plain").await, 415);
    assert_eq!(to(&client.address, request(1, "ping", &json!({ "x": "y".repeat(1_024) })), json).await, 413);
    assert_eq!(to(&client.address, ping(), json).await, 202);
    let wrong = caribou.request("DELETE", "/sse").send().await.unwrap();
    assert_eq!((wrong.status().as_u16(), &wrong.headers()["allow"]), (405, &"GET, POST".parse().unwrap()));
    let foreign = caribou.request("GET", "/sse").header("origin", "https://evil.example");
    assert_eq!(caribou.send(foreign).await.status, 403);
}

#[tokio::test]
async fn a_stream_and_its_address_are_for_the_caller_that_opened_it() {
    // Invariant P1; mcp.md §17, S20: the address authenticates nobody.
    let setup = serving(Setup::new().settings(ON).variable("CARIBOU_AUTH_MODE", "api_keys"));
    let (ann, bob) = (key_of(&setup, &["--user", "ann"]).await, key_of(&setup, &["--user", "bob"]).await);
    let caribou = setup.start().await;
    assert_eq!(caribou.get("/sse").await.status, 401);
    let mut client = Client::open(&caribou, "/sse", Some(&ann)).await;
    for (key, status) in [(None, 401), (Some(bob), 404)] {
        client.key = key;
        assert_eq!(client.post(&caribou, request(7, "initialize", &hello())).await.status, status);
    }
    client.key = Some(ann);
    assert!(client.ask(&caribou, "initialize", hello()).await["result"].is_object(), "the first that is told");
}

#[tokio::test]
async fn streams_and_requests_under_way_are_bounded() {
    // Invariant B1.
    let settings = "mcp_endpoint: {http_sse: true, max_sessions: 1}\n";
    let caribou = serving(Setup::new().settings(settings)).start().await;
    let mut client = Client::begin(&caribou, "/sse").await;
    let refused = caribou.request("GET", "/sse").send().await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    let stuck = json!({ "name": "fake_stuck" });
    let mut taken = 0;
    let full = loop {
        let answer = client.post(&caribou, request(100 + taken, "tools/call", &stuck)).await;
        if answer.status != 202 {
            break answer;
        }
        taken += 1;
        assert!(taken <= 64, "there is a bound");
    };
    assert_eq!((taken, full.status), (64, 503), "{full:?}");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 100 } });
    assert_eq!(client.post(&caribou, cancelled.to_string()).await.status, 202, "what is no request is always taken");
    eventually(SOON, "there is room again", async || {
        let answer = client.post(&caribou, request(7, "ping", &json!({}))).await;
        (answer.status == 202).then_some(())
    })
    .await;
    assert_eq!(client.told().await.unwrap()["id"], 7, "of what was cancelled nothing is said");
}

#[tokio::test]
async fn a_session_ends_with_its_stream() {
    let caribou = serving(Setup::new().settings(ON)).start().await;
    let Client { stream, address, .. } = Client::begin(&caribou, "/sse").await;
    drop(stream);
    eventually(SOON, "the session is gone", async || {
        let post = caribou.request("POST", &address).header("content-type", "application/json");
        let answer = caribou.send(post.body(request(1, "ping", &json!({})))).await;
        (answer.status == 404).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_stops_tells_what_is_under_way_before_the_stream_ends() {
    let setup = serving(Setup::new().settings(ON));
    let go = setup.home().join("go");
    let caribou = setup.start().await;
    let mut client = Client::begin(&caribou, "/sse").await;
    let params = json!({ "name": "fake_slow", "_meta": { "progressToken": "mine" } });
    client.send(&caribou, "tools/call", params).await;
    assert_eq!(client.told().await.unwrap()["params"]["progressToken"], "mine");
    let address = caribou.url().trim_start_matches("http://").to_owned();
    let stopping = tokio::spawn(caribou.stop());
    eventually(SOON, "nobody new is let in", async || TcpStream::connect(&address).await.is_err().then_some(())).await;
    std::fs::write(&go, "").unwrap();
    let mut last = None;
    while let Some(message) = client.told().await {
        last = Some(message);
    }
    assert_eq!(text(&last.expect("it is told")), "done");
    assert!(stopping.await.unwrap().0.success());
}

/// Two replicas on one database, with one server of this script.
async fn replicas(home: &Home, script: Value, settings: &str) -> (Postgres, StdioFake, [Caribou; 2]) {
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let fake = StdioFake::new(home, "fake", script);
    let replica = async || {
        let setup = Setup::new().settings(settings).variable("CARIBOU_DATABASE_URL", &url);
        let setup = setup.variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0").variable("CARIBOU_CLUSTER_SECRET", SECRET);
        setup.server("fake", fake.entry()).start().await
    };
    let replicas = [replica().await, replica().await];
    know_one_another(&replicas).await;
    (database, fake, replicas)
}

#[tokio::test]
async fn messages_may_come_to_any_replica_and_their_answers_find_the_stream() {
    let home = Home::new();
    let (_database, fake, [here, there]) = replicas(&home, script(&home.join("go")), ON).await;
    let mut client = Client::open(&here, "/sse", None).await;
    assert!(client.ask(&there, "initialize", hello()).await["result"].is_object(), "agreed on by the other");
    for (n, at) in [&there, &here, &there, &there].into_iter().enumerate() {
        let counted = client.ask(at, "tools/call", json!({ "name": "fake_count" })).await;
        assert_eq!(text(&counted), (n + 1).to_string(), "one session");
    }
    // Progress comes in order before the answer, over whichever replica.
    std::fs::write(home.join("go"), "").unwrap();
    client.send(&there, "tools/call", json!({ "name": "fake_slow", "_meta": { "progressToken": 5 } })).await;
    let mut told = Vec::new();
    while told.last().is_none_or(|last: &Value| last.get("id").is_none()) {
        told.push(client.told().await.unwrap());
    }
    let progress: Vec<_> = told.iter().filter_map(|message| message["params"]["progress"].as_f64()).collect();
    assert_eq!((progress, text(told.last().unwrap())), (vec![1.0, 2.0], "done"), "{told:?}");

    // Asked by one replica, answered at the other, in both directions; then cancelled across.
    for (n, (asking, answering)) in [(&there, &here), (&here, &there)].into_iter().enumerate() {
        client.send(asking, "tools/call", json!({ "name": "fake_ask" })).await;
        let asked = client.told().await.unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": {} } });
        assert_eq!(client.post(answering, answer.to_string()).await.status, 202);
        let heard = |what: &str| fake.log().events("recv").iter().filter(|seen| seen.raw.contains(what)).count();
        eventually(SOON, "the server hears the answer", async || (heard("\"accept\"") > n).then_some(())).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
        assert_eq!(client.post(answering, cancelled.to_string()).await.status, 202);
        // Before it does, a question of another call could be of either.
        eventually(SOON, "the server hears of the cancel", async || {
            (heard("notifications/cancelled") > n).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_whose_replica_is_killed_opens_another_stream() {
    let home = Home::new();
    let settings = "mcp_endpoint: {http_sse: true}\ncluster: {profile: fast}\n";
    let (_database, _fake, [here, there]) = replicas(&home, script(&home.join("go")), settings).await;
    let mut client = Client::open(&here, "/sse", None).await;
    client.ask(&here, "initialize", hello()).await;
    let _home = here.kill().await;
    assert_eq!(client.told().await, None, "the stream is over");
    eventually(SOON, "its address is none any more", async || {
        let answer = client.post(&there, request(1, "ping", &json!({}))).await;
        (answer.status == 404).then_some(())
    })
    .await;
    let mut again = Client::begin(&there, "/sse").await;
    assert_eq!(again.ask(&there, "ping", json!({})).await["result"], json!({}));
}
