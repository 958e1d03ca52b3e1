//! The routes of the console: files for everybody, events for whoever is known, nothing when it is switched off.

use std::time::Duration;

use caribou_tests::{Caribou, Setup, StdioFake};
use serde_json::{Value, json};

/// How long an event may take on a loaded machine.
const SOON: Duration = Duration::from_secs(30);

/// Makes a key for the user that `words` begin with.
async fn key(setup: &Setup, words: &[&str]) -> String {
    let line = [&["keys", "create", "--json", "--user"], words].concat();
    let created: Value = serde_json::from_slice(&setup.command(&line).output().await.unwrap().stdout).unwrap();
    created["key"].as_str().unwrap().to_owned()
}

fn with_fake() -> Setup {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "count": [{ "text": "$N" }] } }));
    setup.server("fake", fake.entry())
}

/// An open stream of events.
struct Events {
    response: reqwest::Response,
    text: String,
}

impl Events {
    async fn open(caribou: &Caribou, key: &str) -> Self {
        let request = caribou.request("GET", "/api/console/events").header("authorization", format!("Bearer {key}"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next event: its name and its sections.
    async fn next(&mut self) -> Option<(String, Vec<String>)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let Some((name, data)) = event.strip_prefix("event: ").and_then(|event| event.split_once("\ndata: "))
                else {
                    continue;
                };
                let data: Value = serde_json::from_str(data).unwrap();
                let sections = data["sections"].as_array().unwrap();
                let sections = sections.iter().map(|section| section.as_str().unwrap().to_owned()).collect();
                return Some((name.to_owned(), sections));
            }
            let piece = tokio::time::timeout(SOON, self.response.chunk()).await.expect("something comes").unwrap()?;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Reads on until `section` has changed.
    async fn until(&mut self, section: &str) {
        loop {
            let (name, sections) = self.next().await.expect("the stream goes on");
            if name == "changed" && sections.iter().any(|one| one == section) {
                return;
            }
        }
    }
}

#[tokio::test]
async fn files_are_served_to_everybody_and_run_nothing_but_themselves() {
    let caribou = with_fake().variable("CARIBOU_AUTH_MODE", "api_keys").start().await;
    let page = caribou.request("GET", "/console").send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'self';") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let text = page.text().await.unwrap();
    for name in text.split("\"console/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let file = caribou.request("GET", &format!("/console/{name}")).send().await.unwrap();
        assert_eq!(
            (file.status().as_u16(), &file.headers()["x-content-type-options"]),
            (200, &"nosniff".parse().unwrap())
        );
    }
    assert_eq!(caribou.get("/console/none.js").await.status, 404);
    for path in ["/api/console/events", "/api/me"] {
        assert_eq!(caribou.get(path).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn a_console_that_is_switched_off_says_so() {
    let caribou = with_fake().settings("console: {enabled: false}\n").start().await;
    for path in ["/console", "/console/main.js", "/api/console/events"] {
        let answer = caribou.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"), "{path}");
        assert!(answer.detail().contains("console.enabled"), "{answer:?}");
    }
    assert_eq!(caribou.get("/api/me").await.status, 200, "it is no part of the console");
}

#[tokio::test]
async fn a_caller_is_told_who_it_is() {
    let setup = with_fake().variable("CARIBOU_AUTH_MODE", "api_keys");
    let (admin, ann) = (key(&setup, &["root", "--role", "admin"]).await, key(&setup, &["ann"]).await);
    let agent = key(&setup, &["deer", "--role", "agent"]).await;
    let caribou = setup.start().await;
    for (key, user, roles) in [
        (&admin, "root", json!(["admin", "user"])),
        (&agent, "deer", json!(["agent", "user"])),
        (&ann, "ann", json!(["user"])),
    ] {
        let told =
            caribou.send(caribou.request("GET", "/api/me").header("authorization", format!("Bearer {key}"))).await;
        let told = told.json();
        assert_eq!((&told["user_id"], &told["roles"]), (&json!(user), &roles));
        assert!(key.contains(told["principal"].as_str().unwrap()), "a key is named by its id");
    }
    let alone = with_fake().start().await.get("/api/me").await.json();
    assert_eq!(alone, json!({ "principal": "local", "user_id": "default", "roles": ["admin", "agent", "user"] }));
}

#[tokio::test]
async fn pages_are_told_what_changed_and_nobody_is_told_of_others() {
    // Invariant P1.
    let setup = with_fake().variable("CARIBOU_AUTH_MODE", "api_keys");
    let (admin, ann) = (key(&setup, &["root", "--role", "admin"]).await, key(&setup, &["ann"]).await);
    let caribou = setup.start().await;
    let (mut admins, mut anns) = (Events::open(&caribou, &admin).await, Events::open(&caribou, &ann).await);
    let (name, told) = admins.next().await.unwrap();
    assert_eq!(name, "begin");
    assert_eq!(told, ["replicas", "servers", "sessions", "tasks", "chains", "audit", "configuration"]);
    assert_eq!(anns.next().await.unwrap(), ("begin".to_owned(), vec!["servers".to_owned()]));
    let call = caribou.request("POST", "/api/mcp/tools/call").header("authorization", format!("Bearer {admin}"));
    assert_eq!(caribou.send(call.json(&json!({ "name": "fake_count" }))).await.status, 200);
    admins.until("sessions").await;
    let switch = caribou.request("PATCH", "/api/mcp/config").header("authorization", format!("Bearer {admin}"));
    let switch = switch.json(&json!({ "server_name": "fake", "enabled": false }));
    assert_eq!(caribou.send(switch).await.status, 200);
    admins.until("configuration").await;
    loop {
        let (name, told) = anns.next().await.unwrap();
        assert_eq!((name.as_str(), told), ("changed", vec!["servers".to_owned()]));
        let servers = caribou.request("GET", "/api/mcp/servers").header("authorization", format!("Bearer {ann}"));
        if caribou.send(servers).await.json()["servers"][0]["state"] == "disabled" {
            break;
        }
    }
    // An open page does not hold up the end of a replica.
    let begun = std::time::Instant::now();
    let ended = tokio::spawn(async move { while admins.next().await.is_some() {} });
    caribou.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    tokio::time::timeout(SOON, ended).await.expect("the stream ends").unwrap();
}
