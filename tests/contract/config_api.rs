//! The stored configuration over REST: read it, change it, and what is refused (contract 1.11 to 1.13, 2.2, 5.9).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use caribou_core::config::ETag;
use caribou_tests::caribou::binary;
use caribou_tests::{Answer, Caribou, Setup, StdioFake, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(20);

const CONFIG: &str = "/api/mcp/config";

/// A setup in which the API may start fakes, by the name of their program.
fn setup() -> Setup {
    let folder = binary("fake-mcp").parent().unwrap().to_owned();
    let path =
        std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    let path = path.unwrap().into_string().unwrap();
    Setup::new().variable("PATH", &path).variable("CARIBOU_MCP_STDIO_COMMAND_ALLOWLIST", "fake-mcp")
}

fn fake(setup: &Setup, name: &str) -> (StdioFake, Value) {
    let fake = StdioFake::new(setup.home(), name, json!({ "calls": { "echo": ["default"] } }));
    let entry = fake.entry_with(json!({ "command": "fake-mcp" }));
    (fake, entry)
}

async fn send(caribou: &Caribou, method: &str, path: &str, body: &Value) -> Answer {
    let request = caribou.request(method, path).header("content-type", "application/json");
    caribou.send(request.body(body.to_string())).await
}

async fn switch(caribou: &Caribou, name: &str, enabled: bool) -> Answer {
    send(caribou, "PATCH", CONFIG, &json!({ "server_name": name, "enabled": enabled })).await
}

fn file(caribou: &Caribou) -> PathBuf {
    caribou.home().join("extensions_config.json")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Secrets in every place that hides them.
fn secretive(stdio: Value) -> Value {
    json!({
        "skills": { "a": { "enabled": true } },
        "mcpServers": {
            "fake": stdio,
            "far": {
                "enabled": false, "transport": "http", "url": "$FAR_URL",
                "headers": { "Authorization": "$FAR_AUTH", "X-Plain": "hunter2" },
                "oauth": { "token_url": "https://t/", "client_secret": "hunter2", "refresh_token": "$R",
                           "extra_token_params": { "audience": "hunter2" } },
                "user_auth": { "users": { "ann": "$ANN" } },
                "vault": { "apiKey": "hunter2", "rows": [{ "token": "hunter2" }] },
            },
        },
        "other": { "password": "$PW", "n": 1.0 },
    })
}

/// Contract 1.12, 1.13 and 2.2: a client that reads, edits one field and writes back changes that field.
#[tokio::test]
async fn what_was_read_put_back_with_one_edit_changes_that_field_only() {
    let setup = setup();
    let (fake, entry) = fake(&setup, "fake");
    let caribou = setup.start().await;
    std::fs::write(file(&caribou), secretive(entry).to_string()).unwrap();
    let before = caribou.call("fake_echo", json!({})).await;
    assert_eq!(before.status, 200, "{before:?}");

    let shown = caribou.get(CONFIG).await;
    assert!(!shown.body.contains("hunter2"), "{shown:?}");
    assert_eq!(shown.json()["mcp_servers"]["far"]["url"], "$FAR_URL");
    assert_eq!(shown.json()["mcp_servers"]["far"]["session_init_timeout"], 60.0);
    let put = send(&caribou, "PUT", CONFIG, &shown.json()).await;
    assert_eq!((put.status, &put.json()), (200, &shown.json()));
    let stored: Value = serde_json::from_str(&text(&file(&caribou))).unwrap();
    let far = &stored["mcpServers"]["far"];
    for (kept, secret) in [
        (&far["headers"]["Authorization"], "$FAR_AUTH"),
        (&far["oauth"]["client_secret"], "hunter2"),
        (&far["oauth"]["refresh_token"], "$R"),
        (&far["oauth"]["extra_token_params"]["audience"], "hunter2"),
        (&far["user_auth"]["users"]["ann"], "$ANN"),
        (&far["vault"]["rows"][0]["token"], "hunter2"),
        (&far["transport"], "http"),
        (&stored["other"]["password"], "$PW"),
    ] {
        assert_eq!(kept, secret, "{stored:#}");
    }

    let whole = text(&file(&caribou));
    let mut edited = put.json();
    edited["mcp_servers"]["fake"]["description"] = json!("edited");
    assert_eq!(send(&caribou, "PUT", CONFIG, &edited).await.status, 200);
    assert_eq!(text(&file(&caribou)), whole.replacen("\"description\": \"\"", "\"description\": \"edited\"", 1));

    // What is only shown differently touches no session, and defaults written out are no change at all: the tools were
    // listed for the start and for the edit.
    assert_eq!(caribou.call("fake_echo", json!({})).await.json()["session"], before.json()["session"]);
    assert_eq!(fake.log().received("tools/list").len(), 2);
}

/// Contract 2.2, PATCH: only that one value changes, and no `type` is written.
#[tokio::test]
async fn a_switch_leaves_every_other_byte() {
    let caribou = setup().start().await;
    let written = "\u{feff}{\"mcpServers\" : {\r\n\t\"far\":{\"transport\":\"http\", \"url\":\"$URL\" , \"n\":1.0},\r\n\"bad\":{\"type\":\"http\"}},\"x\": 1e2 }\r\n";
    std::fs::write(file(&caribou), written).unwrap();
    let off = switch(&caribou, "far", false).await;
    assert_eq!((off.status, &off.json()["mcp_servers"]["far"]["enabled"]), (200, &json!(false)), "{off:?}");
    // Writers never emit a byte-order mark (contract 1.11).
    let expected = written.trim_start_matches('\u{feff}').replace("\"n\":1.0}", "\"n\":1.0, \"enabled\":false}");
    assert_eq!(text(&file(&caribou)), expected);
    assert_eq!(switch(&caribou, "far", false).await.etag, off.etag);
    let missing = switch(&caribou, "none", true).await;
    assert_eq!((missing.status, missing.detail().as_str()), (404, "MCP server 'none' not found"));
    assert_eq!(missing.etag, off.etag);
    assert_eq!(text(&file(&caribou)), expected);
}

/// Contract 3 and 2.2: what the policy refuses is not written, and nothing of it runs.
#[tokio::test]
async fn what_may_not_be_started_is_refused_and_never_runs() {
    let setup = setup();
    let canary = setup.home().join("canary");
    let touch = format!("touch {}", canary.display());
    let servers = [
        json!({ "command": "/usr/bin/touch", "args": [&canary] }),
        json!({ "command": "touch", "args": [&canary] }),
        json!({ "command": "npx", "args": ["-yc", &touch] }),
        json!({ "command": "npx", "args": ["x"], "env": { "npm_config_call": &touch } }),
    ];
    let caribou = setup.start().await;
    for server in servers {
        let mut stored = json!({ "mcpServers": { "good": { "type": "http", "url": "http://127.0.0.1:9", "enabled": false },
            "bad": { "enabled": false } } });
        stored["mcpServers"]["bad"].as_object_mut().unwrap().extend(server.as_object().unwrap().clone());
        std::fs::write(file(&caribou), stored.to_string()).unwrap();
        for (method, path, body) in [
            ("PUT", CONFIG, json!({ "mcp_servers": { "new": server } })),
            ("POST", "/api/mcp/config/servers", json!({ "mcp_servers": { "new": server } })),
            ("PUT", "/api/mcp/config/server", json!({ "server_name": "good", "server": server })),
            ("PATCH", CONFIG, json!({ "server_name": "bad", "enabled": true })),
        ] {
            let refused = send(&caribou, method, path, &body).await;
            assert_eq!((refused.status, refused.code().as_str()), (400, "invalid"), "{method} {path} {refused:?}");
            assert!(!refused.body.contains("touch /"), "{refused:?}");
        }
        // Its neighbour is not judged, and switching off is not either.
        assert_eq!(switch(&caribou, "good", false).await.status, 200);
        assert_eq!(switch(&caribou, "bad", false).await.status, 200);
        assert_eq!(text(&file(&caribou)), stored.to_string());
    }
    assert!(caribou.tool_names().await.is_empty());
    assert!(!canary.exists());
}

/// Contract 2.2 with `If-Match` on top: a stale write is a conflict that tells the current tag.
#[tokio::test]
async fn a_stale_write_conflicts_and_one_without_a_condition_does_not() {
    let setup = setup();
    let (_fake, entry) = fake(&setup, "fake");
    let caribou = setup.server("fake", entry).start().await;
    let first = caribou.get(CONFIG).await;
    assert_eq!(first.etag, ETag::of(text(&file(&caribou)).as_bytes()).to_string());
    assert_eq!(switch(&caribou, "fake", false).await.status, 200);
    let body = json!({ "server_name": "fake", "enabled": true }).to_string();
    let conditional = |tag: String| {
        let request = caribou.request("PATCH", CONFIG).header("content-type", "application/json");
        caribou.send(request.header("if-match", tag).body(body.clone()))
    };
    let stale = conditional(first.etag.clone()).await;
    let current = caribou.get(CONFIG).await.etag;
    assert_eq!((stale.status, stale.code().as_str(), &stale.etag), (409, "conflict", &current), "{stale:?}");
    assert!(stale.detail().contains(&current), "{stale:?}");
    assert_eq!(caribou.get(CONFIG).await.json()["mcp_servers"]["fake"]["enabled"], false);
    let fresh = conditional(current).await;
    assert_eq!((fresh.status, &fresh.json()["mcp_servers"]["fake"]["enabled"]), (200, &json!(true)));
    assert_eq!(conditional("*".to_owned()).await.status, 200);
    assert_eq!(conditional("W/\"nonsense\"".to_owned()).await.status, 409);
}

/// Contract 2.2: the table of endpoints and statuses.
#[rstest]
#[case("PUT", CONFIG, json!({}), 422)]
#[case("PUT", CONFIG, json!({ "mcp_servers": [] }), 422)]
#[case("PUT", CONFIG, json!({ "mcp_servers": { "a": 1 } }), 422)]
#[case("PUT", CONFIG, json!({ "mcp_servers": { "a": { "type": "http" } } }), 400)]
#[case("PUT", CONFIG, json!({ "mcp_servers": { "a": { "type": "http", "url": "http://h", "headers": { "A": "***" } } } }), 400)]
#[case("PATCH", CONFIG, json!({ "server_name": "", "enabled": true }), 422)]
#[case("PATCH", CONFIG, json!({ "server_name": "old", "enabled": "yes" }), 422)]
#[case("PATCH", CONFIG, json!({ "server_name": "none", "enabled": true }), 404)]
#[case("POST", "/api/mcp/config/servers", json!({ "mcp_servers": { "old": { "type": "http", "url": "http://h" } } }), 409)]
#[case("PUT", "/api/mcp/config/server", json!({ "server_name": "none", "server": {} }), 404)]
#[case("PUT", "/api/mcp/config/server", json!({ "server_name": "old" }), 422)]
#[case("DELETE", "/api/mcp/config/servers/none", json!({}), 404)]
#[tokio::test]
async fn a_refused_change_writes_nothing(
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: Value,
    #[case] status: u16,
) {
    let caribou = setup().server("old", json!({ "type": "http", "url": "http://127.0.0.1:9", "enabled": false }));
    let caribou = caribou.start().await;
    let before = text(&file(&caribou));
    let refused = send(&caribou, method, path, &body).await;
    assert_eq!(refused.status, status, "{refused:?}");
    assert_eq!(text(&file(&caribou)), before);
}

/// Contract 2.2: POST adds, PUT of one resets what it leaves out, DELETE takes names with slashes; the servers follow.
#[rstest]
#[tokio::test]
async fn servers_are_added_replaced_and_removed_and_their_tools_follow(#[values("file", "database")] source: &str) {
    let setup = setup().variable("CARIBOU_CONFIG_SOURCE", source);
    let (_, entry) = fake(&setup, "one");
    let caribou = setup.start().await;
    let added = send(&caribou, "POST", "/api/mcp/config/servers", &json!({ "mcp_servers": { "a/b": entry } })).await;
    assert_eq!(added.status, 200, "{added:?}");
    assert_eq!(added.json()["mcp_servers"]["a/b"]["env"]["FAKE_LOG"], "***");
    assert!(!caribou.tool_names().await.is_empty());
    let mut entry = added.json()["mcp_servers"]["a/b"].clone();
    entry["description"] = json!("kept secrets");
    entry.as_object_mut().unwrap().remove("session_init_timeout");
    let one = json!({ "server_name": "a/b", "server": entry });
    let replaced = send(&caribou, "PUT", "/api/mcp/config/server", &one).await;
    assert_eq!(replaced.json()["mcp_servers"]["a/b"]["description"], "kept secrets", "{replaced:?}");
    assert!(!caribou.tool_names().await.is_empty());
    let removed = caribou.delete("/api/mcp/config/servers/a/b").await;
    assert_eq!((removed.status, removed.json()), (200, json!({ "mcp_servers": {} })));
    assert!(caribou.tool_names().await.is_empty());
}

/// Contract 1.9 and 1.11: no file is an empty configuration, and the first write creates it in the project root.
#[tokio::test]
async fn the_first_write_creates_the_file_in_the_project_root() {
    let setup = Setup::new();
    let root = setup.home().join("project");
    std::fs::create_dir(&root).unwrap();
    let setup = setup.variable("CARIBOU_EXTENSIONS_CONFIG_PATH", "");
    let caribou = setup.variable("CARIBOU_PROJECT_ROOT", root.to_str().unwrap()).start().await;
    let empty = caribou.get(CONFIG).await;
    assert_eq!((empty.json(), empty.etag.as_str()), (json!({ "mcp_servers": {} }), ""));
    assert_eq!(caribou.post("/api/mcp/cache/reset", "").await.json()["scope"], "process");
    let added = json!({ "mcp_servers": { "far": { "type": "http", "url": "http://127.0.0.1:9", "enabled": false } } });
    assert_eq!(send(&caribou, "POST", "/api/mcp/config/servers", &added).await.status, 200);
    let created = root.join("extensions_config.json");
    assert!(text(&created).contains("\"far\""));
    assert_eq!(std::fs::metadata(&created).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Contract 5.9: a change that is written while a neighbour keeps the document from being used says exactly that.
#[tokio::test]
async fn a_change_that_is_written_and_not_in_force_says_so() {
    let far = json!({ "type": "http", "url": "http://127.0.0.1:9", "enabled": false });
    let caribou = Setup::new().server("far", far.clone()).start().await;
    // A wrong server with durable tasks refuses the whole document, but only when it is loaded.
    let tasks = json!([{ "name": " ", "submit_tool": "s", "status_tool": "t", "cancel_tool": "c" }]);
    let wrong = json!({ "type": "http", "url": "http://127.0.0.1:9", "task_toolsets": tasks });
    let unusable = json!({ "mcpServers": { "far": far, "wrong": wrong } }).to_string();
    std::fs::write(file(&caribou), &unusable).unwrap();
    let answer = switch(&caribou, "far", true).await;
    assert_eq!((answer.status, answer.code().as_str()), (500, "config_changed"), "{answer:?}");
    assert!(answer.detail().contains("the document was written, but could not be put in force"), "{answer:?}");
    assert!(text(&file(&caribou)) == unusable.replacen("\"enabled\":false", "\"enabled\":true", 1));
    let health = caribou.get("/healthz").await.json();
    assert!(health["stale_config"]["problems"][0]["what"].is_string(), "{health}");
}

/// Contract 2.2: a neighbour that is no server at all blocks no switch, and the answer does not deny what was done.
#[tokio::test]
async fn a_neighbour_that_cannot_be_shown_blocks_nothing() {
    let far = json!({ "type": "http", "url": "http://127.0.0.1:9", "enabled": true });
    let caribou = Setup::new().server("far", far).server("seven", json!(7)).start().await;
    assert_eq!(caribou.get(CONFIG).await.status, 400);
    let answer = switch(&caribou, "far", false).await;
    assert_eq!((answer.status, answer.code().as_str()), (500, "config_changed"), "{answer:?}");
    assert!(answer.detail().contains("made and in force, but cannot be shown"), "{answer:?}");
    let servers = caribou.get("/api/mcp/servers").await.json();
    assert_eq!(servers["servers"][0]["absent"], "disabled");
    assert_eq!(caribou.delete("/api/mcp/config/servers/seven").await.status, 200);
}

/// Architecture §2: a file that may not be written answers 409 with the reason, and is shown all the same.
#[tokio::test]
async fn a_read_only_file_refuses_changes_with_the_reason() {
    let far = json!({ "type": "http", "url": "http://127.0.0.1:9", "enabled": false });
    let caribou = Setup::new().server("far", far).start().await;
    std::fs::set_permissions(file(&caribou), PermissionsExt::from_mode(0o444)).unwrap();
    let before = text(&file(&caribou));
    let refused = send(&caribou, "DELETE", "/api/mcp/config/servers/far", &json!({})).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"), "{refused:?}");
    assert!(refused.detail().contains("read-only"), "{refused:?}");
    let shown = caribou.get(CONFIG).await;
    assert_eq!((shown.status, shown.etag), (200, refused.etag));
    assert_eq!(text(&file(&caribou)), before);
}

/// Contract 1.11, cancellation: a change whose caller went away is made whole or not at all, and is in force if made.
#[tokio::test]
async fn a_cancelled_change_is_still_whole() {
    const ROUNDS: usize = 40;
    let far = json!({ "type": "http", "url": "http://127.0.0.1:9", "enabled": false });
    let caribou = Setup::new().server("far", far.clone()).start().await;
    let address = caribou.url().strip_prefix("http://").unwrap().to_owned();
    let mut written = Vec::new();
    for round in 0..ROUNDS {
        let mut server = far.clone();
        server["description"] = json!(format!("round {round}"));
        let body = json!({ "mcp_servers": { "far": server } }).to_string();
        let request = format!(
            "PUT {CONFIG} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut left = TcpStream::connect(&address).await.unwrap();
        left.write_all(request.as_bytes()).await.unwrap();
        drop(left);
        let shown = caribou.get(CONFIG).await;
        assert_eq!(shown.status, 200, "{shown:?}");
        written.push(shown.json()["mcp_servers"]["far"]["description"].as_str().unwrap().to_owned());
    }
    written.dedup();
    assert!(written.len() > 1, "no change outlived its caller: {written:?}");
    eventually(SOON, "the file and what is in force are one", async || {
        let shown = caribou.get(CONFIG).await;
        (shown.etag == ETag::of(text(&file(&caribou)).as_bytes()).to_string()).then_some(())
    })
    .await;
    assert!(caribou.get("/healthz").await.json().get("stale_config").is_none());
}

/// Contract 5.7: everything is closed and asked anew, here and wherever the same folder is mounted.
#[tokio::test]
async fn a_reset_is_heard_by_everybody_who_follows_the_file() {
    let setup = setup();
    let (_fake, entry) = fake(&setup, "fake");
    let caribou = setup.server("fake", entry).start().await;
    let neighbour = self::setup().variable("CARIBOU_EXTENSIONS_CONFIG_PATH", file(&caribou).to_str().unwrap());
    let neighbour = neighbour.start().await;
    let mut epochs = Vec::new();
    for replica in [&caribou, &neighbour] {
        epochs.push(replica.call("fake_echo", json!({})).await.json()["session"]["epoch"].clone());
    }
    let reset = caribou.post("/api/mcp/cache/reset", "").await;
    let told = reset.json();
    assert_eq!(
        (&told["success"], &told["scope"], &told["reach"]),
        (&json!(true), &json!("shared_config"), &json!("directory"))
    );
    assert_eq!(told["message"], "MCP tools cache reset. Tools will reload on next use.");
    assert_eq!((told["confirmed"].as_array().unwrap().len(), &told["unconfirmed"]), (1, &json!([])));
    for (replica, before) in [&caribou, &neighbour].into_iter().zip(&epochs) {
        let session = replica.call("fake_echo", json!({})).await.json()["session"].clone();
        assert_ne!(&session["epoch"], before);
        assert_eq!(session["restarted"], true);
    }
    // Heard once: what was opened after it stays.
    for replica in [&caribou, &neighbour] {
        assert_eq!(replica.call("fake_echo", json!({})).await.json()["session"]["restarted"], false);
    }
}
