//! Personal connections: servers that users bring for themselves, and the keys that encrypt what is stored of them
//! (contract 1.8, 1.12, 7.5, 7.7, 11.1; architecture.md §9 and §10).

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use caribou_tests::{Answer, Caribou, HttpFake, Postgres, Setup};
use serde_json::{Value, json};

const CANARY: &str = "canary-hunter2-canary";

const KEY: &str = "CARIBOU_CREDENTIALS_KEY";

fn path(user: &str, name: &str) -> String {
    format!("/api/users/{user}/mcp/connections/{name}")
}

/// A setup in which personal connections reach this machine.
fn setup() -> Setup {
    Setup::new().variable("CARIBOU_NETWORK_ALLOW_CIDRS", "127.0.0.0/8")
}

async fn fake() -> HttpFake {
    HttpFake::start(json!({ "calls": { "echo": ["default"] } })).await
}

async fn put(caribou: &Caribou, user: &str, name: &str, definition: &Value) -> Answer {
    put_if(caribou, user, name, definition, None).await
}

async fn put_if(caribou: &Caribou, user: &str, name: &str, definition: &Value, tag: Option<&str>) -> Answer {
    let request = caribou.request("PUT", &path(user, name)).header("content-type", "application/json");
    let request = tag.into_iter().fold(request, |request, tag| request.header("if-match", tag));
    caribou.send(request.body(definition.to_string())).await
}

async fn tools_of(caribou: &Caribou, user: &str) -> Value {
    caribou.get(&format!("/api/mcp/tools?user_id={user}")).await.json()
}

fn names(listed: &Value) -> BTreeSet<&str> {
    listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect()
}

async fn call_as(caribou: &Caribou, user: &str, name: &str) -> Answer {
    let body = json!({ "name": name, "arguments": {"a": 1}, "user_id": user, "thread_id": "t" });
    caribou.post("/api/mcp/tools/call", body.to_string()).await
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A key as `caribou keys generate` prints it.
async fn key() -> String {
    let printed = Setup::new().command(&["keys", "generate"]).output().await.unwrap();
    String::from_utf8(printed.stdout).unwrap().trim_end().to_owned()
}

/// Contract 5.2, visible name; 7.5, row identity; invariant P1.
#[tokio::test]
async fn a_personal_server_serves_its_owner_and_nobody_else_sees_it() {
    let (own, shared) = (fake().await, fake().await);
    let caribou = setup().server("shared", shared.entry()).start().await;
    let made = put(&caribou, "ann", "mine", &own.entry()).await;
    assert_eq!(made.status, 200, "{made:?}");
    let server = made.json()["server"].as_str().unwrap().to_owned();
    assert!(server.starts_with("personal_") && server.len() == 41, "{server}");

    let listed = tools_of(&caribou, "ann").await;
    assert_eq!(names(&listed), BTreeSet::from(["mine_echo", "shared_echo"]), "{listed}");
    let tool = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "mine_echo").unwrap();
    assert_eq!((&tool["server"], &tool["metadata"]["connection"]), (&json!(server), &json!("mine")));
    assert_eq!(names(&tools_of(&caribou, "bob").await), BTreeSet::from(["shared_echo"]));

    assert_eq!(call_as(&caribou, "ann", "mine_echo").await.status, 200);
    assert_eq!(own.log().received("tools/call").len(), 1);
    let stranger = call_as(&caribou, "bob", "mine_echo").await;
    assert_eq!((stranger.status, stranger.code().as_str()), (404, "not_found"), "{stranger:?}");
    assert_eq!(own.log().received("tools/call").len(), 1);
    assert_eq!(caribou.get("/api/users/bob/mcp/connections").await.json(), json!({ "connections": [] }));

    assert_eq!(caribou.delete(&path("ann", "mine")).await.status, 204);
    assert_eq!(call_as(&caribou, "ann", "mine_echo").await.status, 404);
    assert_eq!(caribou.delete(&path("ann", "mine")).await.code(), "not_found");
}

/// Invariant P1: a caller acts for itself, unless it is an agent.
#[tokio::test]
async fn another_user_may_not_look_at_them_and_an_agent_may() {
    let setup = setup().variable("CARIBOU_AUTH_MODE", "api_keys");
    let mut tokens = Vec::new();
    for arguments in [&["--user", "ann"][..], &["--user", "bob"], &["--user", "robot", "--role", "agent"]] {
        let words = [&["keys", "create"], arguments].concat();
        let made = setup.command(&words).output().await.unwrap();
        tokens.push(String::from_utf8_lossy(&made.stdout).split_whitespace().last().unwrap_or_default().to_owned());
    }
    let caribou = setup.start().await;
    let fake = fake().await;
    let (url, mut statuses) = (path("ann", "mine"), Vec::new());
    for token in &tokens {
        let request = caribou.request("PUT", &url).header("content-type", "application/json").bearer_auth(token);
        statuses.push(caribou.send(request.body(fake.entry().to_string())).await.status);
        for (method, url) in [("GET", &*url), ("GET", "/api/users/ann/mcp/connections")] {
            statuses.push(caribou.send(caribou.request(method, url).bearer_auth(token)).await.status);
        }
    }
    assert_eq!(statuses, [200, 200, 200, 403, 403, 403, 200, 200, 200]);
    let refused = caribou.send(caribou.request("DELETE", &url).bearer_auth(&tokens[1])).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "denied"));
    assert_eq!(caribou.get(&url).await.status, 401);
}

/// Contract 1.8, personal: no variable of this process is ever put in; 1.12 and 1.13, masking and its way back.
#[tokio::test]
async fn a_definition_is_read_literally_shown_masked_and_may_be_sent_back_as_shown() {
    let fake = fake().await;
    let caribou = setup().variable("SECRET_OF_THE_HOST", CANARY).start().await;
    let headers = json!({ "X-Literal": "$SECRET_OF_THE_HOST", "X-Own": "hunter2" });
    let made = put(&caribou, "ann", "mine", &fake.entry_with(json!({ "headers": headers, "icon": "i" }))).await;
    let shown = made.json()["definition"].clone();
    assert_eq!(shown["headers"], json!({ "X-Literal": "***", "X-Own": "***" }), "{made:?}");
    assert_eq!((&shown["icon"], &shown["session_init_timeout"]), (&json!("i"), &json!(60.0)));
    assert!(!made.body.contains("hunter2"));

    let again = put(&caribou, "ann", "mine", &shown).await;
    assert_eq!((again.status, again.json()), (200, made.json()), "what was shown means what was stored");
    assert_eq!(call_as(&caribou, "ann", "mine_echo").await.status, 200);
    let seen = fake.log().received("tools/call").remove(0).headers;
    assert_eq!((seen["x-literal"].as_str(), seen["x-own"].as_str()), ("$SECRET_OF_THE_HOST", "hunter2"));

    let lost = fake.entry_with(json!({ "headers": { "X-New": "***" } }));
    let refused = put(&caribou, "ann", "mine", &lost).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.detail().contains("headers.X-New"), "{refused:?}");
    assert!(!caribou.log().contains("hunter2"));
}

/// Contract 7.6 and 11.1: an edit makes another server of it; switching it off and on does not.
#[tokio::test]
async fn an_edit_changes_the_runtime_name_and_closes_what_was_open_under_the_old_one() {
    let fake = fake().await;
    let caribou = setup().start().await;
    let first = put(&caribou, "ann", "mine", &fake.entry()).await.json()["server"].clone();
    assert_eq!(call_as(&caribou, "ann", "mine_echo").await.status, 200);
    let open = async || {
        let sessions = caribou.get("/api/mcp/sessions").await.json()["sessions"].clone();
        sessions.as_array().unwrap().iter().map(|session| session["server"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(open().await, std::slice::from_ref(&first));

    let off = put(&caribou, "ann", "mine", &fake.entry_with(json!({ "enabled": false }))).await;
    assert_eq!((&off.json()["server"], &off.json()["enabled"]), (&first, &json!(false)));
    assert!(names(&tools_of(&caribou, "ann").await).is_empty());
    assert_eq!(call_as(&caribou, "ann", "mine_echo").await.status, 404);

    let edited = put(&caribou, "ann", "mine", &fake.entry_with(json!({ "description": "d" }))).await;
    let second = edited.json()["server"].clone();
    assert_ne!(second, first);
    assert_eq!(call_as(&caribou, "ann", "mine_echo").await.status, 200);
    assert_eq!(open().await, [second]);
    let back = put(&caribou, "ann", "mine", &fake.entry()).await;
    assert_eq!(back.json()["server"], first, "the same definition, the same name");
}

/// architecture.md §9, private networks.
#[tokio::test]
async fn a_private_address_is_refused_unless_the_operator_lists_it() {
    let fake = fake().await;
    let port = fake.url().rsplit(':').next().unwrap().to_owned();
    let caribou = Setup::new().server("shared", fake.entry()).start().await;
    for (name, url) in [("a", fake.url().to_owned()), ("b", format!("http://localhost:{port}"))] {
        let definition = json!({ "type": "http", "url": format!("{url}/mcp") });
        assert_eq!(put(&caribou, "ann", name, &definition).await.status, 200);
    }
    let listed = tools_of(&caribou, "ann").await;
    assert_eq!(names(&listed), BTreeSet::from(["shared_echo"]), "what the operator configured is trusted");
    let failed = listed["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 2, "{listed}");
    for one in failed {
        assert!(one["reason"].as_str().unwrap().contains("network.allow_cidrs"), "{one}");
    }
    let refused = call_as(&caribou, "ann", "a_echo").await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "denied"), "{refused:?}");
    assert!(fake.log().received("tools/call").is_empty());
}

/// Contract 5.2, duplicates: nobody's own connection takes a name of the deployment over.
#[tokio::test]
async fn a_name_of_the_deployment_stays_its_own() {
    let (shared, own) = (fake().await, fake().await);
    let caribou = setup().server("mine", shared.entry()).start().await;
    assert_eq!(put(&caribou, "ann", "mine", &own.entry()).await.status, 200);
    let listed = tools_of(&caribou, "ann").await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(call_as(&caribou, "ann", "mine_echo").await.status, 200);
    assert_eq!((shared.log().received("tools/call").len(), own.log().received("tools/call").len()), (1, 0));
}

/// Refused before anything is stored: by form, by number, by condition.
#[tokio::test]
async fn what_may_not_be_stored_is_refused_with_its_reason() {
    let fake = fake().await;
    let caribou = setup().variable("CARIBOU_PERSONAL_MAX_PER_USER", "1").start().await;
    for (name, definition, why) in [
        ("mine", json!({ "type": "http" }), "'url'"),
        ("mine", json!({ "url": "hunter2" }), "url: "),
        ("mine", json!({ "command": "npx", "args": ["hunter2"] }), "remote servers"),
        ("mine", json!({ "url": "http://h", "padding": "x".repeat(70_000) }), "65536"),
        ("a.b", fake.entry(), "`name`"),
    ] {
        let refused = put(&caribou, "ann", name, &definition).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "invalid"), "{refused:?}");
        assert!(refused.detail().contains(why) && !refused.body.contains("hunter2"), "{refused:?}");
    }
    let first = put(&caribou, "ann", "mine", &fake.entry()).await;
    let full = put(&caribou, "ann", "more", &fake.entry()).await;
    assert_eq!((full.status, full.code().as_str()), (409, "conflict"), "{full:?}");
    assert_eq!(put(&caribou, "bob", "more", &fake.entry()).await.status, 200, "everybody has a share of their own");

    let edited = fake.entry_with(json!({ "description": "d" }));
    let second = put_if(&caribou, "ann", "mine", &edited, Some(&first.etag)).await;
    assert_eq!(second.status, 200, "{second:?}");
    assert_ne!(second.etag, first.etag);
    let stale = put_if(&caribou, "ann", "mine", &fake.entry(), Some(&first.etag)).await;
    assert_eq!((stale.status, stale.code().as_str()), (409, "conflict"), "{stale:?}");
    assert_eq!(caribou.get(&path("ann", "mine")).await.etag, second.etag);
}

fn holds(folder: &Path, needle: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let found = |path: &Path| std::fs::read(path).unwrap().windows(needle.len()).any(|part| part == needle.as_bytes());
    files.collect::<Vec<_>>().iter().any(|path| found(path))
}

/// Contract 7.7, unset on a single instance; invariant O3.
#[tokio::test]
async fn what_is_stored_is_not_in_clear_text_and_the_key_is_for_its_owner_only() {
    let fake = fake().await;
    let caribou = setup().start().await;
    let definition = fake.entry_with(json!({ "headers": { "X-Own": CANARY }, "description": CANARY }));
    let made = put(&caribou, "ann", "mine", &definition).await;
    assert_eq!(made.status, 200, "{made:?}");
    let server = made.json()["server"].as_str().unwrap().to_owned();
    let (_, home) = caribou.stop().await;
    let data = home.join("data");
    assert!(!holds(&data, CANARY) && !holds(&data, fake.url()), "the definition is in clear text");
    assert!(holds(&data, &server), "it is stored at all");
    let key = std::fs::metadata(data.join(".credentials_key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

/// Contract 7.7: rotate by prepending; with another key the value counts as missing.
#[tokio::test]
async fn keys_rotate_by_being_put_in_front_and_what_no_key_opens_is_told() {
    let (old, new) = (key().await, key().await);
    let fake = fake().await;
    let database = Setup::new();
    let address = format!("sqlite:{}", database.home().join("shared.db").display());
    let with = |keys: &str| setup().variable("CARIBOU_DATABASE_URL", &address).variable(KEY, keys);
    let caribou = with(&old).start().await;
    let made = put(&caribou, "ann", "mine", &fake.entry_with(json!({ "headers": { "A": "hunter2" } }))).await;
    assert_eq!(made.status, 200, "{made:?}");
    caribou.stop().await;

    let other = with(&new).start().await;
    let shown = other.get(&path("ann", "mine")).await.json();
    assert_eq!(shown["definition"], Value::Null, "{shown}");
    assert!(shown["problem"].as_str().unwrap().contains(KEY), "{shown}");
    assert_eq!(call_as(&other, "ann", "mine_echo").await.status, 404);
    other.stop().await;

    let failed = with(&new).command(&["keys", "rotate"]).output().await.unwrap();
    assert!(!failed.status.success() && text(&failed).contains("1 rows cannot be opened"), "{failed:?}");
    let both = format!("{new}, {old}");
    for expected in ["mcp_connection: 1 encrypted anew, 0 were already", "mcp_connection: 0 encrypted anew, 1 were"] {
        let rotated = with(&both).command(&["keys", "rotate"]).output().await.unwrap();
        assert!(rotated.status.success() && text(&rotated).contains(expected), "{rotated:?}");
        assert!(!text(&rotated).contains(&new) && !text(&rotated).contains("hunter2"));
    }
    let after = with(&new).start().await;
    assert_eq!(call_as(&after, "ann", "mine_echo").await.status, 200);
    assert_eq!(fake.log().received("tools/call").remove(0).headers["a"], "hunter2");
}

/// Contract 7.7, invalid entry.
#[tokio::test]
async fn a_key_that_is_none_is_refused_before_anything_is_touched_and_not_echoed() {
    for (variable, value) in [(KEY, CANARY), ("DEER_FLOW_CREDENTIALS_KEY", CANARY)] {
        let setup = Setup::new().variable(variable, value);
        let refused = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = text(&refused);
        assert!(said.contains(variable) && said.contains("caribou keys generate"), "{said}");
        assert!(!said.contains(CANARY), "{said}");
        assert!(!setup.home().join("data").exists());
    }
    let setup = Setup::new();
    std::fs::create_dir(setup.home().join("data")).unwrap();
    let file = setup.home().write("data/.credentials_key", CANARY);
    let refused = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused).contains(".credentials_key") && !text(&refused).contains(CANARY), "{refused:?}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), CANARY, "left as it is");
}

/// Contract 7.7, multi-instance.
#[tokio::test]
async fn several_instances_with_a_refresh_token_do_not_start_without_the_variable() {
    let oauth = |grant: &str, enabled: bool| {
        json!({ "type": "http", "url": "http://127.0.0.1:9/mcp", "oauth": {
            "enabled": enabled, "token_url": "http://127.0.0.1:9/token", "grant_type": grant,
            "client_id": "c", "client_secret": "s", "refresh_token": CANARY,
        } })
    };
    for variable in ["CARIBOU_DEPLOYMENT_MULTI_INSTANCE", "DEER_FLOW_MULTI_INSTANCE"] {
        let setup = Setup::new().server("far", oauth("refresh_token", true)).variable(variable, "yes");
        let refused = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(text(&refused).contains("`far`") && text(&refused).contains(KEY), "{refused:?}");
        assert!(!text(&refused).contains(CANARY));
    }
    let off = Setup::new().server("far", oauth("refresh_token", true)).variable("DEER_FLOW_MULTI_INSTANCE", "off");
    off.start().await.stop().await;
    let database = Postgres::start().await;
    let multi = || {
        let setup = Setup::new().variable("CARIBOU_DEPLOYMENT_MULTI_INSTANCE", "1");
        setup.variable("CARIBOU_DATABASE_URL", &database.url("postgres"))
    };
    let migrated = multi().command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let with_key = multi().server("far", oauth("refresh_token", true)).variable(KEY, &key().await);
    with_key.start().await.stop().await;
}

/// Architecture.md §10; durability.md §2: what would part several instances is told in one message.
#[tokio::test]
async fn several_instances_that_would_not_see_the_same_do_not_start() {
    let setup = Setup::new().variable("CARIBOU_DEPLOYMENT_MULTI_INSTANCE", "1");
    let refused = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused).contains("PostgreSQL") && text(&refused).contains(KEY), "{refused:?}");
    let database = Postgres::start().await;
    let setup = Setup::new()
        .variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0")
        .variable("CARIBOU_CLUSTER_SECRET", &"s".repeat(32))
        .variable("CARIBOU_DEPLOYMENT_MULTI_INSTANCE", "1")
        .variable("CARIBOU_DATABASE_URL", &database.url("postgres"));
    let refused = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    for named in ["caribou migrate", KEY, "cluster.advertise"] {
        assert!(text(&refused).contains(named), "{named}: {refused:?}");
    }
}
