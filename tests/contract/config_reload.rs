//! The configuration file edited by hand under a running replica (contract 1.11, 5.3, 5.4): every way to change it is
//! seen, nothing else restarts anything, and a file that cannot be used costs nothing.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use caribou_tests::{Caribou, Setup, StdioFake, eventually};
use rstest::rstest;
use serde_json::{Value, json};

/// The promised delay without any request: a watcher, or its slow timer.
const PROMISED: Duration = Duration::from_secs(10);

fn document(server: &str, entry: &Value, pad: &str) -> String {
    json!({ "mcpServers": { server: entry }, "pad": pad }).to_string()
}

fn set_mtime(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}.{suffix}", path.display()))
}

/// How a file comes to hold another text.
#[derive(Clone, Copy, Debug)]
enum Change {
    SameSecond,
    OlderTime,
    SameSizeSameTime,
    SameSizeSameTimeByRename,
    RenameOver,
    DeleteAndCreate,
    SwitchedLink,
    FoldersSwapped,
}

impl Change {
    /// Puts the first text where `file` is to be.
    fn prepare(self, file: &Path, old: &str, new: &str) {
        match self {
            Self::SwitchedLink => {
                fs::write(beside(file, "1"), old).unwrap();
                fs::write(beside(file, "2"), new).unwrap();
                symlink(beside(file, "1"), file).unwrap();
            }
            // As Kubernetes mounts a ConfigMap: the file is a link through `..data`, itself a link.
            Self::FoldersSwapped => {
                let folder = file.parent().unwrap();
                for (name, text) in [("..1", old), ("..2", new)] {
                    fs::create_dir(folder.join(name)).unwrap();
                    fs::write(folder.join(name).join("x.json"), text).unwrap();
                }
                symlink("..1", folder.join("..data")).unwrap();
                symlink("..data/x.json", file).unwrap();
            }
            _ => fs::write(file, old).unwrap(),
        }
    }

    fn make(self, file: &Path, new: &str) {
        let before = fs::metadata(file).unwrap().modified().unwrap();
        let link = |to: PathBuf, at: &Path| {
            symlink(to, beside(at, "link")).unwrap();
            fs::rename(beside(at, "link"), at).unwrap();
        };
        let by_rename = || {
            fs::write(beside(file, "tmp"), new).unwrap();
            set_mtime(&beside(file, "tmp"), before);
            fs::rename(beside(file, "tmp"), file).unwrap();
        };
        match self {
            Self::SameSecond => {
                fs::write(file, new).unwrap();
                set_mtime(file, before + Duration::from_millis(100));
            }
            Self::OlderTime => {
                fs::write(file, new).unwrap();
                set_mtime(file, before - Duration::from_secs(3_600));
            }
            Self::SameSizeSameTime => {
                fs::write(file, new).unwrap();
                set_mtime(file, before);
            }
            Self::SameSizeSameTimeByRename | Self::RenameOver => by_rename(),
            Self::DeleteAndCreate => {
                fs::remove_file(file).unwrap();
                fs::write(file, new).unwrap();
            }
            Self::SwitchedLink => link(beside(file, "2"), file),
            Self::FoldersSwapped => link(PathBuf::from("..2"), &file.parent().unwrap().join("..data")),
        }
    }
}

async fn servers(caribou: &Caribou) -> Vec<String> {
    let answer = caribou.get("/api/mcp/servers").await.json();
    answer["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

/// Contract 5.4: the content decides, not times, sizes or names.
#[rstest]
#[tokio::test]
async fn every_way_to_change_the_file_is_seen_by_the_next_look_up(
    #[values(
        Change::SameSecond,
        Change::OlderTime,
        Change::SameSizeSameTime,
        Change::SameSizeSameTimeByRename,
        Change::RenameOver,
        Change::DeleteAndCreate,
        Change::SwitchedLink,
        Change::FoldersSwapped
    )]
    change: Change,
) {
    let setup = Setup::new();
    let fake = StdioFake::new(setup.home(), "fake", json!({}));
    let same_size = matches!(change, Change::SameSizeSameTime | Change::SameSizeSameTimeByRename);
    let old = document("old", &fake.entry(), "");
    let new = document("new", &fake.entry(), if same_size { "" } else { "x" });
    let folder = setup.home().join("mounted");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("extensions.json");
    change.prepare(&file, &old, &new);
    let caribou = setup.variable("CARIBOU_EXTENSIONS_CONFIG_PATH", file.to_str().unwrap()).start().await;
    assert_eq!(servers(&caribou).await, ["old"]);
    change.make(&file, &new);
    assert_eq!(servers(&caribou).await, ["new"], "{change:?}");
}

/// Contract 5.3, 5.4: the same content, however it came, restarts nothing; only what an edit names is restarted.
#[tokio::test]
async fn only_the_server_that_an_edit_changes_is_restarted() {
    let setup = Setup::new();
    let fakes = ["a", "b"].map(|name| StdioFake::new(setup.home(), name, json!({ "calls": { "pid": ["default"] } })));
    let [a, b] = fakes.each_ref().map(StdioFake::entry);
    let caribou = setup.server("a", a.clone()).server("b", b.clone()).start().await;
    let sessions = async || {
        let mut sessions = Vec::new();
        for tool in ["a_pid", "b_pid"] {
            sessions.push(caribou.call(tool, json!({})).await.json()["session"]["epoch"].clone());
        }
        sessions
    };
    let before = sessions().await;
    let started = fakes.each_ref().map(|fake| fake.log().pids().len());
    let file = caribou.home().join("extensions_config.json");
    let text = fs::read_to_string(&file).unwrap();

    set_mtime(&file, fs::metadata(&file).unwrap().modified().unwrap() + Duration::from_secs(5));
    assert_eq!(sessions().await, before);
    // Another layout, another order, a default written out.
    let same = json!({ "mcpServers": { "b": b, "a": { "enabled": true, "env": a["env"], "command": a["command"] } } });
    fs::write(&file, format!("{same:#}")).unwrap();
    assert_eq!(sessions().await, before);
    fs::remove_file(&file).unwrap();
    assert_eq!(sessions().await, before);
    fs::write(&file, &text).unwrap();
    assert_eq!(sessions().await, before);
    assert_eq!(fakes.each_ref().map(|fake| fake.log().pids().len()), started);

    let mut edited: Value = serde_json::from_str(&text).unwrap();
    edited["mcpServers"]["b"]["args"] = json!(["x"]);
    fs::write(&file, edited.to_string()).unwrap();
    let after = sessions().await;
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1], before[1]);
}

/// Contract 5.6: the children of the last server stop when it is switched off, without anybody asking for anything.
#[tokio::test]
async fn a_server_switched_off_in_the_file_stops_by_itself() {
    let (caribou, fake) = Caribou::with_stdio(json!({ "calls": { "echo": ["default"] } })).await;
    assert_eq!(caribou.call("fake_echo", json!({})).await.status, 200);
    assert!(!fake.alive().is_empty());
    let file = caribou.home().join("extensions_config.json");
    fs::write(&file, document("fake", &fake.entry_with(json!({ "enabled": false })), "")).unwrap();
    eventually(PROMISED, "its children are gone", async || fake.alive().is_empty().then_some(())).await;
    let servers = caribou.get("/api/mcp/servers").await.json();
    assert_eq!(
        (&servers["servers"][0]["state"], &servers["servers"][0]["absent"]),
        (&json!("disabled"), &json!("disabled"))
    );
}

/// Texts that are no configuration, with the place where that shows.
const BROKEN: [(&str, u64, u64); 10] = [
    ("", 1, 1),
    (" \n\t\n", 1, 1),
    ("{\n  \"mcpServers\": {\n    \"fake\": {", 3, 13),
    ("{\n  \"mcpServers\": {,}\n}", 2, 18),
    ("[]", 1, 1),
    ("null", 1, 1),
    ("{\"mcpServers\": []}", 1, 16),
    ("{\"mcpServers\": {\"a\": {},\n \"a\": {}}}", 2, 2),
    ("{} x", 1, 4),
    ("{\n// why not\n}", 2, 1),
];

async fn is_stale(caribou: &Caribou) -> bool {
    caribou.get("/metrics").await.body.lines().any(|line| line == "caribou_config_stale 1")
}

/// Contract 1.1, 2.2, 5.4: a file that cannot be used leaves the last good one in force, is told with its place, and
/// is never written over.
#[tokio::test]
async fn a_broken_file_costs_nothing_and_is_told_with_its_place() {
    let (caribou, fake) = Caribou::with_stdio(json!({ "calls": { "echo": ["default"] } })).await;
    let epoch = caribou.call("fake_echo", json!({})).await.json()["session"]["epoch"].clone();
    let file = caribou.home().join("extensions_config.json");
    let good = fs::read_to_string(&file).unwrap();
    assert!(!is_stale(&caribou).await);
    for (broken, line, column) in BROKEN {
        fs::write(&file, broken).unwrap();
        let session = caribou.call("fake_echo", json!({})).await.json()["session"].clone();
        assert_eq!(session["epoch"], epoch, "{broken:?}");
        let health = caribou.get("/healthz").await.json();
        let fault = &health["stale_config"]["problems"][0];
        assert_eq!(health["status"], "ok");
        assert_eq!((&fault["line"], &fault["column"]), (&json!(line), &json!(column)), "{broken:?} {health}");
        assert!(fault["file"].as_str().unwrap().ends_with("extensions_config.json") && fault["what"].is_string());
        assert!(is_stale(&caribou).await);
        let shown = caribou.get("/api/mcp/config").await;
        assert_eq!(shown.status, 400, "{broken:?} {shown:?}");
        assert!(shown.detail().starts_with("Invalid MCP configuration: "), "{shown:?}");
        let saved = caribou.request("PUT", "/api/mcp/config").header("content-type", "application/json");
        let saved = caribou.send(saved.body(json!({ "mcp_servers": {} }).to_string())).await;
        assert!(matches!(saved.status, 400 | 500), "{broken:?} {saved:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    }
    let mut mended: Value = serde_json::from_str(&good).unwrap();
    mended["mcpServers"]["second"] = fake.entry();
    fs::write(&file, mended.to_string()).unwrap();
    assert_eq!(servers(&caribou).await, ["fake", "second"]);
    assert_eq!(caribou.call("fake_echo", json!({})).await.json()["session"]["epoch"], epoch);
    assert!(caribou.get("/healthz").await.json().get("stale_config").is_none());
    assert!(!is_stale(&caribou).await);
}

/// Contract 1.1 as architecture §10 amends it: a wrong entry costs itself only; no servers at all is a configuration.
#[tokio::test]
async fn wrong_entries_are_left_out_with_their_reasons_and_none_at_all_is_fine() {
    let (caribou, fake) = Caribou::with_stdio(json!({ "calls": { "echo": ["default"] } })).await;
    let epoch = caribou.call("fake_echo", json!({})).await.json()["session"]["epoch"].clone();
    let file = caribou.home().join("extensions_config.json");
    let partly = json!({ "mcpServers": { "bad": { "type": "http" }, "fake": fake.entry(), "worse": 7,
        "odd": { "command": "x", "tool_call_timeout": "soon" } }, "unknown": { "x": 1 } });
    fs::write(&file, partly.to_string()).unwrap();
    let answer = caribou.get("/api/mcp/servers").await.json();
    let states: Vec<_> = answer["servers"].as_array().unwrap().iter().map(|server| &server["absent"]).collect();
    assert_eq!(states, [&json!("dropped"), &Value::Null, &json!("dropped"), &json!("dropped")], "{answer}");
    assert!(answer["servers"][0]["last_error"].as_str().unwrap().contains("url"), "{answer}");
    assert_eq!(caribou.call("fake_echo", json!({})).await.json()["session"]["epoch"], epoch);
    fs::write(&file, "{}").unwrap();
    assert!(servers(&caribou).await.is_empty());
    assert_eq!(caribou.get("/healthz").await.json(), json!({ "status": "ok" }));
}

/// Contract 5.4: an editor that writes piece by piece is never seen half done.
#[tokio::test]
async fn a_file_written_piece_by_piece_applies_when_it_is_whole() {
    let (caribou, fake) = Caribou::with_stdio(json!({ "calls": { "echo": ["default"] } })).await;
    let epoch = caribou.call("fake_echo", json!({})).await.json()["session"]["epoch"].clone();
    let file = caribou.home().join("extensions_config.json");
    let whole = json!({ "mcpServers": { "fake": fake.entry(), "second": fake.entry() } }).to_string();
    let mut written = String::new();
    for piece in whole.as_bytes().chunks(whole.len() / 12 + 1) {
        written.push_str(std::str::from_utf8(piece).unwrap());
        fs::write(&file, if written.len() == piece.len() { "" } else { &written }).unwrap();
        let called = caribou.call("fake_echo", json!({})).await;
        assert_eq!((called.status, &called.json()["session"]["epoch"]), (200, &epoch), "{called:?}");
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(servers(&caribou).await, ["fake", "second"]);
}

/// Contract 1.1: a start with a file that cannot be used, or that was named and is not there, fails and says why.
#[tokio::test]
async fn a_start_with_an_unusable_file_fails_loudly() {
    let setup = Setup::new();
    let broken = setup.home().write("broken.json", "{\n  \"mcpServers\": [\n");
    let missing = setup.home().join("missing.json");
    for (file, why) in [(broken, "broken.json:"), (missing, "does not exist")] {
        let mut command = setup.command(&["serve", "--listen", "127.0.0.1:0"]);
        let output = command.env("CARIBOU_EXTENSIONS_CONFIG_PATH", file).output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(why), "{told}");
    }
}
