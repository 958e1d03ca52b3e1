//! The configuration in the database: everything that the file can, with a history (contract 1.11, 2.2, 5.9;
//! architecture.md §2, §10).

use std::path::Path;
use std::time::Duration;

use caribou_ports::store::{ConfigRevisions as _, StoredRevision};
use caribou_store::{Location, SqlStore};
use caribou_tests::caribou::binary;
use caribou_tests::{Answer, Caribou, Home, Setup, StdioFake, eventually};
use serde_json::{Value, json};

const CONFIG: &str = "/api/mcp/config";

const HISTORY: &str = "/api/mcp/config/history";

const SOON: Duration = Duration::from_secs(20);

/// A text that nobody would write the same way.
const ODD: &str = "{\"mcpServers\" : {\r\n\t\"far\":{\"transport\":\"http\", \"url\":\"http://127.0.0.1:9\" , \"n\":1.0, \"enabled\": false,\
                   \"headers\": {\"A\": \"hunter2\"}}},\"x\": 1e2 }\r\n";

/// One that keeps its configuration in this file's database.
fn setup(database: &Path) -> Setup {
    let path = std::env::join_paths(
        [binary("fake-mcp").parent().unwrap().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    Setup::new()
        .variable("CARIBOU_CONFIG_SOURCE", "database")
        .variable("CARIBOU_DATABASE_URL", &format!("sqlite:{}", database.display()))
        .variable("PATH", path.unwrap().to_str().unwrap())
        .variable("CARIBOU_MCP_STDIO_COMMAND_ALLOWLIST", "fake-mcp")
}

/// The same, with this file to import.
fn importing(database: &Path, text: &str) -> Setup {
    let setup = setup(database);
    let file = setup.home().write("imported.json", text);
    setup.variable("CARIBOU_EXTENSIONS_CONFIG_PATH", file.to_str().unwrap())
}

async fn last(database: &Path) -> StoredRevision {
    let store = SqlStore::open(&Location::Sqlite(database.to_owned())).await.unwrap();
    let last = store.last_revision().await.unwrap().unwrap().0;
    store.close().await;
    last
}

async fn send(caribou: &Caribou, method: &str, path: &str, body: Value) -> Answer {
    caribou.send(caribou.request(method, path).json(&body)).await
}

async fn switch(caribou: &Caribou, enabled: bool) -> Answer {
    send(caribou, "PATCH", CONFIG, json!({ "server_name": "far", "enabled": enabled })).await
}

fn numbers(history: &Answer) -> Vec<i64> {
    history.json()["revisions"].as_array().unwrap().iter().map(|head| head["revision"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn the_file_is_imported_once_byte_for_byte_and_read_no_more() {
    let folder = Home::new();
    let database = folder.join("caribou.db");
    let caribou = importing(&database, ODD).start().await;
    assert_eq!(last(&database).await, StoredRevision { number: 1, text: ODD.as_bytes().to_vec() });
    assert_eq!(switch(&caribou, true).await.status, 200);
    let switched = ODD.replace("\"enabled\": false", "\"enabled\": true");
    assert_eq!(last(&database).await, StoredRevision { number: 2, text: switched.clone().into_bytes() });
    let file = caribou.home().join("imported.json");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), ODD, "the file is nobody's any more");
    std::fs::write(&file, r#"{ "mcpServers": {} }"#).unwrap();
    assert!(caribou.get(CONFIG).await.json()["mcp_servers"]["far"].is_object());
    caribou.stop().await;
    let caribou = importing(&database, r#"{ "mcpServers": {} }"#).start().await;
    assert!(caribou.get(CONFIG).await.json()["mcp_servers"]["far"].is_object());
    assert_eq!(last(&database).await.text, switched.as_bytes());
}

#[tokio::test]
async fn a_tag_names_one_revision_and_a_stale_write_conflicts() {
    // Contract 2.2 with `If-Match` on top; architecture.md §10: of revisions, the same text has another tag later.
    let folder = Home::new();
    let database = folder.join("caribou.db");
    let caribou = importing(&database, ODD).start().await;
    let first = caribou.get(CONFIG).await.etag;
    let on = switch(&caribou, true).await;
    assert_eq!(caribou.get(CONFIG).await.etag, on.etag);
    let conditional = |tag: &str, enabled: bool| {
        let request = caribou.request("PATCH", CONFIG).header("if-match", tag);
        caribou.send(request.json(&json!({ "server_name": "far", "enabled": enabled })))
    };
    let stale = conditional(&first, false).await;
    assert_eq!((stale.status, stale.code().as_str(), &stale.etag), (409, "conflict", &on.etag), "{stale:?}");
    let off = conditional(&on.etag, false).await;
    assert_eq!((off.status, last(&database).await.text), (200, ODD.as_bytes().to_vec()));
    assert_ne!(off.etag, first, "it is what stood there first, and another revision");
    assert_eq!(switch(&caribou, false).await.etag, off.etag, "what changes nothing is no revision");
    for refused in [
        send(&caribou, "PUT", CONFIG, json!({ "mcp_servers": { "a": { "type": "http" } } })).await,
        send(&caribou, "PUT", CONFIG, json!({ "mcp_servers": { "a": { "command": "touch" } } })).await,
    ] {
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    assert_eq!(last(&database).await.number, 3);
}

#[tokio::test]
async fn the_history_is_shown_masked_and_any_revision_comes_again() {
    let folder = Home::new();
    let database = folder.join("caribou.db");
    let caribou = importing(&database, ODD).start().await;
    switch(&caribou, true).await;
    assert_eq!(caribou.delete("/api/mcp/config/servers/far").await.status, 200);
    let history = caribou.get(HISTORY).await;
    assert_eq!(numbers(&history), [3, 2, 1]);
    let authors: Vec<Value> =
        history.json()["revisions"].as_array().unwrap().iter().map(|head| head["author"].clone()).collect();
    assert_eq!(authors, ["local", "local", "import"]);
    let page = caribou.get(&format!("{HISTORY}?limit=2")).await;
    assert_eq!((numbers(&page), &page.json()["next"]), (vec![3, 2], &json!(2)));
    assert_eq!(numbers(&caribou.get(&format!("{HISTORY}?before=2")).await), [1]);

    let second = caribou.get(&format!("{HISTORY}/2")).await;
    assert_eq!(second.json()["mcp_servers"]["far"]["enabled"], true);
    assert_eq!(second.json()["mcp_servers"]["far"]["headers"]["A"], "***");
    for (path, status) in [("/9", 404), ("/x", 422), ("?limit=0", 422), ("?what=1", 422)] {
        assert_eq!(caribou.get(&format!("{HISTORY}{path}")).await.status, status, "{path}");
    }

    let back = send(&caribou, "POST", "/api/mcp/config/rollback", json!({ "revision": 1 })).await;
    assert_eq!((back.status, &back.json()["mcp_servers"]["far"]["enabled"]), (200, &json!(false)), "{back:?}");
    assert_eq!(last(&database).await, StoredRevision { number: 4, text: ODD.as_bytes().to_vec() });
    let missing = send(&caribou, "POST", "/api/mcp/config/rollback", json!({ "revision": 9 })).await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "not_found"), "{missing:?}");
    let stale = caribou.request("POST", "/api/mcp/config/rollback").header("if-match", second.etag);
    assert_eq!(caribou.send(stale.json(&json!({ "revision": 1 }))).await.status, 409);
    eventually(SOON, "a row of the audit log", async || {
        let audit = caribou.get("/api/mcp/audit?limit=20").await.body;
        audit.contains("roll_back_config").then_some(())
    })
    .await;
}

#[tokio::test]
async fn commands_show_the_history_and_go_back_without_a_replica_and_one_that_runs_hears_of_it() {
    let folder = Home::new();
    let database = folder.join("caribou.db");
    let caribou = importing(&database, ODD).start().await;
    switch(&caribou, true).await;
    let command = async |words: &[&str]| {
        let output = setup(&database).command(words).output().await.unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = command(&["config", "history"]).await;
    assert!(shown.contains("import") && shown.lines().count() >= 3, "{shown}");
    let shown = command(&["config", "history", "1"]).await;
    assert!(shown.contains("\"enabled\": false") && !shown.contains("hunter2"), "{shown}");
    command(&["config", "rollback", "1"]).await;
    eventually(SOON, "the revision of the command", async || {
        let shown = caribou.get("/api/mcp/servers").await.json();
        (shown["servers"][0]["state"] == "disabled").then_some(())
    })
    .await;
    assert_eq!(numbers(&caribou.get(HISTORY).await), [3, 2, 1]);
}

#[tokio::test]
async fn a_change_and_a_reset_of_one_process_reach_the_other() {
    let folder = Home::new();
    let database = folder.join("caribou.db");
    let fake = StdioFake::new(&folder, "fake", json!({ "calls": { "echo": ["default"] } }));
    let entry = fake.entry_with(json!({ "command": "fake-mcp" }));
    let text = json!({ "mcpServers": { "fake": entry } }).to_string();
    let (one, other) = (importing(&database, &text).start().await, importing(&database, &text).start().await);
    let epoch = async |caribou: &Caribou| {
        let called = caribou.call("fake_echo", json!({})).await;
        assert_eq!(called.status, 200, "{called:?}");
        called.json()["session"]["epoch"].clone()
    };
    let before = epoch(&other).await;
    let reset = one.post("/api/mcp/cache/reset", "").await.json();
    assert_eq!((&reset["reach"], &reset["scope"]), (&json!("cluster"), &json!("shared_config")), "{reset}");
    eventually(SOON, "another session there", async || (epoch(&other).await != before).then_some(())).await;

    let mut second = entry.clone();
    second["description"] = json!("the second");
    let added = json!({ "mcp_servers": { "more": second } });
    assert_eq!(send(&other, "POST", "/api/mcp/config/servers", added).await.status, 200);
    let before = epoch(&one).await;
    eventually(SOON, "the server that the other one added", async || {
        one.tool_names().await.iter().any(|name| name == "more_echo").then_some(())
    })
    .await;
    assert_eq!(epoch(&one).await, before, "nothing else is touched");
}

#[tokio::test]
async fn a_file_has_no_history_and_a_database_must_be_there_to_hold_one() {
    let caribou = Setup::new().start().await;
    let refused = caribou.get(HISTORY).await;
    assert_eq!((refused.status, refused.code().as_str()), (404, "not_found"), "{refused:?}");
    assert!(refused.detail().contains("config.source"), "{refused:?}");
    let setup =
        Setup::new().variable("CARIBOU_CONFIG_SOURCE", "database").variable("CARIBOU_DATABASE_BACKEND", "memory");
    let output = setup.command(&["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("config.source"), "{output:?}");
}
