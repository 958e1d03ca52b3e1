//! Chains of refresh tokens that outlive the process (contract 7.5, 7.6), and the doors to them.

use std::time::Duration;

use caribou_tests::fake::TokenRequest;
use caribou_tests::{Caribou, HttpFake, Setup, TokenFake, eventually};
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};

const SOON: Duration = Duration::from_secs(20);

const KEY: &str = "CARIBOU_CREDENTIALS_KEY";

/// A server with a rotating refresh token, and a database that several lives share.
struct Stand {
    fake: HttpFake,
    tokens: TokenFake,
    database: Setup,
}

impl Stand {
    async fn new() -> Self {
        let (fake, tokens) =
            (HttpFake::start(json!({ "calls": { "t": [{ "text": "done" }] } })).await, TokenFake::start().await);
        tokens.be_strict(Duration::from_secs(3_600), Duration::ZERO);
        tokens.protect(&fake);
        Self { fake, tokens, database: Setup::new() }
    }

    fn setup(&self) -> Setup {
        let address = format!("sqlite:{}", self.database.home().join("shared.db").display());
        let (own, other) = (self.entry(), HttpFake::entry(&self.fake));
        let setup = Setup::new().server("fake", own).server("other", other);
        let data = self.database.home().join("data");
        setup.variable("CARIBOU_DATABASE_URL", &address).variable("CARIBOU_DATA_DIR", &data.display().to_string())
    }

    fn entry(&self) -> Value {
        self.fake.entry_with(json!({ "oauth": self.tokens.refreshing(json!({ "refresh_skew_seconds": 0 })) }))
    }

    fn presented(&self) -> Vec<String> {
        presented(&self.tokens)
    }
}

/// The refresh tokens that were shown to it.
fn presented(tokens: &TokenFake) -> Vec<String> {
    let presented = |request: &TokenRequest| request.field("refresh_token").to_owned();
    tokens.requests().iter().map(presented).collect()
}

/// A key as `caribou keys generate` prints it.
async fn key() -> String {
    let printed = Setup::new().command(&["keys", "generate"]).output().await.unwrap();
    String::from_utf8(printed.stdout).unwrap().trim_end().to_owned()
}

async fn called(caribou: &Caribou) {
    let answer = caribou.call("fake_t", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn chains(caribou: &Caribou) -> Vec<Value> {
    let answer = caribou.get("/api/mcp/oauth").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.body.contains("SECRET"), "{answer:?}");
    answer.json()["chains"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_chain_outlives_the_process_and_stands_sealed_in_the_database() {
    // Contract 7.5, stored, seed, before refreshing; invariants O2 and O3.
    let stand = Stand::new().await;
    let first = stand.setup().start().await;
    called(&first).await;
    assert_eq!(chains(&first).await[0]["generation"], 1);
    assert_eq!(first.post("/api/mcp/oauth/fake/refresh", "").await.status, 200);
    first.stop().await;
    for file in std::fs::read_dir(stand.database.home().path()).unwrap() {
        let path = file.unwrap().path();
        let text = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        assert!(!text.windows(6).any(|part| part == b"SECRET"), "{}", path.display());
    }
    let second = stand.setup().start().await;
    called(&second).await;
    assert_eq!(stand.presented(), ["rt-SECRET-1", "rt-SECRET-2"], "the stored access token serves");
    assert_eq!(second.post("/api/mcp/oauth/fake/refresh", "").await.status, 200);
    assert_eq!(stand.presented(), ["rt-SECRET-1", "rt-SECRET-2", "rt-SECRET-3"]);
    assert_eq!(stand.tokens.judgement().0, 0);
}

#[tokio::test]
async fn saving_deletes_the_chain_of_a_server_that_is_gone_and_switching_off_keeps_it() {
    // Contract 7.6.
    let stand = Stand::new().await;
    let caribou = stand.setup().start().await;
    called(&caribou).await;
    let switch = |enabled: bool| json!({ "server_name": "fake", "enabled": enabled }).to_string();
    for enabled in [false, true] {
        let request = caribou.request("PATCH", "/api/mcp/config").body(switch(enabled));
        let answer = caribou.send(request.header("content-type", "application/json")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(chains(&caribou).await.len(), 1, "{enabled}");
    }
    let removed = caribou.delete("/api/mcp/config/servers/fake").await;
    assert!(removed.status < 300, "{removed:?}");
    eventually(SOON, "the end of the row", async || chains(&caribou).await.is_empty().then_some(())).await;
}

#[tokio::test]
async fn chains_are_shown_refreshed_and_forgotten_from_the_command_line() {
    let stand = Stand::new().await;
    let caribou = stand.setup().start().await;
    called(&caribou).await;
    let run = async |words: &[&str]| {
        let mut line = vec!["oauth"];
        line.extend(words);
        line.extend(["--server", caribou.url()]);
        let done = Setup::new().command(&line).output().await.unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(!said.contains("SECRET"), "{said}");
        (done.status.success(), said)
    };
    let (is_done, said) = run(&["list"]).await;
    assert!(is_done && said.contains("fake") && said.contains("idle"), "{said}");
    let (is_done, said) = run(&["refresh", "fake"]).await;
    assert!(is_done && said.contains("a new access token"), "{said}");
    let (is_done, said) = run(&["show", "fake"]).await;
    assert!(is_done && said.contains("generation: 2") && said.contains("provider rotates: yes"), "{said}");
    let (is_done, said) = run(&["refresh", "other"]).await;
    assert!(!is_done && said.contains("no `oauth` in force"), "{said}");
    let (is_done, said) = run(&["forget", "fake"]).await;
    assert!(is_done, "{said}");
    let (is_done, said) = run(&["forget", "fake"]).await;
    assert!(!is_done && said.contains("there is no token chain"), "{said}");
    assert!(chains(&caribou).await.is_empty());
}

#[tokio::test]
async fn with_another_key_the_seed_is_tried_once_and_the_error_says_what_every_instance_needs() {
    // Contract 7.5, invalid_grant after falling back to the seed.
    let stand = Stand::new().await;
    let (old, new) = (key().await, key().await);
    let first = stand.setup().variable(KEY, &old).start().await;
    called(&first).await;
    first.stop().await;
    let other = stand.setup().variable(KEY, &new).start().await;
    for _ in 0..3 {
        let answer = other.call("fake_t", json!({})).await;
        assert_ne!(answer.status, 200, "{answer:?}");
        let detail = answer.detail();
        for word in ["`fake`", KEY, "every instance needs the same", "oauth.refresh_token"] {
            assert!(detail.contains(word), "{word}: {detail}");
        }
        assert!(!detail.contains("SECRET") && !detail.contains(&new) && !detail.contains(&old), "{detail}");
    }
    assert_eq!(stand.presented(), ["rt-SECRET-1", "rt-SECRET-1"], "once in vain, and no more");
    assert_eq!(chains(&other).await[0]["state"], "idle", "nothing ends for those who have the key");
    other.stop().await;
    called(&stand.setup().variable(KEY, &old).start().await).await;
    assert_eq!(stand.presented().len(), 2);
}

#[tokio::test]
async fn a_token_that_was_moved_to_another_row_is_not_read() {
    // Invariant O3: what is encrypted belongs to its row.
    let stand = Stand::new().await;
    let second = TokenFake::start().await;
    second.be_strict(Duration::from_secs(3_600), Duration::ZERO);
    let entry = stand.fake.entry_with(json!({ "oauth": second.refreshing(json!({ "refresh_skew_seconds": 0 })) }));
    let setup = || stand.setup().server("second", entry.clone());
    let first = setup().start().await;
    for server in ["fake", "second"] {
        assert_eq!(first.post(&format!("/api/mcp/oauth/{server}/refresh"), "").await.status, 200);
    }
    first.stop().await;
    let before = (stand.presented().len(), presented(&second).len());
    let address = format!("sqlite:{}", stand.database.home().join("shared.db").display());
    let mut database = SqliteConnection::connect(&address).await.unwrap();
    let moved = "UPDATE mcp_oauth_chain SET (refresh_ct, access_ct) = (SELECT refresh_ct, access_ct
         FROM mcp_oauth_chain WHERE connection = 'fake') WHERE connection = 'second'";
    assert_eq!(sqlx::query(moved).execute(&mut database).await.unwrap().rows_affected(), 1);
    database.close().await.unwrap();
    let next = setup().start().await;
    let refused = async || Some(next.post("/api/mcp/oauth/second/refresh", "").await).filter(|one| one.status == 403);
    let answer = eventually(SOON, "that it is told", refused).await;
    assert!(answer.detail().contains("belongs to another row"), "{answer:?}");
    assert_eq!(presented(&second)[before.1..], ["rt-SECRET-1"], "its own seed, and nothing of the other row's");
    assert_eq!(next.post("/api/mcp/oauth/fake/refresh", "").await.status, 200);
    assert_eq!(stand.presented().len(), before.0 + 1);
}

#[tokio::test]
async fn the_chain_of_a_personal_connection_goes_with_it() {
    // Contract 7.5, row identity; 7.6, edited or deleted personal connection.
    let (fake, tokens) =
        (HttpFake::start(json!({ "calls": { "t": [{ "text": "done" }] } })).await, TokenFake::start().await);
    let caribou = Setup::new().variable("CARIBOU_NETWORK_ALLOW_CIDRS", "127.0.0.0/8").start().await;
    let put = async |more: Value| {
        let mut entry = fake.entry_with(json!({ "oauth": tokens.refreshing(json!({ "refresh_skew_seconds": 0 })) }));
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = caribou.request("PUT", "/api/users/ann/mcp/connections/mine").body(entry.to_string());
        let answer = caribou.send(request.header("content-type", "application/json")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["server"].as_str().unwrap().to_owned()
    };
    let call = async || {
        let body = json!({ "name": "mine_t", "arguments": {}, "user_id": "ann", "thread_id": "t" });
        caribou.post("/api/mcp/tools/call", body.to_string()).await.status
    };
    let rows = async || {
        let chains = chains(&caribou).await;
        chains.iter().filter_map(|chain| Some(chain["server"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    let first = put(json!({})).await;
    assert_eq!(call().await, 200);
    assert_eq!(rows().await, std::slice::from_ref(&first), "one for each connection, by its runtime name");
    assert_eq!(put(json!({ "enabled": false })).await, first, "switched off, it is the same");
    assert_eq!(rows().await, std::slice::from_ref(&first));
    let second = put(json!({ "headers": { "A": "b" } })).await;
    assert_ne!(first, second);
    eventually(SOON, "the end of its former row", async || (!rows().await.contains(&first)).then_some(())).await;
    assert_eq!(call().await, 200);
    assert_eq!(rows().await, [second]);
    assert_eq!(presented(&tokens), ["rt-SECRET-1", "rt-SECRET-1"], "another name, and from the seed again");
    let deleted = caribou.delete("/api/users/ann/mcp/connections/mine").await;
    assert!(deleted.status < 300, "{deleted:?}");
    eventually(SOON, "the end of the last row", async || rows().await.is_empty().then_some(())).await;
}

#[tokio::test]
async fn the_webhook_is_told_once_that_a_chain_needs_a_person() {
    let (stand, hook) = (Stand::new().await, TokenFake::start().await);
    let yaml = format!("mcp_tasks: {{notify: {{webhook: {{url: \"{}\"}}}}}}", hook.url());
    let caribou = stand.setup().settings(&yaml).start().await;
    called(&caribou).await;
    hook.then(500, &json!({}));
    stand.tokens.then(400, &json!({ "error": "invalid_grant" }));
    assert_eq!(caribou.post("/api/mcp/oauth/fake/refresh", "").await.status, 403);
    eventually(SOON, "what is told, told again", async || (hook.requests().len() == 2).then_some(())).await;
    assert_eq!(caribou.post("/api/mcp/oauth/fake/refresh", "").await.status, 403);
    let told = hook.requests();
    assert_eq!(told.len(), 2, "the end is told, and nothing that comes after it");
    for told in &told {
        let body: Value = serde_json::from_str(&told.raw).unwrap();
        assert_eq!((&body["type"], &body["data"]["server"]), (&json!("mcp_oauth.reauth_needed"), &json!("fake")));
        assert_eq!(body["data"]["generation"], 1, "{body}");
        assert!(body["data"]["reason"].as_str().unwrap().contains("invalid_grant"), "{body}");
        assert!(!told.raw.contains("SECRET"), "{body}");
    }
    let keys = [&told[0].headers["webhook-id"], &told[1].headers["webhook-id"]];
    assert!(keys[0] == keys[1] && keys[0].starts_with("oauth-chain-"), "{keys:?}");
}

#[tokio::test]
async fn a_command_beside_a_deployment_spends_no_refresh_token() {
    // Invariant O1: it has no record of which one comes next.
    let stand = Stand::new().await;
    let caribou = stand.setup().start().await;
    called(&caribou).await;
    let before = stand.presented();
    for command in [&["tools", "call", "fake_t"][..], &["tools", "list"], &["servers"]] {
        let output = tokio::time::timeout(SOON, stand.setup().command(command).output()).await.unwrap().unwrap();
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if command[1..].first() == Some(&"call") {
            assert!(!output.status.success() && told.contains("--server"), "{told}");
        }
    }
    assert_eq!(stand.presented(), before, "it was shown the token of a replica");
    // The chain goes on where the replica left it.
    called(&caribou).await;
}
