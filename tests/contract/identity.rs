//! Callers that are told apart, against the real binary (contract 2.1, architecture §2 "identity of callers").

use std::process::Output;
use std::time::{Duration, Instant};

use caribou_tests::{Answer, Caribou, Setup, StdioFake, eventually};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// How long a command may take on a loaded machine.
const ENOUGH: Duration = Duration::from_secs(60);

/// One that asks for API keys, with a server whose tools are `fake_count` and `fake_echo`.
fn with_keys() -> Setup {
    let setup = Setup::new().variable("CARIBOU_AUTH_MODE", "api_keys");
    let fake =
        StdioFake::new(setup.home(), "fake", json!({ "calls": { "count": [{ "text": "$N" }], "echo": ["default"] } }));
    setup.server("fake", fake.entry())
}

async fn run(setup: &Setup, words: &[&str]) -> Output {
    tokio::time::timeout(ENOUGH, setup.command(words).output()).await.expect("the command ends").unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Makes a key; its id and the key.
async fn create(setup: &Setup, words: &[&str]) -> (String, String) {
    let created = run(setup, &[&["keys", "create", "--json"], words].concat()).await;
    assert!(created.status.success(), "{}", text(&created.stderr));
    let key: Value = serde_json::from_slice(&created.stdout).unwrap();
    (key["id"].as_str().unwrap().to_owned(), key["key"].as_str().unwrap().to_owned())
}

async fn ask(caribou: &Caribou, key: &str, method: &str, path: &str, body: Value) -> Answer {
    let request = caribou.request(method, path).header("authorization", format!("Bearer {key}"));
    caribou.send(if body.is_null() { request } else { request.json(&body) }).await
}

async fn call(caribou: &Caribou, key: &str, body: Value) -> Answer {
    ask(caribou, key, "POST", "/api/mcp/tools/call", body).await
}

#[tokio::test]
async fn without_a_valid_key_nothing_but_health_and_metrics_is_answered() {
    // Contract 2.1, auth middleware.
    let caribou = with_keys().variable("RUST_LOG", "trace").start().await;
    for path in ["/healthz", "/metrics", "/openapi.json"] {
        assert_eq!(caribou.get(path).await.status, 200, "{path}");
    }
    let stranger = format!("cbk_0123456789abcdef_{}", "A".repeat(43));
    for answer in [
        caribou.get("/api/mcp/tools").await,
        caribou.call("fake_count", json!({})).await,
        ask(&caribou, &stranger, "GET", "/api/mcp/tools", Value::Null).await,
        ask(&caribou, "hunter2", "GET", "/api/mcp/config", Value::Null).await,
    ] {
        assert_eq!((answer.status, answer.code().as_str()), (401, "denied"), "{answer:?}");
        assert!(!answer.body.contains("hunter2") && !answer.body.contains(&stranger), "invariant O3: {answer:?}");
    }
    let response = caribou.request("GET", "/api/mcp/tools").send().await.unwrap();
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    let log = caribou.log();
    assert!(!log.contains("hunter2") && !log.contains(&stranger), "invariant O3");
}

#[tokio::test]
async fn a_user_sees_and_calls_its_own_and_an_admin_manages_the_configuration() {
    // Contract 2.1, admin routes, admin check order and thread routes; invariant P1.
    let setup = with_keys();
    let (_, admin) = create(&setup, &["--user", "root", "--role", "admin"]).await;
    let (_, ann) = create(&setup, &["--user", "ann", "--label", "laptop"]).await;
    let (_, bob) = create(&setup, &["--user", "bob"]).await;
    let (_, agent) = create(&setup, &["--user", "deer", "--role", "agent"]).await;
    let caribou = setup.start().await;
    let in_thread = |user: Value| json!({ "name": "fake_count", "arguments": {}, "thread_id": "t", "user_id": user });

    assert_eq!(call(&caribou, &ann, in_thread(Value::Null)).await.text(), "1");
    assert_eq!(call(&caribou, &ann, in_thread("ann".into())).await.text(), "2");
    assert_eq!(call(&caribou, &bob, in_thread(Value::Null)).await.text(), "1", "another user's thread of that name");
    assert_eq!(call(&caribou, &agent, in_thread("ann".into())).await.text(), "3", "an agent acts for any user");
    for (key, user) in [(&ann, "bob"), (&admin, "ann")] {
        let refused = call(&caribou, key, in_thread(user.into())).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "denied"), "{refused:?}");
    }

    let refused = ask(&caribou, &ann, "GET", "/api/mcp/config", Value::Null).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "denied"));
    assert_eq!(refused.detail(), "Admin privileges required to manage MCP configuration.");
    let malformed = ask(&caribou, &ann, "PUT", "/api/mcp/config", json!({ "mcp_servers": 7 })).await;
    assert_eq!(malformed.status, 422, "told before 403");
    let switch = json!({ "server_name": "fake", "enabled": false });
    assert_eq!(ask(&caribou, &ann, "PATCH", "/api/mcp/config", switch.clone()).await.status, 403);
    assert_eq!(ask(&caribou, &ann, "POST", "/api/mcp/cache/reset", Value::Null).await.status, 403);

    call(&caribou, &bob, in_thread(Value::Null)).await;
    let closed = ask(&caribou, &ann, "DELETE", "/api/threads/t/mcp-sessions?user_id=bob", Value::Null).await;
    assert_eq!(closed.status, 403, "{closed:?}");
    let users = |answer: &Answer| {
        let sessions = answer.json()["sessions"].as_array().cloned().unwrap();
        sessions.iter().map(|session| session["user_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let seen = ask(&caribou, &ann, "GET", "/api/mcp/sessions", Value::Null).await;
    assert!(users(&seen).iter().all(|user| user == "ann"), "{seen:?}");
    let all = ask(&caribou, &admin, "GET", "/api/mcp/sessions", Value::Null).await;
    assert!(users(&all).contains(&"bob".to_owned()), "{all:?}");
    assert_eq!(ask(&caribou, &admin, "PATCH", "/api/mcp/config", switch).await.status, 200);
}

#[tokio::test]
async fn a_key_opens_only_the_tools_it_names() {
    let setup = with_keys();
    let (_, reader) = create(&setup, &["--user", "ann", "--allow", "fake_*", "--deny", "*_echo"]).await;
    let caribou = setup.start().await;
    let listed = ask(&caribou, &reader, "GET", "/api/mcp/tools", Value::Null).await;
    let names: Vec<_> = listed.json()["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["fake_count"], "{listed:?}");
    let refused = call(&caribou, &reader, json!({ "name": "fake_echo" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "denied"), "{refused:?}");
}

#[tokio::test]
async fn a_revoked_key_is_refused_within_seconds_and_keys_are_listed_without_themselves() {
    let setup = with_keys();
    let (id, key) = create(&setup, &["--user", "ann", "--label", "laptop", "--expires", "30d"]).await;
    let caribou = setup.start().await;
    assert_eq!(ask(&caribou, &key, "GET", "/api/mcp/sessions", Value::Null).await.status, 200);
    let data = caribou.home().join("data");
    let beside = Setup::new().variable("CARIBOU_DATA_DIR", data.to_str().unwrap());
    let revoked = run(&beside, &["keys", "revoke", &id]).await;
    assert_eq!(text(&revoked.stdout), format!("revoked {id}\n"), "{}", text(&revoked.stderr));
    let begun = Instant::now();
    eventually(ENOUGH, "the key is refused", async || {
        (ask(&caribou, &key, "GET", "/api/mcp/sessions", Value::Null).await.status == 401).then_some(())
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let again = run(&beside, &["keys", "revoke", &id]).await;
    assert_eq!(again.status.code(), Some(1));
    let listed = run(&beside, &["keys", "list"]).await;
    let shown = text(&listed.stdout);
    assert!(shown.contains(&id) && shown.contains("laptop") && shown.contains("revoked"), "{shown}");
    assert!(!shown.contains("cbk_"), "invariant O3: {shown}");
    let file = std::fs::read(data.join("caribou.db")).unwrap();
    assert!(!file.windows(key.len()).any(|bytes| bytes == key.as_bytes()), "the key itself is stored");
}

#[tokio::test]
async fn commands_present_a_token_to_the_replica_they_ask() {
    let setup = with_keys();
    let (_, key) = create(&setup, &["--user", "ann"]).await;
    let caribou = setup.start().await;
    let beside = Setup::new().variable("CARIBOU_SERVER", caribou.url());
    let refused = run(&beside, &["tools", "list"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("(denied)"), "{}", text(&refused.stderr));
    let listed = run(&beside.variable("CARIBOU_TOKEN", &key), &["tools", "list"]).await;
    assert!(text(&listed.stdout).contains("fake_count"), "{}", text(&listed.stderr));
}

#[tokio::test]
async fn a_caller_that_asks_too_often_is_told_to_wait() {
    let setup = with_keys().settings("auth: {rate_limit: {calls_per_second: 0.01, burst: 2}}\n");
    let (_, ann) = create(&setup, &["--user", "ann"]).await;
    let (_, bob) = create(&setup, &["--user", "bob"]).await;
    let caribou = setup.start().await;
    for _ in 0..2 {
        assert_eq!(ask(&caribou, &ann, "GET", "/api/mcp/sessions", Value::Null).await.status, 200);
    }
    let request = caribou.request("GET", "/api/mcp/sessions").header("authorization", format!("Bearer {ann}"));
    let refused = request.send().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 50);
    assert_eq!(Answer::read(refused).await.code(), "busy");
    assert_eq!(ask(&caribou, &bob, "GET", "/api/mcp/sessions", Value::Null).await.status, 200);
}

#[tokio::test]
async fn a_replica_that_tells_nobody_apart_listens_on_loopback_only() {
    // Architecture §2, identity of callers.
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = run(&Setup::new(), &["serve", "--listen", address]).await;
        assert_eq!(refused.status.code(), Some(1), "{address}");
        let told = text(&refused.stderr);
        assert!(refused.stdout.is_empty() && told.contains("auth.mode") && told.contains("api_keys"), "{told}");
    }
    let setup = with_keys();
    let (_, key) = create(&setup, &["--user", "ann"]).await;
    let mut command = setup.command(&["serve", "--listen", "0.0.0.0:0"]);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = tokio::time::timeout(ENOUGH, lines.next_line()).await.unwrap().unwrap().unwrap();
    let port = first.rsplit(':').next().unwrap();
    let client = caribou_tests::network::http_client();
    let request = client.get(format!("http://127.0.0.1:{port}/api/mcp/sessions")).header("host", "caribou.example");
    let answer = request.header("authorization", format!("Bearer {key}")).send().await.unwrap();
    assert_eq!(answer.status(), 200, "any host");
    child.kill().await.unwrap();
}

/// PKCS8 of an Ed25519 key but for its 32 bytes (RFC 8410, section 7).
const ED25519: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// An issuer of tokens with a key of its own.
pub(crate) struct Issuer {
    key: EncodingKey,
    kid: &'static str,
}

impl Issuer {
    pub(crate) fn new(kid: &'static str, seed: u8) -> Self {
        Self { key: EncodingKey::from_ed_der(&[ED25519, &[seed; 32]].concat()), kid }
    }

    pub(crate) fn key_set(&self) -> String {
        let mut key = serde_json::to_value(Jwk::from_encoding_key(&self.key, Algorithm::EdDSA).unwrap()).unwrap();
        key["kid"] = self.kid.into();
        json!({ "keys": [key] }).to_string()
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.kid.to_owned()), ..Header::new(Algorithm::EdDSA) };
        encode(&header, claims, &self.key).unwrap()
    }
}

#[tokio::test]
async fn a_token_of_the_issuer_says_who_calls_and_in_which_roles() {
    // Contract 2.1, auth middleware: an invalid or expired token is refused.
    let issuer = Issuer::new("one", 7);
    let setup = Setup::new().settings(
        "auth:\n  mode: jwt\n  jwt:\n    jwks_file: keys.json\n    issuer: https://issuer.example\n    \
         audience: [caribou]\n    user_claim: email\n    roles_claim: realm_access.roles\n",
    );
    setup.home().write("keys.json", &issuer.key_set());
    let caribou = setup.start().await;
    let claims = |subject: &str, roles: &[&str], expiry: u64| {
        let email = format!("{subject}@example.org");
        json!({ "iss": "https://issuer.example", "aud": "caribou", "sub": subject, "email": email, "exp": expiry,
            "realm_access": { "roles": roles } })
    };
    let later = 4_102_444_800;
    let status = async |token: &str, path: &str| ask(&caribou, token, "GET", path, Value::Null).await.status;
    let ann = issuer.token(&claims("ann", &[], later));
    assert_eq!(status(&ann, "/api/mcp/sessions").await, 200);
    assert_eq!(status(&ann, "/api/mcp/tools?user_id=ann%40example.org").await, 200);
    assert_eq!(status(&ann, "/api/mcp/tools?user_id=bob").await, 403);
    assert_eq!(status(&ann, "/api/mcp/config").await, 403);
    assert_eq!(status(&issuer.token(&claims("root", &["admin"], later)), "/api/mcp/config").await, 200);
    assert_eq!(status(&issuer.token(&claims("ann", &[], 1_000_000_000)), "/api/mcp/sessions").await, 401);
    assert_eq!(status(&Issuer::new("one", 8).token(&claims("ann", &["admin"], later)), "/api/mcp/sessions").await, 401);

    // The issuer changes its key; the file is read again for a token that names it.
    let next = Issuer::new("two", 9);
    caribou.home().write("keys.json", &next.key_set());
    let token = next.token(&claims("ann", &[], later));
    eventually(ENOUGH, "the new key is believed", async || {
        (status(&token, "/api/mcp/sessions").await == 200).then_some(())
    })
    .await;
    assert!(!caribou.log().contains(&token), "invariant O3");
}

#[tokio::test]
async fn settings_that_tell_nobody_apart_end_the_start_with_what_is_missing() {
    let setup = Setup::new().variable("CARIBOU_AUTH_MODE", "jwt");
    let refused = run(&setup, &["serve", "--listen", "127.0.0.1:0"]).await;
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    for setting in ["auth.jwt.jwks_url", "auth.jwt.issuer", "auth.jwt.audience"] {
        assert!(told.contains(setting), "{told}");
    }
}
