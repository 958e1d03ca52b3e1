//! `caribou stdio`: what a client that only starts processes writes and reads, in front of servers over HTTP.

use std::process::Stdio;
use std::time::{Duration, Instant};

use caribou_tests::{HttpFake, Script, Setup, eventually, network};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

const SOON: Duration = Duration::from_secs(20);

const KEY: &str = "hunter2-hunter2-hunter2";

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A front that runs.
struct Front {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _setup: Setup,
}

impl Front {
    fn start(url: &str, variables: &[(&str, &str)], words: &[&str]) -> Self {
        let setup = variables.iter().fold(Setup::new(), |setup, (name, value)| setup.variable(name, value));
        let words: Vec<&str> = ["stdio", "--server", url].into_iter().chain(words.iter().copied()).collect();
        let mut command = setup.command(&words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output).lines(), _setup: setup }
    }

    /// One in front of a fake, in whose session the handshake is done.
    async fn shaken(fake: &HttpFake) -> Self {
        let mut front = Self::start(&format!("{}/mcp", fake.url()), &[], &[]);
        let answer = front.initialize().await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        front.write(INITIALIZED).await;
        front
    }

    async fn initialize(&mut self) -> Value {
        self.ask(&hello()).await
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> String {
        let line = tokio::time::timeout(SOON, self.output.next_line()).await.expect("a line comes").unwrap();
        line.expect("it runs")
    }

    /// The next line, as the message that it must be.
    async fn message(&mut self) -> Value {
        let line = self.read().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("no message ({error}): {line}"))
    }

    async fn ask(&mut self, line: &str) -> Value {
        self.write(line).await;
        self.message().await
    }

    async fn call(&mut self, id: u32, tool: &str) -> Value {
        self.ask(&call(id, tool)).await
    }

    /// Writes no more. What else it wrote to stdout, and what to stderr; it must end well and soon.
    async fn end(self) -> (String, String) {
        let Self { child, input, mut output, .. } = self;
        drop(input);
        let begun = Instant::now();
        let rest = async {
            let mut rest = String::new();
            while let Ok(Some(line)) = output.next_line().await {
                rest.push_str(&line);
            }
            rest
        };
        let (rest, ended) =
            tokio::time::timeout(SOON, async { tokio::join!(rest, child.wait_with_output()) }).await.unwrap();
        let ended = ended.unwrap();
        assert!(ended.status.success(), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(15), "it does not end");
        (rest, String::from_utf8_lossy(&ended.stderr).into_owned())
    }
}

fn hello() -> String {
    let who = json!({ "name": "t", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who });
    json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }).to_string()
}

fn call(id: u32, tool: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
        .to_string()
}

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["code"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn results_pass_byte_for_byte_and_the_session_is_kept_and_ended() {
    // Invariant W1.
    let odd = r#"{"z":1.0,"a":9223372036854775809,"s":"\ud800","n":{ "k" : null }}"#;
    for answers in ["json", "sse"] {
        let script = format!(r#"{{"http":{{"answers":"{answers}"}},"calls":{{"odd":[{{"result":{odd}}}]}}}}"#);
        let fake = HttpFake::start(Script::parse(&script)).await;
        let mut front = Front::shaken(&fake).await;
        front.write(&call(7, "odd")).await;
        let line = front.read().await;
        assert!(line.contains(&format!(r#""result":{odd}"#)) && line.contains(r#""id":7"#), "{line}");
        assert_eq!(fake.sessions(), 1);
        let called = &fake.log().received("tools/call")[0];
        assert_eq!(called.headers["mcp-protocol-version"], "2025-11-25");
        assert_eq!(called.raw, call(7, "odd"), "what the client wrote is what the server reads");
        let (rest, errors) = front.end().await;
        assert_eq!((&*rest, &*errors), ("", ""));
        let deletes = fake.log().events("recv").iter().filter(|seen| seen.method == "DELETE").count();
        assert_eq!(deletes, 1);
    }
}

#[tokio::test]
async fn what_the_server_tells_and_asks_on_its_own_reaches_the_client_and_the_answer_goes_back() {
    let ping = json!({ "jsonrpc": "2.0", "id": "s-1", "method": "ping" });
    let asks = json!([{ "send": ping }, { "text": "done" }]);
    let script = json!({ "http": { "answers": "sse", "stream": true }, "calls": { "asks": asks } });
    let fake = HttpFake::start(script).await;
    let mut front = Front::shaken(&fake).await;
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    eventually(SOON, "the standing stream", async || (fake.push(&changed) > 0).then_some(())).await;
    assert_eq!(front.message().await, changed);
    assert_eq!(front.call(1, "asks").await, ping);
    assert_eq!(front.message().await["result"]["content"][0]["text"], "done");
    let pong = r#"{"jsonrpc":"2.0","id":"s-1","result":{ "x" : 1.0 }}"#;
    front.write(pong).await;
    eventually(SOON, "the answer", async || fake.log().all().iter().any(|seen| seen.raw == pong).then_some(())).await;
    front.end().await;
}

#[tokio::test]
async fn a_cancelled_request_is_not_answered_and_the_server_hears_of_it() {
    let fake =
        HttpFake::start(json!({ "http": { "answers": "sse" }, "calls": { "long": ["hang"], "echo": ["default"] } }))
            .await;
    let mut front = Front::shaken(&fake).await;
    front.write(&call(5, "long")).await;
    eventually(SOON, "the call", async || (!fake.log().received("tools/call").is_empty()).then_some(())).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    front.write(cancel).await;
    let answer = front.call(6, "echo").await;
    assert_eq!(answer["id"], 6, "nothing is said of the other: {answer}");
    // They are two requests over HTTP: which one the server hears first is left open.
    let heard = eventually(SOON, "the cancel", async || fake.log().received("notifications/cancelled").pop()).await;
    assert_eq!(heard.raw, cancel);
    front.end().await;
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_again_and_the_call_is_made_once() {
    let fake = HttpFake::start(json!({ "calls": { "echo": ["default"] } })).await;
    let mut front = Front::shaken(&fake).await;
    fake.expire_sessions();
    let answer = front.call(3, "echo").await;
    assert!(answer["id"] == 3 && answer["result"].is_object(), "{answer}");
    assert_eq!(fake.log().received("initialize").len(), 2);
    front.end().await;
}

#[tokio::test]
async fn a_client_that_waits_for_nothing_is_served_in_its_session_all_the_same() {
    let fake = HttpFake::start(json!({ "calls": { "echo": ["default"] } })).await;
    let mut front = Front::start(&format!("{}/mcp", fake.url()), &[], &[]);
    front.write(&format!("{}\n{INITIALIZED}\n{}", hello(), call(1, "echo"))).await;
    assert_eq!(front.message().await["id"], "hello");
    let (rest, _) = front.end().await;
    assert!(rest.contains(r#""id":1"#) && rest.contains(r#""result""#), "what is under way is finished: {rest}");
    assert!(fake.log().received("tools/call")[0].headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_resumed_where_it_can_be_and_else_its_outcome_is_unknown() {
    let later = json!([{ "resumable": "e-1" }, { "text": "at last" }]);
    let broken = json!([{ "bytes": ": working\n\n" }, "end"]);
    let fake =
        HttpFake::start(json!({ "http": { "answers": "sse" }, "calls": { "later": later, "broken": broken } })).await;
    let mut front = Front::shaken(&fake).await;
    assert_eq!(front.call(1, "later").await["result"]["content"][0]["text"], "at last");
    let answer = front.call(2, "broken").await;
    assert!(answer["id"] == 2 && code(&answer) == "outcome_unknown", "{answer}");
    assert_eq!(fake.log().received("tools/call").len(), 2, "a call that may have run is not repeated");
    front.end().await;
}

#[tokio::test]
async fn a_server_that_is_away_and_lines_that_are_no_messages_are_answered_with_the_next_step() {
    let mut front = Front::start(&format!("http://127.0.0.1:{}", network::free_port()), &[], &[]);
    let answer = front.initialize().await;
    assert!(answer["id"] == "hello" && code(&answer) == "unavailable", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("caribou serve"), "{answer}");
    let answer = front.ask("hello?").await;
    assert!(answer["id"].is_null() && answer["error"]["code"] == -32_700, "{answer}");
    front.end().await;
}

#[tokio::test]
async fn the_credential_comes_from_a_variable_or_a_file_and_is_shown_to_nobody_else() {
    // Invariant O3.
    let fake = HttpFake::start(json!({ "calls": { "echo": ["default"] } })).await;
    let right = format!("Bearer {KEY}");
    fake.admit_if(move |shown| {
        let refusal = json!({ "code": 401, "headers": {}, "body": "who are you?" });
        (shown != right).then(|| serde_json::from_value(refusal).unwrap())
    });
    let url = format!("{}/mcp", fake.url());
    let mut stranger = Front::start(&url, &[], &[]);
    let refused = stranger.initialize().await;
    assert!(code(&refused) == "denied" && refused.to_string().contains("CARIBOU_API_KEY"), "{refused}");
    stranger.end().await;

    let home = Setup::new();
    let file = home.home().write("key", &format!("{KEY}\n"));
    let by_file = ["--key-file", file.to_str().unwrap(), "--header", "X-Caribou-Thread=THREAD"];
    for (variables, words) in [(&[("CARIBOU_API_KEY", KEY)][..], &[][..]), (&[("THREAD", "kitchen")], &by_file)] {
        let mut front = Front::start(&url, variables, words);
        assert!(front.initialize().await["result"].is_object());
        let (rest, errors) = front.end().await;
        assert!(!format!("{rest}{errors}").contains("hunter2"), "{rest}{errors}");
    }
    assert_eq!(fake.log().received("initialize").last().unwrap().headers["x-caribou-thread"], "kitchen");
}
