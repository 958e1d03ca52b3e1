//! The command line as an operator meets it: the real binary, its demo server as upstream, real files and signals.
//!
//! Every process runs in a folder of its own with a bare environment, and is killed when its deadline passes.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions, not the helpers beside them")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const CARIBOU: &str = env!("CARGO_BIN_EXE_caribou");

/// Longer than any of these commands takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a command did.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(CARIBOU);
    command.args(arguments).current_dir(folder).env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn caribou(folder: &Path, arguments: &[&str]) -> Ran {
    finish(command(folder, arguments).spawn().unwrap())
}

/// Reads a process to its end.
fn finish(mut child: Child) -> Ran {
    let pid = Pid::from_child(&child);
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let (sender, exit) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait()));
    let code = match exit.recv_timeout(DEADLINE) {
        Ok(status) => status.unwrap().code(),
        Err(_) => {
            kill_process(pid, Signal::KILL).unwrap();
            panic!("the command did not end within {DEADLINE:?}");
        }
    };
    Ran { code, stdout: stdout.recv_timeout(DEADLINE).unwrap(), stderr: stderr.recv_timeout(DEADLINE).unwrap() }
}

/// What comes out of a pipe until it ends; nothing when somebody else reads it.
fn collect(pipe: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, text) = mpsc::channel();
    thread::spawn(move || {
        let mut read = String::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_string(&mut read);
        }
        sender.send(read)
    });
    text
}

/// A folder whose configuration names the demo server.
fn demo_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = json!({"command": CARIBOU, "args": ["demo-server"], "cwd": folder.path()});
    let document = json!({"mcpServers": {"demo": server}});
    std::fs::write(folder.path().join("extensions_config.json"), document.to_string()).unwrap();
    folder
}

/// A replica that serves the demo server.
struct Replica {
    child: Option<Child>,
    url: String,
    folder: TempDir,
}

impl Replica {
    fn start() -> Self {
        let folder = demo_folder();
        let mut child = command(folder.path(), &["serve", "--listen", "127.0.0.1:0"]).spawn().unwrap();
        let (sender, line) = mpsc::channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut first = String::new();
            let _ = stdout.read_line(&mut first);
            let _ = sender.send(first);
            // Keeps the pipe open, as an operator's terminal would.
            let _ = stdout.read_to_string(&mut String::new());
        });
        let mut replica = Self { child: Some(child), url: String::new(), folder };
        let first = line.recv_timeout(DEADLINE).unwrap();
        replica.url = first.strip_prefix("LISTENING ").unwrap_or_else(|| panic!("{first:?}")).trim().to_owned();
        replica
    }

    /// Runs a command against this replica.
    fn run(&self, arguments: &[&str]) -> Ran {
        caribou(self.folder.path(), &[arguments, &["--server", &self.url]].concat())
    }

    fn count(&self, thread: &str) -> String {
        self.run(&["tools", "call", "demo_counter", "--thread", thread]).stdout.trim().to_owned()
    }

    fn stop(mut self, signal: Signal) -> Ran {
        let child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        finish(child)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn the_demo_needs_nothing_and_shows_two_counters() {
    let folder = tempfile::tempdir().unwrap();
    let demo = caribou(folder.path(), &["demo", "--once"]);
    assert_eq!(demo.code, Some(0), "{demo:?}");
    for line in ["kitchen         → 1", "kitchen         → 2", "garden          → 1", "7 tools"] {
        assert!(demo.stdout.contains(line), "{line}: {}", demo.stdout);
    }
    assert_eq!(demo.stderr, "");
    let steps =
        ["submit", "→ submitted", "→ input_required", "question", "answer", "→ completed", "→ A table on reindeer"];
    let mut rest = demo.stdout.as_str();
    for step in steps {
        let at = rest.find(step).unwrap_or_else(|| panic!("{step}: {}", demo.stdout));
        rest = &rest[at + step.len()..];
    }
    let shown = caribou(folder.path(), &["demo", "--json"]).json();
    let answers: Vec<_> =
        (0..3).map(|call| shown["calls"][call]["answer"]["result"]["content"][0]["text"].clone()).collect();
    assert_eq!(answers, ["1", "2", "1"]);
    assert_eq!((&shown["task"]["status"], &shown["task"]["input_required"]), (&json!("completed"), &Value::Null));
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "the demo leaves nothing behind");
}

#[test]
fn tools_are_listed_as_aligned_text_and_as_json() {
    let folder = demo_folder();
    let listed = caribou(folder.path(), &["tools", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let mut lines = listed.stdout.lines();
    assert_eq!(lines.next(), Some("TOOL                SERVER  DESCRIPTION"));
    assert_eq!(lines.next(), Some("demo_add            demo    Adds two numbers."));
    let names: Vec<_> = caribou(folder.path(), &["tools", "list", "--json"]).json()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["raw_name"].clone())
        .collect();
    let reports = ["report_cancel", "report_input", "report_status", "report_submit"];
    assert_eq!(names, [&["add", "counter", "echo", "fail", "files"][..], &reports, &["slow"]].concat());
}

#[test]
fn a_call_prints_the_result_and_a_failed_one_ends_with_1() {
    let folder = demo_folder();
    let sum = caribou(folder.path(), &["tools", "call", "demo_add", "--arg", "a=1", "--arg", "b=2.5"]);
    assert_eq!((sum.code, sum.stdout.as_str(), sum.stderr.as_str()), (Some(0), "3.5\n", ""));
    let echo = ["tools", "call", "demo_echo", "--args-json", r#"{"message":"hi"}"#, "--user", "ann", "--json"];
    let answer = caribou(folder.path(), &echo).json();
    assert_eq!(answer["result"]["content"][0]["text"], "hi");
    assert_eq!(answer["session"]["epoch"], 1);
    let failed = caribou(folder.path(), &["tools", "call", "demo_fail", "--arg", "message=no luck"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), "no luck\n"));
    let unknown = caribou(folder.path(), &["tools", "call", "nothing"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("(not_found)"), "{unknown:?}");
}

#[test]
fn progress_is_told_on_stderr_while_the_result_goes_to_stdout() {
    let folder = demo_folder();
    let slow = ["tools", "call", "demo_slow", "--arg", "steps=2", "--arg", "step_ms=1", "--progress"];
    let ran = caribou(folder.path(), &slow);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "2 steps done\n"));
    assert_eq!(ran.stderr, "1/2 step 1 of 2\n2/2 step 2 of 2\n");
}

#[test]
fn wrong_usage_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "tools",
        "tools call",
        "serve --listen nowhere",
        "tools call x --arg novalue",
        "tools call x --args-json [1]",
        "servers --server ftp://x",
        "servers --server http://user:hunter2@127.0.0.1:1",
    ] {
        let ran = caribou(folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, Some(2), "{line}: {ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn check_names_every_problem_of_both_files_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.yaml"), "listen: 0.0.0.0:1\nsessions:\n  max_live: none\n  odd: 1\n").unwrap();
    let servers = r#"{"mcpServers": {"a": {"type": "http"}, "b": {"command": "x"}}}"#;
    std::fs::write(folder.path().join("extensions_config.json"), servers).unwrap();
    let ran = caribou(folder.path(), &["check", "--config", "c.yaml", "--json"]);
    assert_eq!(ran.code, Some(1));
    let found = ran.json();
    let paths: Vec<_> = found["problems"].as_array().unwrap().iter().map(|problem| problem["path"].clone()).collect();
    assert_eq!(paths, ["$.sessions.max_live", "$.sessions.odd", "$.listen", "$.mcpServers.a"]);
    assert_eq!(found["problems"][0]["line"], 3);
    assert_eq!((found["servers"].as_u64(), found["dropped"].as_u64()), (Some(1), Some(1)));

    let good = caribou(demo_folder().path(), &["check"]);
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(good.stdout.ends_with("1 servers to serve, 0 left out\nall is well\n"), "{}", good.stdout);
}

#[test]
fn check_judges_each_stdio_server_by_the_launch_policy() {
    // Contract 3: the same verdict as the API, without refusing the file.
    let folder = tempfile::tempdir().unwrap();
    let servers = r#"{"mcpServers": {
        "good": {"command": "npx", "args": ["-y", "@scope/server", "-c", "config.json"]},
        "text": {"command": "npx", "args": ["-yc", "touch s3cret"], "enabled": false},
        "shell": {"command": "node", "args": ["server.js"], "env": {"NODE_OPTIONS": "s3cret"}},
        "remote": {"type": "http", "url": "http://127.0.0.1:1/mcp", "command": "sh"}
    }}"#;
    std::fs::write(folder.path().join("extensions_config.json"), servers).unwrap();
    assert_eq!(caribou(folder.path(), &["check"]).code, Some(0), "a file may express anything");
    let ran = caribou(folder.path(), &["check", "--policy"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for line in [
        "good: accepted by the launch policy",
        "text: refused by the launch policy: passes '-c', which would run arbitrary code",
        "shell: refused by the launch policy: uses disallowed stdio command; allowed are npx, uvx",
    ] {
        assert!(ran.stdout.lines().any(|shown| shown == line), "{line}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("s3cret") && !ran.stdout.contains("remote: "), "{}", ran.stdout);

    let mut allowing = command(folder.path(), &["check", "--policy", "--json"]);
    allowing.env("DEER_FLOW_MCP_STDIO_COMMAND_ALLOWLIST", "node");
    let found = finish(allowing.spawn().unwrap()).json();
    assert_eq!(found["policy"][0], serde_json::json!({ "server": "good" }));
    let shell = found["policy"][2]["refused"].as_str().unwrap();
    assert_eq!(shell, "sets environment variable 'NODE_OPTIONS', which runs code at process startup");
}

#[test]
fn wrong_settings_stop_the_start_with_all_their_problems() {
    let folder = demo_folder();
    let mut serve = command(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    serve.env("CARIBOU_SESSIONS_MAX_LIVE", "many").env("CARIBOU_LOG_FORMAT", "xml");
    let ran = finish(serve.spawn().unwrap());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("CARIBOU_SESSIONS_MAX_LIVE: error: $.sessions.max_live"), "{ran:?}");
    assert!(ran.stderr.contains("CARIBOU_LOG_FORMAT: error: $.log.format"), "{ran:?}");
    assert!(!ran.stderr.contains("many") && !ran.stderr.contains("xml"), "{ran:?}");
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let ran = caribou(demo_folder().path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("127.0.0.1") && ran.stderr.contains("auth.mode"), "{ran:?}");
}

#[test]
fn a_replica_keeps_sessions_between_commands_and_closes_them_on_request() {
    let replica = Replica::start();
    assert_eq!([replica.count("t1"), replica.count("t1"), replica.count("t2")], ["1", "2", "1"]);
    let sessions = replica.run(&["sessions", "list", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(2), "{sessions}");
    let servers = replica.run(&["servers"]).stdout;
    assert!(servers.lines().nth(1).is_some_and(|line| line.starts_with("demo    stdio      ready")), "{servers}");
    assert_eq!(replica.run(&["sessions", "close", "--thread", "t1", "--from", "demo"]).stdout, "closed 1\n");
    let again = replica.run(&["tools", "call", "demo_counter", "--thread", "t1"]);
    assert_eq!(again.stdout, "1\n");
    assert!(again.stderr.contains("started anew"), "{again:?}");
    assert_eq!(replica.count("t2"), "2", "the other thread goes on");
}

#[test]
fn a_replica_ends_in_order_on_either_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let replica = Replica::start();
        assert_eq!(replica.count("t"), "1");
        let ended = replica.stop(signal);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn metrics_are_shown_without_arguments() {
    let replica = Replica::start();
    replica.run(&["tools", "call", "demo_echo", "--arg", "message=hunter2"]);
    let address = replica.url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    assert!(metrics.contains("caribou_") && metrics.contains("echo"), "{metrics}");
    assert!(!metrics.contains("hunter2"));
}

#[test]
fn the_schema_that_is_printed_is_the_one_that_is_committed() {
    let printed = caribou(Path::new("/"), &["config", "schema"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (Some(0), include_str!("../config.schema.json")));
}
