//! `caribou doctor`: what does not work is told with what to do next, and nothing else is touched.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;
use std::time::Duration;

use caribou_tests::{Postgres, Redis, Setup, StdioFake, network};
use serde_json::{Value, json};

/// How long a look may take on a loaded machine: its own bounds, and the start.
const ENOUGH: Duration = Duration::from_secs(120);

/// What must never be shown.
const HIDDEN: &str = "hunter2-hunter2-hunter2-hunter2-";

async fn look(setup: &Setup, words: &[&str]) -> Output {
    let words: Vec<&str> = ["doctor"].into_iter().chain(words.iter().copied()).collect();
    let output = tokio::time::timeout(ENOUGH, setup.command(&words).output()).await.expect("it ends").unwrap();
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!shown.contains("hunter2"), "invariant O3: {shown}");
    output
}

/// What `--json` says, with whether the exit code is that of success.
async fn found(setup: &Setup, words: &[&str]) -> (bool, Value) {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let output = look(setup, &words).await;
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(whole["ok"], output.status.success(), "{whole}");
    (output.status.success(), whole)
}

/// The lines of one check.
fn of<'w>(whole: &'w Value, check: &str) -> Vec<&'w Value> {
    whole["checks"].as_array().unwrap().iter().filter(|line| line["check"] == check).collect()
}

/// The one line of this check that is in this state.
fn the<'w>(whole: &'w Value, check: &str, state: &str) -> &'w Value {
    let lines = of(whole, check);
    let mut matching = lines.iter().filter(|line| line["state"] == state);
    matching.next().unwrap_or_else(|| panic!("no {state} line of {check}: {lines:?}"))
}

/// That this check failed, and that what it says and what it says to do hold these words.
fn failed(whole: &Value, check: &str, what: &str, mend: &str) {
    let line = the(whole, check, "failed");
    let holds = |member: &str, word: &str| line[member].as_str().is_some_and(|text| text.contains(word));
    assert!(holds("what", what) && holds("mend", mend), "{line}");
}

#[tokio::test]
async fn all_is_well_where_nothing_was_started_yet_and_nothing_is_made() {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "echo": ["default"] } }));
    let setup = setup.server("fake", fake.entry());
    let (is_well, whole) = found(&setup, &[]).await;
    assert!(is_well, "{whole}");
    let line = the(&whole, "servers", "ok");
    assert_eq!(line["subject"], "fake");
    assert!(line["what"].as_str().unwrap().starts_with("1 tools, MCP "), "{line}");
    assert!(line["mend"].is_null() && line["took_ms"].is_u64(), "{line}");
    let checks: Vec<&str> =
        whole["checks"].as_array().unwrap().iter().map(|line| line["check"].as_str().unwrap()).collect();
    for check in
        ["settings", "configuration", "database", "redis", "peers", "credentials", "files", "limits", "programs"]
    {
        assert!(checks.contains(&check), "{check}: {checks:?}");
    }
    assert!(!setup.home().join("data").exists(), "looking makes no folder");
    let text = look(&setup, &["--offline"]).await;
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("ok       database") && text.contains("skipped  servers"), "{text}");
    assert!(text.contains("-> leave out `--offline`") && text.contains("all that was looked at works"), "{text}");
}

#[tokio::test]
async fn wrong_settings_are_told_at_once_and_spoil_only_what_goes_by_them() {
    let setup = Setup::new();
    let file = setup.home().write("config.yaml", "redis: {url: 'http://x:hunter2@y'}\ncalls: {max_seconds: -1}\n");
    let (is_well, whole) = found(&setup, &["--offline", "--config", file.to_str().unwrap()]).await;
    assert!(!is_well);
    let lines = of(&whole, "settings");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines.iter().all(|line| line["state"] == "failed" && !line["mend"].as_str().unwrap().is_empty()),
        "{lines:?}"
    );
    assert!(lines[0]["what"].as_str().unwrap().contains("config.yaml:1:"), "{lines:?}");
    assert!(the(&whole, "redis", "skipped")["what"].as_str().unwrap().contains("redis.url"));
    the(&whole, "database", "ok");
    let (is_well, whole) = found(&setup, &["--config", "nowhere.yaml"]).await;
    assert!(!is_well);
    failed(&whole, "settings", "nowhere.yaml", "CARIBOU_CONFIG");
    the(&whole, "servers", "skipped");
}

#[tokio::test]
async fn a_bad_key_a_database_and_a_redis_that_are_away_are_told_with_what_to_do() {
    let port = network::free_port();
    let setup = Setup::new()
        .variable("CARIBOU_DATABASE_URL", &format!("postgres://ann:{HIDDEN}@127.0.0.1:{port}/caribou"))
        .variable("CARIBOU_REDIS_URL", &format!("redis://:{HIDDEN}@127.0.0.1:{port}"))
        .variable("CARIBOU_CREDENTIALS_KEY", HIDDEN);
    let (is_well, whole) = found(&setup, &["--offline"]).await;
    assert!(!is_well);
    failed(&whole, "database", "cannot be used now", "`database_url`");
    failed(&whole, "redis", "Redis cannot be used now", "`redis.url`");
    failed(&whole, "credentials", "entry 1 of CARIBOU_CREDENTIALS_KEY", "caribou keys generate");
    the(&whole, "clock", "skipped");
}

#[tokio::test]
async fn missing_migrations_a_wrong_key_and_living_replicas_are_found_in_the_database() {
    let database = Postgres::start().await;
    let redis = Redis::start().await;
    let url = database.url("postgres");
    let with = |secret: &str| {
        let setup = Setup::new().variable("CARIBOU_DATABASE_URL", &url).variable("CARIBOU_REDIS_URL", &redis.url());
        setup.variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0").variable("CARIBOU_CLUSTER_SECRET", secret)
    };
    let (_, whole) = found(&with(HIDDEN), &["--offline"]).await;
    failed(&whole, "database", "migrations are missing", "caribou migrate");
    assert!(the(&whole, "redis", "ok")["what"].as_str().unwrap().starts_with("version "));
    for setting in ["maxmemory 10mb", "maxmemory-policy allkeys-lru"] {
        assert_eq!(redis.ask(&format!("CONFIG SET {setting}")).await.unwrap(), "+OK");
    }
    let (_, whole) = found(&with(HIDDEN), &["--offline"]).await;
    assert!(the(&whole, "redis", "warning")["what"].as_str().unwrap().contains("allkeys-lru"), "{whole}");
    let migrated = with(HIDDEN).command(&["migrate"]).output().await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");

    let caribou = with(HIDDEN).start().await;
    let (is_well, whole) = found(&with(HIDDEN), &["--offline"]).await;
    assert!(is_well, "{whole}");
    assert!(the(&whole, "peers", "ok")["what"].as_str().unwrap().contains("version "), "{whole}");
    the(&whole, "clock", "ok");
    let (is_well, whole) = found(&with("another-secret-of-32-characters-"), &["--offline"]).await;
    assert!(!is_well);
    failed(&whole, "peers", "cluster.secret", "`cluster.secret`");
    drop(caribou);

    database
        .ask(
            "INSERT INTO mcp_connection (user_id, name, runtime_name, sealed, enabled) VALUES \
        ('ann', 'shop', 'personal_0123456789abcdef0123456789abcdef', 'x', true)",
        )
        .await
        .unwrap();
    let key = with(HIDDEN).command(&["keys", "generate"]).output().await.unwrap();
    let key = String::from_utf8(key.stdout).unwrap();
    let setup = with(HIDDEN).variable("CARIBOU_CREDENTIALS_KEY", key.trim());
    let (is_well, whole) = found(&setup, &["--offline"]).await;
    assert!(!is_well && !whole.to_string().contains(key.trim()), "{whole}");
    failed(&whole, "credentials", "opens 0 of 1", "CARIBOU_CREDENTIALS_KEY");
}

#[tokio::test]
async fn what_would_part_replicas_is_told_before_one_is_started() {
    let setup = Setup::new().variable("CARIBOU_CLUSTER_LISTEN", "127.0.0.1:0");
    let setup = setup.variable("CARIBOU_CLUSTER_SECRET", HIDDEN).variable("CARIBOU_DEPLOYMENT_MULTI_INSTANCE", "true");
    let (is_well, whole) = found(&setup, &["--offline"]).await;
    assert!(!is_well);
    failed(&whole, "database", "not PostgreSQL", "multi_instance");
    failed(&whole, "peers", "needs PostgreSQL", "`cluster.listen`");
    failed(&whole, "names", "on their own machine", "`cluster.advertise`");
    failed(&whole, "credentials", "CARIBOU_CREDENTIALS_KEY is not set", "same value");
}

#[tokio::test]
async fn servers_that_do_not_start_or_cannot_are_told_and_the_others_are_well() {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({ "calls": { "echo": ["default"] } }));
    let dies =
        json!({ "command": "sh", "args": ["-c", "echo the disk is full >&2; exit 3"], "env": { "API_KEY": HIDDEN } });
    let rotating = json!({ "type": "http", "url": "http://127.0.0.1:9/mcp", "oauth": { "enabled": true,
        "token_url": "http://127.0.0.1:9/token", "grant_type": "refresh_token", "refresh_token": HIDDEN } });
    let setup = setup
        .server("fake", fake.entry())
        .server("dies", dies)
        .server("gone", json!({ "command": "no-such-program-at-all" }))
        .server("silent", json!({ "command": "sleep", "args": ["60"] }))
        .server("rotating", rotating);
    let (is_well, whole) = found(&setup, &["--timeout", "5"]).await;
    assert!(!is_well);
    let server = |check: &str, name: &str| {
        let line = of(&whole, check).into_iter().find(|line| line["subject"] == name);
        line.unwrap_or_else(|| panic!("{check} says nothing of {name}: {whole}")).clone()
    };
    assert_eq!(server("servers", "fake")["state"], "ok", "{whole}");
    let dead = server("servers", "dies");
    assert!(dead["state"] == "failed" && dead["what"].as_str().unwrap().contains("the disk is full"), "{dead}");
    assert!(dead["mend"].as_str().unwrap().contains("by hand"), "{dead}");
    assert_eq!(server("programs", "gone")["state"], "failed");
    let silent = server("servers", "silent");
    assert!(silent["state"] == "failed" && silent["mend"].as_str().unwrap().contains("--timeout"), "{silent}");
    assert_eq!(server("servers", "rotating")["state"], "skipped", "its token would be spent");
}

#[tokio::test]
async fn secrets_that_everybody_may_read_are_told_with_the_command_that_mends_it() {
    let setup = Setup::new().server("a", json!({ "command": "sh", "env": { "API_KEY": HIDDEN }, "enabled": false }));
    let config = setup.home().write("config.yaml", &format!("cluster: {{secret: {HIDDEN}}}\n"));
    let words = ["--offline", "--config", config.to_str().unwrap()];
    setup.command(&["check"]).output().await.unwrap();
    let extensions = setup.home().join("extensions_config.json");
    let mode = |mode: u32| {
        for file in [&config, &extensions] {
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    mode(0o644);
    let (is_well, whole) = found(&setup, &words).await;
    assert!(!is_well);
    let told: Vec<&str> = of(&whole, "files").iter().filter_map(|line| line["mend"].as_str()).collect();
    let expected = [&config, &extensions].map(|file| format!("chmod 600 {}", file.display()));
    assert_eq!(told, expected, "{whole}");
    mode(0o600);
    let (is_well, whole) = found(&setup, &words).await;
    assert!(is_well, "{whole}");
}
