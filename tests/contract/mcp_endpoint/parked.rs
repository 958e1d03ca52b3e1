//! Calls that a server of the legacy era asks something in the middle of (mcp.md 14.3, 14.7; §17, B3, B4, S2).

use caribou_tests::counter_server::{Bearing, Diary};
use caribou_tests::{
    Answer, Caribou, Home, HttpFake, Postgres, Setup, StdioFake, eventually, know_one_another, process, third_party,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{SOON, Session, Stream, appears, modern, post, request};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A server that asks before it counts, and what it writes down.
struct Counter {
    caribou: Caribou,
    diary: Diary,
    _home: Home,
}

impl Counter {
    async fn start(setup: Setup) -> Self {
        let home = Home::new();
        let diary = Diary::new(&home);
        let caribou = setup.server("counter", diary.entry(Bearing::default())).start().await;
        Self { caribou, diary, _home: home }
    }

    /// How often calls reached the server, and how often it counted.
    fn tally(&self) -> (usize, usize) {
        tally(&self.diary)
    }
}

fn tally(diary: &Diary) -> (usize, usize) {
    let lives = diary.lives();
    let done = lives.executions().iter().filter(|execution| execution.done.is_some()).count();
    (lives.executions().len(), done)
}

fn capable(capabilities: Value) -> Value {
    json!({ "io.modelcontextprotocol/clientCapabilities": capabilities })
}

fn asking(arguments: &Value) -> Value {
    json!({ "name": "counter_ask", "arguments": arguments, "_meta": capable(json!({ "elicitation": {} })) })
}

fn call(caribou: &Caribou, params: Value) -> reqwest::RequestBuilder {
    modern(caribou, "/mcp", "tools/call", params)
}

/// Calls and is asked: the state, and the key of the question.
async fn asked(caribou: &Caribou, arguments: &Value) -> (Value, String) {
    question_of(&caribou.send(call(caribou, asking(arguments))).await)
}

fn question_of(answer: &Answer) -> (Value, String) {
    let result = answer.json()["result"].clone();
    assert_eq!(result["resultType"], "input_required", "{answer:?}");
    let questions = result["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!((questions.len(), &question["method"]), (1, &"elicitation/create".into()), "{answer:?}");
    (result["requestState"].clone(), key.clone())
}

/// The same call again, with answers.
fn brought(arguments: &Value, state: &Value, answers: &Value) -> Value {
    let mut params = asking(arguments);
    params["requestState"] = state.clone();
    params["inputResponses"] = answers.clone();
    params
}

fn yes(key: &str) -> Value {
    json!({ key: { "action": "accept", "content": { "sure": true } } })
}

fn counted(answer: &Answer) -> u64 {
    let counted = answer.json()["result"]["structuredContent"]["count"].as_u64();
    counted.unwrap_or_else(|| panic!("not counted: {answer:?}"))
}

/// A tool that failed, with this text.
fn failed(answer: &Answer) -> String {
    let result = answer.json()["result"].clone();
    assert_eq!(result["isError"], true, "{answer:?}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_call_goes_on_when_its_answers_come_and_is_answered_twice_but_made_once() {
    let counter = Counter::start(Setup::new()).await;
    let (caribou, arguments) = (&counter.caribou, json!({ "call_id": "c1" }));
    let (state, key) = asked(caribou, &arguments).await;
    assert_eq!(counter.tally(), (1, 0));

    // A key that nobody asked for answers nothing: it is asked again, under a state that is new.
    let again = caribou.send(call(caribou, brought(&arguments, &state, &json!({ "other": {} })))).await;
    let (fresh, same) = question_of(&again);
    assert!(fresh != state && same == key, "{again:?}");

    let other = json!({ "call_id": "c1", "ms": 1 });
    let refused = caribou.send(call(caribou, brought(&other, &fresh, &yes(&key)))).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &(-32_602).into()), "of another request");
    let malformed = caribou.send(call(caribou, brought(&arguments, &fresh, &json!([1])))).await;
    assert_eq!(malformed.json()["error"]["code"], -32_602, "{malformed:?}");

    let answers = yes(&key);
    let done = async || caribou.send(call(caribou, brought(&arguments, &fresh, &answers))).await;
    let (first, second) = tokio::join!(done(), done());
    assert_eq!((counted(&first), counted(&second)), (1, 1), "whoever comes again hears what came of it");
    let no = json!({ key: { "action": "decline" } });
    let late = caribou.send(call(caribou, brought(&arguments, &fresh, &no))).await;
    assert!(failed(&late).contains("answered already"), "{late:?}");
    assert_eq!(counter.tally(), (1, 1));
}

#[tokio::test]
async fn who_declines_is_heard_and_nothing_is_counted() {
    let counter = Counter::start(Setup::new()).await;
    let arguments = json!({ "call_id": "c1" });
    let (state, key) = asked(&counter.caribou, &arguments).await;
    let no = json!({ key: { "action": "decline" } });
    let answer = counter.caribou.send(call(&counter.caribou, brought(&arguments, &state, &no))).await;
    assert!(answer.body.contains("not counted"), "{answer:?}");
    assert_eq!(counter.tally(), (1, 0));
}

#[tokio::test]
async fn a_round_whose_stream_is_cut_is_joined_by_whoever_asks_again() {
    // mcp.md 14.7, 4: a modern client whose stream broke must ask again.
    let setup = Setup::new();
    let touched = setup.home().join("touched");
    let counter = Counter::start(setup).await;
    let arguments = json!({ "call_id": "c1", "ms": 700, "touch": touched });
    let (state, key) = asked(&counter.caribou, &arguments).await;
    let again = || counter.caribou.send(call(&counter.caribou, brought(&arguments, &state, &yes(&key))));
    tokio::select! {
        answer = again() => panic!("answered: {answer:?}"),
        () = appears(&touched) => {}
    }
    assert_eq!(counted(&again().await), 1);
    assert_eq!(counter.tally(), (1, 1));
}

#[tokio::test]
async fn a_session_in_which_a_call_waits_is_not_idle() {
    // architecture.md §10: never of a session with a call in flight.
    let counter = Counter::start(Setup::new().settings("sessions: {idle_seconds: 0.4}\n")).await;
    let (caribou, arguments) = (&counter.caribou, json!({ "call_id": "c1" }));
    let (state, key) = asked(caribou, &arguments).await;
    // One that nobody waits in is closed meanwhile.
    let other = caribou.call_in("other", "counter_count", json!({ "call_id": "c2" })).await;
    let pid = other.json()["result"]["structuredContent"]["pid"].as_u64().unwrap() as u32;
    eventually(SOON, "the idle session is closed", async || (!caribou_tests::process::is_alive(pid)).then_some(()))
        .await;
    let done = caribou.send(call(caribou, brought(&arguments, &state, &yes(&key)))).await;
    assert_eq!(counted(&done), 1);
}

#[tokio::test]
async fn a_caller_that_cannot_be_asked_is_told_so_or_its_server_is() {
    // mcp.md 14.3, caller lacks the capability; §17, S14.
    let counter = Counter::start(Setup::new()).await;
    let caribou = &counter.caribou;
    let unable = json!({ "name": "counter_ask", "_meta": capable(json!({ "sampling": {} })) });
    let refused = caribou.send(call(caribou, unable)).await;
    let error = refused.json()["error"].clone();
    assert_eq!((refused.status, &error["code"]), (400, &(-32_021).into()), "{refused:?}");
    assert_eq!(error["data"], json!({ "requiredCapabilities": { "elicitation": {} } }));
    // Doors by which nobody can be asked: declined, and the call goes on.
    let by_rest = caribou.call("counter_ask", json!({})).await;
    assert!(by_rest.body.contains("not counted"), "{by_rest:?}");
    let session = Session::open(caribou, "/mcp").await;
    let body = request(3, "tools/call", &json!({ "name": "counter_ask" }));
    let deaf = caribou.request("POST", "/mcp").header("content-type", "application/json").body(body);
    let by_json = caribou.send(session.with(deaf.header("accept", "application/json"))).await;
    assert!(by_json.body.contains("not counted"), "it reads no stream: {by_json:?}");
    assert_eq!(counter.tally(), (3, 0));
}

#[tokio::test]
async fn a_legacy_client_is_asked_on_the_stream_of_its_call() {
    // mcp.md 14.3, legacy client and legacy server.
    let counter = Counter::start(Setup::new()).await;
    let session = Session::open(&counter.caribou, "/mcp").await;
    for (n, action) in ["accept", "decline"].into_iter().enumerate() {
        let body = request(3, "tools/call", &json!({ "name": "counter_ask" }));
        let mut stream = Stream::of(session.with(post(&counter.caribou, "/mcp", body))).await;
        let asked = stream.next().await.unwrap();
        assert_eq!((&asked["method"], &asked["params"]["message"]), (&"elicitation/create".into(), &"Count?".into()));
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": action } });
        assert_eq!(session.send(answer.to_string()).await.status, 202);
        let done = stream.next().await.unwrap();
        let result = &done["result"];
        assert_eq!((&done["id"], result["structuredContent"]["count"].as_u64()), (&3.into(), (n == 0).then_some(1)));
    }
    assert_eq!(counter.tally(), (2, 1));
}

#[tokio::test]
async fn over_http_a_question_belongs_to_the_call_on_whose_stream_it_came() {
    // mcp.md 14.4, streamable HTTP.
    let setup = Setup::new();
    let go = setup.home().join("go");
    let question = |text: &str| {
        let params = json!({ "message": text });
        json!({ "send": { "jsonrpc": "2.0", "id": "$ID", "method": "elicitation/create", "params": params } })
    };
    let wait = json!({ "until_file": go });
    let roots = json!({ "send": { "jsonrpc": "2.0", "id": "r", "method": "roots/list" } });
    let calls = json!({
        "one": [question("one?"), wait, { "text": "first" }],
        "two": [question("two?"), wait, { "text": "second" }],
        "roots": [roots, "hang"],
    });
    let fake = HttpFake::start(json!({ "http": { "answers": "sse" }, "calls": calls })).await;
    let caribou = setup.server("fake", fake.entry()).start().await;
    let params = |name: &str| json!({ "name": name, "_meta": capable(json!({ "elicitation": {} })) });
    let asked = async |name: &str| {
        let answer = caribou.send(call(&caribou, params(name))).await;
        assert!(answer.body.contains(&format!("{}?", name.trim_start_matches("fake_"))), "{answer:?}");
        question_of(&answer)
    };
    // At the same time, in one session.
    let (one, two) = tokio::join!(asked("fake_one"), asked("fake_two"));
    let lacking = caribou.send(call(&caribou, params("fake_roots"))).await.json();
    assert_eq!(lacking["error"]["data"], json!({ "requiredCapabilities": { "roots": {} } }), "{lacking}");
    let bring = async |name: &str, (state, key): (Value, String), city: &str| {
        let mut again = params(name);
        again["requestState"] = state;
        again["inputResponses"] = json!({ key: { "action": "accept", "content": { "city": city } } });
        caribou.send(call(&caribou, again)).await.json()["result"]["content"][0]["text"].clone()
    };
    let is_heard = |city: &str| fake.log().events("recv").iter().any(|seen| seen.raw.contains(city));
    let told = async {
        eventually(SOON, "both answers reach the server", async || {
            (is_heard("Oulu") && is_heard("Kemi")).then_some(())
        })
        .await;
        std::fs::write(&go, "").unwrap();
    };
    let (second, first, ()) = tokio::join!(bring("fake_two", two, "Oulu"), bring("fake_one", one, "Kemi"), told);
    assert_eq!((first, second), ("first".into(), "second".into()));
    assert_eq!(fake.log().received("tools/call").len(), 3, "nothing was sent again");
}

/// Two replicas on one database, with one server.
async fn replicas(server: &str, entry: &Value, settings: &str) -> (Postgres, [Caribou; 2]) {
    let database = Postgres::start().await;
    let url = database.url("postgres");
    let migrated = Setup::new().variable("CARIBOU_DATABASE_URL", &url).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let replica = async || {
        let setup = Setup::new().variable("CARIBOU_DATABASE_URL", &url).settings(settings);
        let setup = setup.variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0").variable("CARIBOU_CLUSTER_SECRET", SECRET);
        setup.server(server, entry.clone()).start().await
    };
    let replicas = [replica().await, replica().await];
    know_one_another(&replicas).await;
    (database, replicas)
}

#[tokio::test]
async fn everything_asks_at_one_replica_and_is_answered_at_another() {
    // mcp.md §17, B4 and B6.
    let (_database, [here, there]) = replicas("everything", &third_party::everything(), "").await;
    let capable = capable(json!({ "elicitation": {} }));
    let params = json!({ "name": "everything_trigger-elicitation-request", "arguments": {}, "_meta": capable });
    for (asking, answering) in [(&here, &there), (&there, &here)] {
        let (state, key) = question_of(&asking.send(call(asking, params.clone())).await);
        let mut again = params.clone();
        again["requestState"] = state;
        again["inputResponses"] = json!({ key: { "action": "accept", "content": { "name": "ann", "check": true } } });
        let done = answering.send(call(answering, again)).await;
        assert!(done.json()["result"]["content"].to_string().contains("ann"), "{done:?}");
    }
    // Of the other era, by the same road.
    let opened = Session::open(&here, "/mcp").await;
    let body = request(3, "tools/call", &json!({ "name": "everything_trigger-elicitation-request", "arguments": {} }));
    let mut stream = Stream::of(opened.with(post(&here, "/mcp", body))).await;
    let asked = stream.next().await.unwrap();
    let answer = json!({ "action": "accept", "content": { "name": "bob", "check": true } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
    assert_eq!(opened.at(&there).send(answer.to_string()).await.status, 202, "{asked}");
    let done = stream.next().await.unwrap();
    assert!(done["result"]["content"].to_string().contains("bob"), "{done}");
}

#[tokio::test]
async fn an_answer_waits_for_a_replica_that_asked_and_stands_still() {
    // mcp.md §17, B6: a client says it once, and is told that it was heard.
    let home = Home::new();
    let diary = Diary::new(&home);
    let (_database, [here, there]) = replicas("counter", &diary.entry(Bearing::default()), "").await;
    let opened = Session::open(&here, "/mcp").await;
    let body = request(3, "tools/call", &json!({ "name": "counter_ask" }));
    let mut stream = Stream::of(opened.with(post(&here, "/mcp", body))).await;
    let asked = stream.next().await.unwrap();
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } }).to_string();
    process::signal(here.pid(), Signal::STOP);
    let elsewhere = opened.at(&there);
    let thawed = async {
        eventually(SOON, "the answer is passed on again", async || {
            there.log().contains("passed on again").then_some(())
        })
        .await;
        process::signal(here.pid(), Signal::CONT);
    };
    let (answered, ()) = tokio::join!(elsewhere.send(answer), thawed);
    assert_eq!(answered.status, 202, "{answered:?}");
    assert_eq!(stream.next().await.unwrap()["result"]["structuredContent"]["count"], 1);
    assert_eq!(tally(&diary), (1, 1));
}

#[tokio::test]
async fn a_client_that_cancels_at_another_replica_has_its_waiting_call_cancelled() {
    // mcp.md 14.3, cancel by client.
    let home = Home::new();
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": "?" } });
    let fake = StdioFake::new(&home, "fake", json!({ "calls": { "ask": [{ "send": question }, "hang"] } }));
    let (_database, [here, there]) = replicas("fake", &fake.entry(), "").await;
    let opened = Session::open(&here, "/mcp").await;
    let body = request(40, "tools/call", &json!({ "name": "fake_ask" }));
    let mut stream = Stream::of(opened.with(post(&here, "/mcp", body))).await;
    assert_eq!(stream.next().await.unwrap()["method"], "elicitation/create");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 40 } });
    assert_eq!(opened.at(&there).send(cancelled.to_string()).await.status, 202);
    assert_eq!(stream.next().await, None, "nothing more is said of it");
    eventually(SOON, "the server hears of it", async || {
        (!fake.log().received("notifications/cancelled").is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_that_waits_at_a_replica_that_is_killed_is_lost_and_never_made_again() {
    // mcp.md 14.7, 6; §17, B4; invariant S2.
    let home = Home::new();
    let diary = Diary::new(&home);
    let settings = "cluster: {profile: fast}\n";
    let (_database, [one, other]) = replicas("counter", &diary.entry(Bearing::default()), settings).await;
    let arguments = json!({ "call_id": "c1" });
    let (state, key) = asked(&one, &arguments).await;
    let again = brought(&arguments, &state, &yes(&key));
    let owner = diary.lives().all().next().unwrap().pid;
    let (dead, alive) = if one.descendants().contains(&owner) { (one, other) } else { (other, one) };
    let _home = dead.kill().await;
    for _ in 0..2 {
        let lost = alive.send(call(&alive, again.clone())).await;
        assert!(failed(&lost).contains("lost") && !lost.body.contains("count\":"), "{lost:?}");
    }
    assert_eq!(tally(&diary), (1, 0), "the call reached one server, once");
    let (state, key) = asked(&alive, &arguments).await;
    assert_eq!(counted(&alive.send(call(&alive, brought(&arguments, &state, &yes(&key)))).await), 1);
}
