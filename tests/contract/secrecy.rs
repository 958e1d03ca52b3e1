//! No secret is shown, wherever it was configured, sent or answered, in whatever spelling (invariant O3).
//!
//! Every place in which a secret can stand holds a text of its own. Servers, token endpoints and interceptors then
//! repeat what they were given, plainly and encoded, in every error they can give; callers fail in every way; and all
//! that leaves Caribou but the results themselves is searched: answers, logs, metrics, spans, records, files, commands.
//! Each test also proves that the secrets were really in use.

use std::path::Path;
use std::time::Duration;

use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use caribou_proto::v1;
use caribou_proto::v1::tool_service_client::ToolServiceClient;
use caribou_tests::fake::{Log, Seen};
use caribou_tests::{Answer, Caribou, HttpFake, Setup, StdioFake, TokenFake, eventually};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use collector::Collector;

mod collector;

const SOON: Duration = Duration::from_secs(20);

/// The secret that stands at this place. It has characters that URLs, forms and Base64 treat in their own ways.
fn secret(place: &str) -> String {
    format!("{place}/kanari+7~{place}")
}

/// As a URL holds it.
fn in_url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What a server might say of it.
fn spellings(text: &str) -> Vec<String> {
    let amid = |before: &str| format!("{before}{text}:rest");
    let url = in_url(text);
    let mut all = vec![text.to_owned(), url.to_lowercase(), url, hex(text).to_uppercase(), hex(text)];
    for before in ["", "u:", "user:", "u"] {
        all.extend([STANDARD.encode(amid(before)), URL_SAFE.encode(amid(before)), STANDARD.encode(text)]);
    }
    all
}

/// What tells that it is there: each spelling, of Base64 the part that is the same amid any text.
fn traces(text: &str) -> Vec<String> {
    let mut all: Vec<String> = spellings(text)[..5].to_vec();
    for before in 0..3 {
        for alphabet in [STANDARD, URL_SAFE] {
            let encoded = alphabet.encode(format!("{}{text}", "x".repeat(before)));
            all.push(encoded[(8 * before).div_ceil(6)..8 * (before + text.len()) / 6].to_owned());
        }
    }
    all
}

/// All spellings of the secrets of these places, in one line.
fn echo(places: &[&str]) -> String {
    let all: Vec<String> = places.iter().flat_map(|place| spellings(&secret(place))).collect();
    all.join(" ")
}

/// All that was shown, and where.
#[derive(Default)]
struct Shown(Vec<(String, Vec<u8>)>);

impl Shown {
    fn add(&mut self, place: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((place.into(), bytes.into()));
    }

    fn answer(&mut self, place: &str, answer: &Answer) {
        self.add(format!("the answer to {place}, {}", answer.status), format!("{answer:?} {}", answer.body));
    }

    /// Adds every file below a folder but what the test wrote there itself.
    fn folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                self.folder(&entry.path());
            } else {
                self.add(entry.path().display().to_string(), std::fs::read(entry.path()).unwrap());
            }
        }
    }

    async fn command(&mut self, setup: &Setup, words: &[&str]) -> Option<i32> {
        let output = tokio::time::timeout(SOON * 3, setup.command(words).output()).await.unwrap().unwrap();
        self.add(format!("stdout of {words:?}"), output.stdout);
        self.add(format!("stderr of {words:?}"), output.stderr);
        output.status.code()
    }

    /// The places whose secret was shown, and where.
    fn leaks(&self, secrets: &[(String, String)]) -> Vec<String> {
        let mut leaks = Vec::new();
        for (name, value) in secrets {
            for trace in traces(value) {
                for (place, bytes) in &self.0 {
                    if let Some(at) = find(bytes, &trace) {
                        let around = &bytes[at.saturating_sub(120)..(at + trace.len() + 40).min(bytes.len())];
                        leaks.push(format!("{name} in {place}: {}", String::from_utf8_lossy(around)));
                    }
                }
            }
        }
        leaks
    }

    fn assert_none_of(&self, secrets: &[(String, String)]) {
        let leaks = self.leaks(secrets);
        assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    }
}

fn find(bytes: &[u8], text: &str) -> Option<usize> {
    let first = text.as_bytes()[0];
    let last = bytes.len().checked_sub(text.len())?;
    (0..=last).find(|at| bytes[*at] == first && bytes[*at..].starts_with(text.as_bytes()))
}

fn named(places: &[&str]) -> Vec<(String, String)> {
    places.iter().map(|place| ((*place).to_owned(), secret(place))).collect()
}

/// Whether a server was sent it, in any part of a request.
fn was_sent(log: &Log, place: &str) -> bool {
    let traces = traces(&secret(place));
    let holds = |text: &str| traces.iter().any(|trace| text.contains(trace.as_str()));
    let seen = |seen: &Seen| holds(&seen.raw) || holds(&seen.path) || seen.headers.values().any(|value| holds(value));
    log.all().iter().any(seen)
}

/// Tools that fail in every way with this text: as an error of JSON-RPC, as a refusal, as a redirect.
fn failing(text: &str) -> Value {
    let status =
        |code: u16| json!([{ "status": { "code": code, "headers": { "content-type": "text/plain" }, "body": text } }]);
    let away = format!("http://127.0.0.1:1/{}?key={}", in_url(text), in_url(text));
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{text}\", resource_metadata=\"{away}\"");
    json!({
        "ok": [{ "text": "fine" }],
        "rpc": [{ "error": { "code": -32000, "message": text, "data": { "said": text, text: [text] } } }],
        "bad": status(400), "gone": status(500), "unauthorised": status(401), "forbidden": status(403),
        "challenged": [{ "status": { "code": 403, "headers": { "www-authenticate": challenge } } }],
        "moved": [{ "status": { "code": 307, "headers": { "location": away } } }],
        "garbage": [{ "status": { "code": 200, "headers": { "content-type": text }, "body": text } }],
        "wrong": [{ "status": { "code": 200, "headers": { "content-type": "application/json" }, "body": json!({ text: text }).to_string() } }],
    })
}

const FAILING: [&str; 9] =
    ["rpc", "bad", "gone", "unauthorised", "forbidden", "challenged", "moved", "garbage", "wrong"];

/// Everything an operator or caller can look at.
async fn look(caribou: &Caribou, shown: &mut Shown) {
    for path in [
        "/api/mcp/tools?user_id=ann",
        "/api/mcp/servers",
        "/api/mcp/sessions",
        "/api/mcp/audit?limit=1000",
        "/metrics",
        "/openapi.json",
        "/healthz",
        "/readyz",
        "/api/mcp/tools?user_id=a%20b",
        "/api/users/ann/mcp/connections",
        "/api/users/ann/mcp/connections/mine",
        "/api/mcp/prompt-section",
    ] {
        shown.answer(path, &caribou.get(path).await);
    }
    let beside = Setup::new().variable("CARIBOU_SERVER", caribou.url());
    for words in [
        &["servers"][..],
        &["servers", "--json"],
        &["sessions"],
        &["sessions", "--json"],
        &["audit"],
        &["audit", "--json"],
        &["tools", "list"],
        &["tools", "list", "--json"],
    ] {
        assert_eq!(shown.command(&beside, words).await, Some(0), "{words:?}");
    }
    // Contract 1.12: of a server, `url` and `args` are shown to those who manage it.
    let mut config = caribou.get("/api/mcp/config").await.json();
    for server in config["mcp_servers"].as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
        server.retain(|member, _| !["url", "args"].contains(&member.as_str()));
    }
    shown.add("the configuration", config.to_string());
}

/// Calls a failing tool over gRPC, with progress and without, and adds what is said.
async fn over_grpc(caribou: &Caribou, name: &str, user: &str, shown: &mut Shown) {
    let url = caribou.grpc_url().await.replacen("grpc", "http", 1);
    let mut tools = ToolServiceClient::connect(url).await.unwrap();
    let request = v1::CallToolRequest {
        name: name.to_owned(),
        arguments: Some(json!({ "password": secret("argument") }).to_string()),
        scope: Some(v1::Scope { user_id: user.to_owned(), thread_id: "t".to_owned() }),
        secrets: [("tenant".to_owned(), secret("request-secret"))].into(),
        ..Default::default()
    };
    let refused = tools.call_tool(request.clone()).await.unwrap_err();
    let mut stream = tools.call_tool_streaming(request).await.unwrap().into_inner();
    let streamed = stream.message().await.unwrap_err();
    for status in [refused, streamed] {
        let upstream = status.metadata().get_bin("caribou-upstream-bin").map(|value| value.to_bytes().unwrap());
        shown.add(format!("gRPC's {name}"), upstream.unwrap_or_default());
        shown.add(format!("gRPC's {name}"), format!("{status:?} {}", status.message()));
    }
}

/// Calls each failing tool of a server for `user`, and adds what is said.
async fn fail(caribou: &Caribou, server: &str, user: &str, shown: &mut Shown) {
    for tool in FAILING {
        let body = json!({
            "name": format!("{server}_{tool}"), "arguments": { "password": secret("argument") }, "user_id": user,
            "config": { "context": { "secrets": { "tenant": secret("request-secret"), "other": secret("unused-secret") } } },
        });
        let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
        assert!(answer.status >= 400, "{server}_{tool}: {answer:?}");
        shown.answer(&format!("{server}_{tool}"), &answer);
    }
    let body = json!({ "name": format!("{server}_ok"), "user_id": user, "context": { "secrets": { "tenant": secret("request-secret") } } });
    let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
    assert_eq!(answer.status, 200, "{server}_ok: {answer:?}");
}

/// A replica that tells as much as it can, on its log and to a collector, and serves gRPC too.
fn telling(setup: Setup, collector: &Collector) -> Setup {
    setup
        .variable("RUST_LOG", "info,caribou=trace")
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0")
        .variable("CARIBOU_NETWORK_ALLOW_CIDRS", "127.0.0.0/8")
}

/// Stops it and adds all that is left: log, spans, files.
async fn end(caribou: Caribou, collector: &Collector, shown: &mut Shown) {
    let (_, home) = caribou.stop().await;
    let log = std::fs::read(home.join("caribou.log")).unwrap();
    assert!(find(&log, "TRACE").is_some() || find(&log, "DEBUG").is_some(), "it tells what it does");
    shown.add("the log", log);
    let spans = eventually(SOON, "spans", async || Some(collector.exported()).filter(|spans| !spans.is_empty())).await;
    assert!(find(&spans, "call_tool").is_some());
    shown.add("the spans", spans);
    shown.folder(&home.join("data"));
}

/// Contract 1.12, 8.1 to 8.5.
#[tokio::test]
async fn servers_repeat_in_their_errors_what_they_were_sent_and_nobody_reads_it() {
    const OF_CHILD: [&str; 6] = ["env", "named-env", "plain-env", "flag", "joined-flag", "header-flag"];
    const OF_REMOTE: [&str; 8] = ["login", "query", "header", "named-header", "basic", "ann", "bob", "request-secret"];
    let collector = Collector::start().await;
    let setup = telling(Setup::new(), &collector)
        .variable("OF_ENV", &secret("named-env"))
        .variable("OF_HEADER", &secret("named-header"));
    let said = echo(&OF_CHILD);
    let script = json!({ "start": [{ "stderr": format!("{said}\n") }, { "stderr": "$ENV\n" }], "calls": {
        "ok": [{ "stderr": format!("{said}\n") }, { "text": "$ENV" }],
        "rpc": [{ "error": { "code": -1, "message": said, "data": [said] } }],
        "die": [{ "stderr": said }, { "die": 3 }],
        "noise": [{ "bytes": format!("{said}\n{{\"{said}\"}}\n") }, { "die": 3 }],
    } });
    let child = StdioFake::new(setup.home(), "child", script);
    let mut entry = child.entry();
    for (name, value) in [("API_KEY", secret("env")), ("NAMED", "$OF_ENV".to_owned()), ("OTHER", secret("plain-env"))] {
        entry["env"][name] = value.into();
    }
    entry["args"] = json!([
        "--api-key",
        secret("flag"),
        format!("--auth-token={}", secret("joined-flag")),
        "--header",
        format!("Authorization: Bearer {}", secret("header-flag"))
    ]);
    let remote = HttpFake::start(failing(&echo(&OF_REMOTE))).await;
    let url =
        remote.entry()["url"].as_str().unwrap().replace("http://", &format!("http://u:{}@", in_url(&secret("login"))));
    let plain = json!({ "url": format!("{url}?key={}", in_url(&secret("query"))), "headers": { "X-Key": secret("header"), "X-Named": "$OF_HEADER" } });
    let user = json!({
        "headers": { "X-Basic": format!("Basic {}", STANDARD.encode(format!("u:{}", secret("basic")))) },
        "user_auth": { "users": { "ann": format!("Bearer {}", secret("ann")), "bob": secret("bob") } },
        "headers_from_context": { "headers": { "X-Tenant": "tenant" } },
    });
    let setup =
        setup.server("child", entry).server("plain", remote.entry_with(plain)).server("user", remote.entry_with(user));
    let caribou = setup.start().await;
    let mut shown = Shown::default();
    fail(&caribou, "plain", "ann", &mut shown).await;
    fail(&caribou, "user", "ann", &mut shown).await;
    fail(&caribou, "user", "bob", &mut shown).await;
    for user in ["nobody", "ann"] {
        let body = json!({ "name": "user_ok", "user_id": user, "arguments": { "a": secret("argument") } });
        let denied = caribou.post("/api/mcp/tools/call", body.to_string()).await;
        assert_eq!(denied.status, 403);
        shown.answer("a call without credentials", &denied);
    }
    assert_eq!(caribou.call("child_ok", json!({})).await.status, 200);
    for tool in ["child_rpc", "child_die", "child_noise"] {
        let failed = caribou.call(tool, json!({ "password": secret("argument") })).await;
        assert!(failed.status >= 400, "{failed:?}");
        shown.answer(tool, &failed);
    }
    for (tool, user) in [("user_rpc", "ann"), ("user_forbidden", "bob"), ("child_rpc", "ann")] {
        over_grpc(&caribou, tool, user, &mut shown).await;
    }
    look(&caribou, &mut shown).await;
    end(caribou, &collector, &mut shown).await;
    let log = &shown.0.iter().find(|(place, _)| place == "the log").unwrap().1;
    assert!(find(log, "***").is_some(), "something was masked");
    for place in OF_REMOTE.iter().filter(|place| **place != "basic") {
        assert!(was_sent(&remote.log(), place), "{place} was not in use");
    }
    shown.assert_none_of(&named(&OF_CHILD));
    shown.assert_none_of(&named(&OF_REMOTE));
    shown.assert_none_of(&named(&["argument", "unused-secret"]));
}

/// Contract 7.1 to 7.4.
#[tokio::test]
async fn token_endpoints_repeat_what_they_were_asked_and_nobody_reads_it() {
    const PLACES: [&str; 6] = ["client-secret", "seed", "extra-param", "access-token", "rotated", "endpoint-login"];
    let collector = Collector::start().await;
    let (tokens, remote) = (TokenFake::start().await, HttpFake::start(failing(&echo(&PLACES))).await);
    tokens.then(
        200,
        &json!({ "access_token": secret("access-token"), "expires_in": 0, "refresh_token": secret("rotated") }),
    );
    let refusal = json!({ "error": echo(&PLACES), "error_description": echo(&PLACES), "error_uri": echo(&PLACES) });
    for code in [400, 401, 500, 200, 503, 400, 400, 400] {
        tokens.then(code, &refusal);
        tokens.then_as(code, "text/html", &echo(&PLACES));
    }
    let oauth = tokens.refreshing(json!({
        "client_secret": secret("client-secret"), "refresh_token": secret("seed"), "refresh_skew_seconds": 0,
        "extra_token_params": { "resource": secret("extra-param") },
    }));
    let login = format!("http://u:{}@", in_url(&secret("endpoint-login")));
    let oauth_url = oauth["token_url"].as_str().unwrap().replace("http://", &login);
    let mut entry = remote.entry_with(json!({ "oauth": oauth }));
    entry["oauth"]["token_url"] = oauth_url.into();
    let caribou = telling(Setup::new(), &collector).server("far", entry).start().await;
    let mut shown = Shown::default();
    for round in 0..4 {
        for tool in FAILING {
            let answer = caribou.call(&format!("far_{tool}"), json!({})).await;
            assert!(answer.status >= 400, "{answer:?}");
            shown.answer(&format!("far_{tool}, round {round}"), &answer);
        }
    }
    over_grpc(&caribou, "far_rpc", "ann", &mut shown).await;
    look(&caribou, &mut shown).await;
    end(caribou, &collector, &mut shown).await;
    let asked = tokens.requests();
    let sent: Vec<String> = asked.iter().map(|request| format!("{} {:?}", request.raw, request.headers)).collect();
    for place in ["client-secret", "seed", "extra-param", "rotated", "endpoint-login"] {
        let traces = traces(&secret(place));
        assert!(
            sent.iter().any(|sent| traces.iter().any(|trace| sent.contains(trace.as_str()))),
            "{place} was not sent"
        );
    }
    assert!(was_sent(&remote.log(), "access-token"));
    shown.assert_none_of(&named(&PLACES));
}

/// An interceptor that passes the secrets it was given on as a header, and denies, answers and fails with them.
async fn interceptor(text: String) -> (String, Log) {
    let log = Log::Memory(std::sync::Arc::default());
    let kept = log.clone();
    let answer = move |body: Bytes| {
        kept.add("recv", &String::from_utf8_lossy(&body));
        let call: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = match call["call"]["arguments"]["say"].as_str().unwrap_or_default() {
            "deny" => json!({ "deny": text }).to_string(),
            "illegal" => json!({ "proceed": { "headers": [{ "name": text, "value": format!("{}\r\n", secret("hook-header")) }] } }).to_string(),
            "nonsense" => text.clone(),
            "unknown" => json!({ text.as_str(): text }).to_string(),
            _ => json!({ "proceed": { "headers": [{ "name": "X-Hook", "value": secret("hook-header") }] } }).to_string(),
        };
        async move { said }
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    (address, log)
}

/// Contract 8.6.
#[tokio::test]
async fn interceptors_repeat_what_they_were_shown_and_nobody_reads_it() {
    const PLACES: [&str; 5] = ["hook-login", "hook-query", "hook-header", "request-secret", "header"];
    let collector = Collector::start().await;
    let (address, log) = interceptor(echo(&PLACES)).await;
    let remote = HttpFake::start(failing(&echo(&PLACES))).await;
    let hook =
        format!("http://u:{}@{address}/hook?key={}", in_url(&secret("hook-login")), in_url(&secret("hook-query")));
    let entries = json!([{ "use": hook, "secrets": ["tenant"] }]);
    let child =
        json!({ "calls": { "ok": ["default"], "rpc": [{ "error": { "code": -1, "message": echo(&PLACES) } }] } });
    let setup = telling(Setup::new(), &collector).interceptors(entries);
    let child = StdioFake::new(setup.home(), "child", child);
    let entry = remote.entry_with(json!({ "headers": { "X-Key": secret("header") } }));
    let caribou = setup.server("far", entry).server("child", child.entry()).start().await;
    let mut shown = Shown::default();
    fail(&caribou, "far", "ann", &mut shown).await;
    for (tool, say) in
        [("far_ok", "deny"), ("far_ok", "illegal"), ("far_ok", "nonsense"), ("far_ok", "unknown"), ("child_rpc", "")]
    {
        let body = json!({ "name": tool, "arguments": { "say": say }, "context": { "secrets": { "tenant": secret("request-secret") } } });
        let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
        assert!(answer.status >= 400, "{answer:?}");
        shown.answer(&format!("{tool} {say}"), &answer);
    }
    over_grpc(&caribou, "far_rpc", "ann", &mut shown).await;
    look(&caribou, &mut shown).await;
    end(caribou, &collector, &mut shown).await;
    assert!(was_sent(&log, "request-secret") && !was_sent(&log, "unused-secret"));
    assert!(was_sent(&remote.log(), "hook-header") && was_sent(&remote.log(), "header"));
    shown.assert_none_of(&named(&PLACES));
    shown.assert_none_of(&named(&["argument", "unused-secret"]));
}

/// Contract 1.8 and 7.7: what users bring, in a process that dies and comes back.
#[tokio::test]
async fn personal_connections_are_shown_to_nobody_and_lie_nowhere_in_clear() {
    const PLACES: [&str; 4] = ["own-login", "own-query", "own-header", "refused-definition"];
    let collector = Collector::start().await;
    let remote = HttpFake::start(failing(&echo(&PLACES))).await;
    let keys = Setup::new().command(&["keys", "generate"]).output().await.unwrap();
    let key = String::from_utf8(keys.stdout).unwrap().trim().to_owned();
    let caribou = telling(Setup::new(), &collector).variable("CARIBOU_CREDENTIALS_KEY", &key).start().await;
    let url = remote.entry()["url"]
        .as_str()
        .unwrap()
        .replace("http://", &format!("http://u:{}@", in_url(&secret("own-login"))));
    let url = format!("{url}?key={}", in_url(&secret("own-query")));
    let definition = json!({ "type": "http", "url": url, "headers": { "Authorization": format!("Bearer {}", secret("own-header")) } });
    let mut shown = Shown::default();
    let put = caribou.request("PUT", "/api/users/ann/mcp/connections/mine").json(&definition);
    let mut made = caribou.send(put).await.json();
    assert!(made["definition"].as_object_mut().unwrap().remove("url").is_some(), "the owner is shown the address");
    shown.add("the connection", made.to_string());
    for refused in [
        json!({ "url": secret("refused-definition") }),
        json!({ "url": 7, "headers": secret("refused-definition") }),
        json!({ "url": "http://h", "headers": { "X": [secret("refused-definition")] }, secret("refused-definition"): 1 }),
    ] {
        let put = caribou.request("PUT", "/api/users/ann/mcp/connections/odd").json(&refused);
        let answer = caribou.send(put).await;
        assert_eq!(answer.status, 422, "{answer:?}");
        shown.answer("a refused definition", &answer);
    }
    fail(&caribou, "mine", "ann", &mut shown).await;
    let home = caribou.kill().await;
    shown.add("the log", std::fs::read(home.join("caribou.log")).unwrap());
    shown.folder(&home.join("data"));

    let again = telling(Setup::new(), &collector).variable("CARIBOU_CREDENTIALS_KEY", &key);
    let data = home.join("data").display().to_string();
    let again = again.variable("CARIBOU_DATA_DIR", &data).start().await;
    fail(&again, "mine", "ann", &mut shown).await;
    shown.answer("the list", &again.get("/api/users/bob/mcp/connections").await);
    for path in ["/metrics", "/api/mcp/audit", "/api/mcp/sessions", "/api/mcp/tools?user_id=ann"] {
        shown.answer(path, &again.get(path).await);
    }
    end(again, &collector, &mut shown).await;
    shown.folder(&home.join("data"));
    for place in ["own-login", "own-query", "own-header"] {
        assert!(was_sent(&remote.log(), place), "{place} was not in use");
    }
    shown.assert_none_of(&named(&PLACES));
    shown.assert_none_of(&[("the key".to_owned(), key)]);
}
