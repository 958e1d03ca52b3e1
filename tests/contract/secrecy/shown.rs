//! The secrets, their spellings, servers that repeat them, and the search through all that was shown.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use caribou_proto::v1;
use caribou_proto::v1::tool_service_client::ToolServiceClient;
use caribou_tests::fake::{Log, Seen};
use caribou_tests::{Answer, Caribou, Setup, eventually};
use serde_json::{Value, json};

use super::collector::Collector;

pub(super) const SOON: Duration = Duration::from_secs(20);

/// The secret that stands at this place. It has characters that URLs, forms and Base64 treat in their own ways.
pub(super) fn secret(place: &str) -> String {
    format!("{place}/kanari+7~{place}")
}

/// As a URL holds it.
pub(super) fn in_url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

pub(super) fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What a server might say of it.
pub(super) fn spellings(text: &str) -> Vec<String> {
    let amid = |before: &str| format!("{before}{text}:rest");
    let url = in_url(text);
    let mut all = vec![text.to_owned(), url.to_lowercase(), url, hex(text).to_uppercase(), hex(text)];
    for before in ["", "u:", "user:", "u"] {
        all.extend([STANDARD.encode(amid(before)), URL_SAFE.encode(amid(before)), STANDARD.encode(text)]);
    }
    all
}

/// What tells that it is there: each spelling, of Base64 the part that is the same amid any text.
pub(super) fn traces(text: &str) -> Vec<String> {
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
pub(super) fn echo(places: &[&str]) -> String {
    let all: Vec<String> = places.iter().flat_map(|place| spellings(&secret(place))).collect();
    all.join(" ")
}

/// All that was shown, and where.
#[derive(Default)]
pub(super) struct Shown(pub(super) Vec<(String, String)>);

impl Shown {
    pub(super) fn add(&mut self, place: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((place.into(), String::from_utf8_lossy(&bytes.into()).into_owned()));
    }

    pub(super) fn answer(&mut self, place: &str, answer: &Answer) {
        self.add(format!("the answer to {place}, {}", answer.status), format!("{answer:?} {}", answer.body));
    }

    /// Adds every file below a folder but what the test wrote there itself.
    pub(super) fn folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                self.folder(&entry.path());
            } else {
                self.add(entry.path().display().to_string(), std::fs::read(entry.path()).unwrap());
            }
        }
    }

    pub(super) async fn command(&mut self, setup: &Setup, words: &[&str]) -> Option<i32> {
        let output = tokio::time::timeout(SOON * 3, setup.command(words).output()).await.unwrap().unwrap();
        self.add(format!("stdout of {words:?}"), output.stdout);
        self.add(format!("stderr of {words:?}"), output.stderr);
        output.status.code()
    }

    /// The places whose secret was shown, and where.
    fn leaks(&self, secrets: &[(String, String)]) -> Vec<String> {
        let mut leaks = Vec::new();
        for (name, value) in secrets {
            let traces = traces(value);
            for (place, text) in &self.0 {
                if let Some(at) = traces.iter().find_map(|trace| text.find(trace.as_str())) {
                    let before: String = text[..at].chars().rev().take(120).collect::<Vec<_>>().iter().rev().collect();
                    let after: String = text[at..].chars().take(80).collect();
                    leaks.push(format!("{name} in {place}: {before}{after}"));
                }
            }
        }
        leaks
    }

    pub(super) fn assert_none_of(&self, secrets: &[(String, String)]) {
        let leaks = self.leaks(secrets);
        assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    }
}

pub(super) fn named(places: &[&str]) -> Vec<(String, String)> {
    places.iter().map(|place| ((*place).to_owned(), secret(place))).collect()
}

/// Whether a server was sent it, in any part of a request.
pub(super) fn was_sent(log: &Log, place: &str) -> bool {
    let traces = traces(&secret(place));
    let holds = |text: &str| traces.iter().any(|trace| text.contains(trace.as_str()));
    let seen = |seen: &Seen| holds(&seen.raw) || holds(&seen.path) || seen.headers.values().any(|value| holds(value));
    log.all().iter().any(seen)
}

/// Tools that fail in every way with this text: as an error of JSON-RPC, as a refusal, as a redirect.
pub(super) fn failing(text: &str) -> Value {
    let status =
        |code: u16| json!([{ "status": { "code": code, "headers": { "content-type": "text/plain" }, "body": text } }]);
    let away = format!("http://127.0.0.1:1/{}?key={}", in_url(text), in_url(text));
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{text}\", resource_metadata=\"{away}\"");
    let wrong = json!({ text: text }).to_string();
    json!({ "calls": {
        "ok": [{ "text": "fine" }],
        "rpc": [{ "error": { "code": -32000, "message": text, "data": { "said": text, text: [text] } } }],
        "bad": status(400), "gone": status(500), "unauthorised": status(401), "forbidden": status(403),
        "challenged": [{ "status": { "code": 403, "headers": { "www-authenticate": challenge } } }],
        "moved": [{ "status": { "code": 307, "headers": { "location": away } } }],
        "garbage": [{ "status": { "code": 200, "headers": { "content-type": text }, "body": text } }],
        "wrong": [{ "status": { "code": 200, "headers": { "content-type": "application/json" }, "body": wrong } }],
    } })
}

pub(super) const FAILING: [&str; 9] =
    ["rpc", "bad", "gone", "unauthorised", "forbidden", "challenged", "moved", "garbage", "wrong"];

/// Everything an operator or caller can look at.
pub(super) async fn look(caribou: &Caribou, shown: &mut Shown) {
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
        "/api/me",
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
    // Contract 1.12: of a server, these members are shown to those who manage it.
    let mut config = caribou.get("/api/mcp/config").await.json();
    let servers = config["mcp_servers"].as_object_mut().map(|servers| servers.values_mut());
    for server in servers.into_iter().flatten().filter_map(Value::as_object_mut) {
        server.retain(|member, _| !["url", "command", "args"].contains(&member.as_str()));
        if let Some(oauth) = server.get_mut("oauth").and_then(Value::as_object_mut) {
            oauth.remove("token_url");
        }
    }
    shown.add("the configuration", config.to_string());
}

/// Calls a failing tool over gRPC, with progress and without, and adds what is said.
pub(super) async fn over_grpc(caribou: &Caribou, name: &str, user: &str, shown: &mut Shown) {
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
pub(super) async fn fail(caribou: &Caribou, server: &str, user: &str, shown: &mut Shown) {
    let given = json!({ "tenant": secret("request-secret"), "other": secret("unused-secret") });
    for tool in FAILING {
        let body = json!({
            "name": format!("{server}_{tool}"), "arguments": { "password": secret("argument") }, "user_id": user,
            "config": { "context": { "secrets": given } },
        });
        let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
        assert!(answer.status >= 400, "{server}_{tool}: {answer:?}");
        shown.answer(&format!("{server}_{tool}"), &answer);
    }
    let body = json!({ "name": format!("{server}_ok"), "user_id": user, "context": { "secrets": given } });
    let answer = caribou.post("/api/mcp/tools/call", body.to_string()).await;
    assert_eq!(answer.status, 200, "{server}_ok: {answer:?}");
}

/// A replica that tells as much as it can, on its log and to a collector, and serves gRPC too.
pub(super) fn telling(setup: Setup, collector: &Collector) -> Setup {
    setup
        .variable("RUST_LOG", "info,caribou=trace")
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .variable("CARIBOU_GRPC_LISTEN", "127.0.0.1:0")
        .variable("CARIBOU_NETWORK_ALLOW_CIDRS", "127.0.0.0/8")
}

/// Stops it and adds all that is left: log, spans, files.
pub(super) async fn end(caribou: Caribou, collector: &Collector, shown: &mut Shown) {
    let (_, home) = caribou.stop().await;
    let log = std::fs::read_to_string(home.join("caribou.log")).unwrap();
    shown.add("the log", log);
    let spans = eventually(SOON, "spans", async || Some(collector.exported()).filter(|spans| !spans.is_empty())).await;
    assert!(String::from_utf8_lossy(&spans).contains("call_tool"));
    shown.add("the spans", spans);
    if home.join("data").is_dir() {
        shown.folder(&home.join("data"));
    }
}
