//! One trace over two replicas: from what a caller names, through the door, the other replica and the server, which is told
//! of the span that asks it. And that metrics and log lines arrive, by whom they were sent, without anything secret.

use std::collections::BTreeSet;
use std::time::Duration;

use caribou_proto::v1;
use caribou_proto::v1::tool_service_client::ToolServiceClient;
use caribou_tests::collector::SeenSpan;
use caribou_tests::fake::Seen;
use caribou_tests::{Answer, Caribou, Collector, HttpFake, Postgres, Setup, StdioFake, eventually};
use serde_json::{Value, json};
use tonic::Request;

/// How long anything may take on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

/// What replicas prove to each other that they belong together by.
const SECRET: &str = "a-secret-of-these-tests-alone-and-long-enough";

/// An argument that no span may hold.
const ARGUMENT: &str = "hunter2";

/// The method that one replica asks another by.
const EXCHANGE: &str = "caribou.peer.v1.SessionService/Exchange";

/// The revision of MCP without sessions.
const MODERN: &str = "2026-07-28";

const SERVER: i32 = 2;
const CLIENT: i32 = 3;

/// Two replicas that export to one collector, before a server with state and one that takes tasks.
struct Pair {
    collector: Collector,
    owner: Caribou,
    other: Caribou,
    notes: StdioFake,
    tasks: HttpFake,
    _postgres: Postgres,
}

impl Pair {
    async fn start() -> Self {
        let (postgres, collector) = (Postgres::start().await, Collector::start().await);
        let url = postgres.url("postgres");
        let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output();
        let migrated = tokio::time::timeout(SOON, migrated).await.expect("a migration ends").unwrap();
        assert!(migrated.status.success(), "{migrated:?}");
        let tasks = HttpFake::start(json!({ "calls": {
            "submit": [{ "structured": { "task_id": "remote-$TURN", "status": "running" } }],
            "status": [{ "structured": { "task_id": "$TASK", "status": "completed", "result": {} } }],
            "cancel": ["default"],
        } }))
        .await;
        let toolset = json!({ "name": "report", "submit_tool": "submit", "status_tool": "status",
                              "cancel_tool": "cancel" });
        let of_tasks = tasks.entry_with(json!({ "task_toolsets": [toolset] }));
        let first = Setup::new();
        let notes = StdioFake::new(first.home(), "notes", json!({ "calls": { "note": ["default"] } }));
        let setup = |setup: Setup| {
            let settings = format!(
                "listen: 127.0.0.1:0\ngrpc: {{listen: \"127.0.0.1:0\"}}\ncluster: {{profile: fast, listen: \"127.0.0.1:0\"}}\n\
                 mcp_tasks: {{poll_interval_seconds: 1}}\n\
                 telemetry: {{otlp_endpoint: \"{}\", otlp_protocol: http/protobuf}}\n",
                collector.url()
            );
            let often = ["OTEL_BSP_SCHEDULE_DELAY", "OTEL_BLRP_SCHEDULE_DELAY", "OTEL_METRIC_EXPORT_INTERVAL"];
            let setup = often.into_iter().fold(setup.settings(&settings), |setup, name| setup.variable(name, "200"));
            let setup = setup.variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_CLUSTER_SECRET", SECRET);
            setup.server("notes", notes.entry()).server("tasks", of_tasks.clone())
        };
        let owner = Box::pin(setup(first).start()).await;
        let other = Box::pin(setup(Setup::new()).start()).await;
        Self { collector, owner, other, notes, tasks, _postgres: postgres }
    }

    /// The one span of a trace with this name, once it has arrived.
    async fn span(&self, trace: &str, kind: i32, name: &str) -> SeenSpan {
        let is_it = |span: &SeenSpan| span.trace == trace && span.kind == kind && span.name == name;
        eventually(SOON, &format!("the span {name}"), async || {
            let mut found: Vec<_> = self.collector.spans().into_iter().filter(is_it).collect();
            assert!(found.len() < 2, "{found:?}");
            found.pop()
        })
        .await
    }

    /// The spans of a call that was forwarded, from the request to the server on: each the parent of the next, the last two
    /// in the replica that holds the session.
    async fn forwarded(&self, trace: &str, caller: &str, door: &str) {
        let door = self.span(trace, SERVER, door).await;
        assert_eq!(door.parent, caller, "{door:?}");
        let call = self.span(trace, 1, "call_tool").await;
        let forward = self.span(trace, CLIENT, EXCHANGE).await;
        let taken = self.span(trace, SERVER, EXCHANGE).await;
        let asked = self.span(trace, CLIENT, "tools/call note").await;
        let spans = [&door, &call, &forward, &taken, &asked];
        for pair in spans.windows(2) {
            assert_eq!(pair[1].parent, pair[0].id, "{} is within {}", pair[1].name, pair[0].name);
        }
        let replicas = spans.map(|span| span.resource["service.instance.id"].as_str());
        assert!(replicas[0] == replicas[1] && replicas[0] == replicas[2] && replicas[3] == replicas[4], "{replicas:?}");
        assert_ne!(replicas[0], replicas[4], "two replicas");
        assert_eq!(asked.attributes["mcp.method.name"], "tools/call");
        assert_eq!(asked.attributes["gen_ai.tool.name"], "note");
        assert_eq!((&*forward.attributes["rpc.system.name"], &*taken.attributes["rpc.method"]), ("grpc", EXCHANGE));
        let told: Vec<Value> = self.notes.log().calls("note").iter().map(parent_in_meta).collect();
        assert!(told.contains(&json!(format!("00-{trace}-{}-01", asked.id))), "{told:?}");
    }
}

/// What a server was told in `_meta`.
fn parent_in_meta(seen: &Seen) -> Value {
    seen.message()["params"]["_meta"]["traceparent"].clone()
}

/// A trace of its own for each caller, and the caller's span.
fn caller(n: u8) -> (String, String, String) {
    let (trace, span) =
        (format!("{:032x}", 0xca11_0000_u64 + u64::from(n)), format!("{:016x}", 0xa1_u64 + u64::from(n)));
    let parent = format!("00-{trace}-{span}-01");
    (trace, span, parent)
}

async fn post(caribou: &Caribou, path: &str, body: Value, headers: &[(&str, &str)]) -> Answer {
    let request = caribou.request("POST", path).header("content-type", "application/json").body(body.to_string());
    caribou.send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

const CALL: &str = "/api/mcp/tools/call";

fn note() -> Value {
    json!({ "name": "notes_note", "arguments": { "text": ARGUMENT }, "thread_id": "t" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forwarded_call_is_one_trace_from_every_door_to_the_server() {
    // Stack.md §8; mcp.md §2.2, traceparent; invariants S1, O3.
    let pair = Pair::start().await;
    let opened = post(&pair.owner, CALL, note(), &[]).await;
    let holder = opened.json()["session"]["replica"].as_str().expect("a session").to_owned();

    let (trace, span, parent) = caller(1);
    let called = post(&pair.other, CALL, note(), &[("traceparent", &parent)]).await;
    assert_eq!(called.json()["session"]["replica"], holder.as_str(), "{called:?}");
    pair.forwarded(&trace, &span, &format!("POST {CALL}")).await;

    let (trace, span, parent) = caller(2);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.caribou/thread": "t",
                       "io.modelcontextprotocol/clientCapabilities": {}, "traceparent": parent });
    let params = json!({ "name": "notes_note", "arguments": { "text": ARGUMENT }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let accept = ("accept", "application/json, text/event-stream");
    let named = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "notes_note")];
    let of_connection = caller(9).2;
    let headers = [accept, named[0], named[1], named[2], ("traceparent", &of_connection)];
    let called = post(&pair.other, "/mcp", body, &headers).await;
    assert!(called.json()["result"]["content"].is_array(), "{called:?}");
    pair.forwarded(&trace, &span, "tools/call notes_note").await;

    let (trace, span, parent) = caller(3);
    let url = pair.other.grpc_url().await.replacen("grpc://", "http://", 1);
    let mut tools = ToolServiceClient::connect(url).await.unwrap();
    let scope = Some(v1::Scope { thread_id: "t".to_owned(), ..v1::Scope::default() });
    let arguments = Some(json!({ "text": ARGUMENT }).to_string());
    let asked =
        v1::CallToolRequest { name: "notes_note".to_owned(), arguments, scope, ..v1::CallToolRequest::default() };
    let mut request = Request::new(asked);
    request.metadata_mut().insert("traceparent", parent.parse().unwrap());
    assert_eq!(tools.call_tool(request).await.unwrap().into_inner().session.unwrap().replica, holder);
    pair.forwarded(&trace, &span, "caribou.v1.ToolService/CallTool").await;

    assert!(!pair.collector.was_told(ARGUMENT) && !pair.collector.was_told(SECRET), "neither arguments nor secrets");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submit_is_one_trace_to_its_server_and_all_that_is_exported_says_by_whom() {
    // Stack.md §8; invariant O3.
    let pair = Pair::start().await;
    let (trace, span, parent) = caller(4);
    let body = json!({ "name": "tasks_submit", "arguments": { "topic": ARGUMENT }, "thread_id": "t" });
    let answer = post(&pair.other, CALL, body, &[("traceparent", &parent), ("tracestate", "shop=1")]).await;
    let task = answer.json()["result"]["structuredContent"]["task_id"].as_str().expect("a task").to_owned();
    let door = self_checked(&pair, &trace, &span).await;
    let call = pair.span(&trace, 1, "call_tool").await;
    let submit = pair.span(&trace, 1, "submit_task").await;
    let asked = pair.span(&trace, CLIENT, "tools/call submit").await;
    let parents = [&call.parent, &submit.parent, &asked.parent];
    assert_eq!(parents, [&door.id, &call.id, &submit.id]);
    assert_eq!(submit.attributes["task"], task);
    let told = pair.tasks.log().calls("submit").remove(0);
    let expected = format!("00-{trace}-{}-01", asked.id);
    assert_eq!(told.headers["traceparent"], expected);
    assert_eq!((parent_in_meta(&told), &*told.headers["tracestate"]), (json!(expected), "shop=1"));

    // Whoever polls is not within the trace of the submit, and names the task.
    let poll = eventually(SOON, "a poll", async || {
        let polled = |span: &SeenSpan| span.name == "poll task" && span.attributes["task"] == task;
        pair.collector.spans().into_iter().find(polled)
    });
    let poll = poll.await;
    assert!(poll.trace != trace && poll.parent.is_empty(), "{poll:?}");
    let mut span = pair.span(&poll.trace, CLIENT, "tools/call status").await;
    // The session is held by whichever replica submitted, so the question may have been forwarded.
    while span.id != poll.id {
        assert!(!span.parent.is_empty(), "{span:?} is not within {poll:?}");
        let parent = eventually(SOON, "the span around it", async || {
            pair.collector.spans().into_iter().find(|other| other.id == span.parent)
        });
        span = parent.await;
    }

    // Both replicas, under their own names.
    let two = |found: BTreeSet<String>| (found.len() == 2).then_some(found);
    let counting = eventually(SOON, "metrics of both", async || {
        let metrics = pair.collector.metrics().into_iter().filter(|metric| metric.name == "caribou_sessions_live");
        two(metrics.map(|metric| whose(&metric.resource)).collect())
    });
    let writing = eventually(SOON, "log lines of both", async || {
        let lines = pair.collector.lines().into_iter().filter(|line| line.body == "serving");
        two(lines.map(|line| whose(&line.resource)).collect())
    });
    let (counting, writing) = (counting.await, writing.await);
    assert_eq!(counting, writing);
    assert!(writing.contains(&whose(&door.resource)));
    let lines = pair.collector.lines();
    let serving = lines.iter().find(|line| line.body == "serving").unwrap();
    assert_eq!(serving.attributes["replica"], serving.resource["service.instance.id"], "its name in the cluster");
    assert!(!pair.collector.was_told(ARGUMENT) && !pair.collector.was_told(SECRET), "neither arguments nor secrets");
    for caribou in [&pair.owner, &pair.other] {
        let metrics = caribou.get("/metrics").await.body;
        let lost = metrics.lines().filter(|line| line.starts_with("caribou_telemetry_lost_total")).collect::<Vec<_>>();
        assert!(lost.len() == 6 && lost.iter().all(|line| line.ends_with(" 0")), "{lost:?}");
    }
}

/// The span of the request, which is the child of its caller's.
async fn self_checked(pair: &Pair, trace: &str, caller: &str) -> SeenSpan {
    let door = pair.span(trace, SERVER, &format!("POST {CALL}")).await;
    assert_eq!(door.parent, caller);
    assert_eq!(door.attributes["http.response.status_code"], "200");
    door
}

/// Which replica said something, after a look at the rest of what it says of itself.
fn whose(resource: &caribou_tests::collector::Attributes) -> String {
    assert_eq!(resource["service.name"], "caribou");
    assert!(resource["service.version"].starts_with(|first: char| first.is_ascii_digit()), "{resource:?}");
    resource["service.instance.id"].clone()
}
