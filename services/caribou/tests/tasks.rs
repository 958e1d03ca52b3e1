//! `caribou tasks` as an operator meets it: the real binary, its demo server's reports as tasks.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions, not the helpers beside them")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

const CARIBOU: &str = env!("CARGO_BIN_EXE_caribou");

/// Longer than a start takes on a busy machine.
const START: Duration = Duration::from_secs(60);

/// A replica that follows the reports of the demo server.
struct Replica {
    child: Child,
    url: String,
    folder: TempDir,
}

impl Replica {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let toolset = json!({
            "name": "report", "submit_tool": "report_submit", "status_tool": "report_status",
            "cancel_tool": "report_cancel", "input_tool": "report_input",
        });
        let server = json!({
            "command": CARIBOU, "args": ["demo-server"], "cwd": folder.path(), "task_toolsets": [toolset],
        });
        let document = json!({ "mcpServers": { "demo": server } });
        std::fs::write(folder.path().join("extensions_config.json"), document.to_string()).unwrap();
        std::fs::write(folder.path().join("config.yaml"), "mcp_tasks: {poll_interval_seconds: 1}\n").unwrap();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--config", "config.yaml", "--data-dir", "data"];
        let mut child = command(&folder, &serve).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, line) = mpsc::channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut first = String::new();
            let _ = stdout.read_line(&mut first);
            let _ = sender.send(first);
            let _ = stdout.read_to_string(&mut String::new());
        });
        let mut replica = Self { child, url: String::new(), folder };
        let first = line.recv_timeout(START).unwrap();
        replica.url = first.strip_prefix("LISTENING ").unwrap_or_else(|| panic!("{first:?}")).trim().to_owned();
        replica
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let output = command(&self.folder, &[arguments, &["--server", &self.url]].concat()).output().unwrap();
        Ran::from(output)
    }

    /// Submits a report and gives back the name of its task.
    fn submit(&self) -> String {
        let call = ["tools", "call", "demo_report_submit", "--arg", "topic=ice", "--thread", "t1", "--json"];
        let told = self.run(&call).json();
        told["result"]["structuredContent"]["task_id"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    }

    /// Waits until the task has this status, by the events that are told of it.
    fn until(&self, task: &str, status: &str) -> Value {
        let deadline = std::time::Instant::now() + START;
        loop {
            let shown = self.run(&["tasks", "show", task, "--thread", "t1", "--json"]).json();
            if shown["status"] == status {
                return shown;
            }
            assert!(std::time::Instant::now() < deadline, "{shown}");
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(CARIBOU);
    command.args(arguments).current_dir(folder.path()).env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.stdin(Stdio::null());
    command
}

/// What a command did.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

#[test]
fn a_task_is_listed_shown_answered_and_watched_to_its_end() {
    let replica = Replica::start();
    let task = replica.submit();
    let listed = replica.run(&["tasks", "list", "--thread", "t1"]);
    let mut lines = listed.stdout.lines();
    assert!(lines.next().unwrap().starts_with("TASK "), "{listed:?}");
    assert!(lines.next().unwrap().starts_with(&format!("{task}  report")), "{listed:?}");
    replica.until(&task, "input_required");
    let shown = replica.run(&["tasks", "show", &task, "--thread", "t1"]);
    assert!(shown.stdout.contains("Which format should the report on ice have?"), "{shown:?}");
    let wrong = replica.run(&["tasks", "answer", &task, "--thread", "t1", "--arg", "format=7"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("`format` in the answer is no string (invalid)"), "{wrong:?}");
    let answered = replica.run(&["tasks", "answer", &task, "--thread", "t1", "--arg", "format=text"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let watched = replica.run(&["tasks", "watch", &task, "--thread", "t1"]);
    assert_eq!(watched.code, Some(0), "{watched:?}");
    assert!(watched.stdout.starts_with("A text on ice"), "{watched:?}");
    let told: Vec<_> = watched.stderr.lines().collect();
    assert_eq!((told.first(), told.last()), (Some(&"submitted"), Some(&"completed")), "{watched:?}");
    let late = replica.run(&["tasks", "answer", &task, "--thread", "t1", "--arg", "format=text"]);
    assert!(late.stderr.contains("(conflict)"), "{late:?}");
}

#[test]
fn a_cancelled_task_ends_its_watch_with_1_and_admins_see_whose_it_is() {
    let replica = Replica::start();
    let task = replica.submit();
    let cancelled = replica.run(&["tasks", "cancel", &task, "--thread", "t1", "--json"]);
    assert_eq!(cancelled.json()["cancel_requested"], true, "{cancelled:?}");
    let watched = replica.run(&["tasks", "watch", &task, "--thread", "t1"]);
    assert_eq!((watched.code, watched.stdout.trim()), (Some(1), "cancelled"), "{watched:?}");
    let all = replica.run(&["tasks", "list", "--all", "--from", "demo", "--json"]).json();
    let seen = &all["tasks"][0];
    assert_eq!((&seen["task_id"], &seen["thread_id"], &seen["server"]), (&json!(task), &json!("t1"), &json!("demo")));
    let none = replica.run(&["tasks", "list", "--all", "--active", "--json"]).json();
    assert_eq!(none, json!({ "tasks": [], "next": null }));
    let again = replica.run(&["tasks", "redeliver", &task]);
    assert!(again.code == Some(1) && again.stderr.contains("(conflict)"), "{again:?}");
    let elsewhere = replica.run(&["tasks", "show", &task, "--thread", "t2"]);
    assert!(elsewhere.stderr.contains("MCP task not found (not_found)"), "{elsewhere:?}");
}

#[test]
fn a_replica_must_be_named() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["list", "show t", "cancel t", "answer t --decline", "watch t", "redeliver t"] {
        let arguments: Vec<_> = std::iter::once("tasks").chain(line.split(' ')).collect();
        let ran = Ran::from(command(&folder, &arguments).output().unwrap());
        assert_eq!(ran.code, Some(2), "{line}: {ran:?}");
    }
}
