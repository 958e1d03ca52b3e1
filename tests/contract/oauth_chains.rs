//! Chains of refresh tokens that outlive the process (contract 7.5, 7.6), and the doors to them.

use std::time::Duration;

use caribou_tests::fake::TokenRequest;
use caribou_tests::{Caribou, HttpFake, Setup, TokenFake, eventually};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

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
        let presented = |request: &TokenRequest| request.field("refresh_token").to_owned();
        self.tokens.requests().iter().map(presented).collect()
    }
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
