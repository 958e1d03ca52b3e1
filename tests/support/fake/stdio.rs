//! The fake over stdio: the process that serves, and the handle of the test that configures it.

use std::io::{BufRead, stdin};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::outlet::Outlet;
use super::replies::Incoming;
use super::script::Script;
use super::seen::Log;
use super::server::{Context, Server};
use crate::Home;
use crate::caribou::binary;

/// Names the file that holds the script.
const SCRIPT: &str = "FAKE_SCRIPT";

/// Names the file that records are added to.
const LOG: &str = "FAKE_LOG";

/// Serves until stdin ends or the script says so. The whole of the binary `fake-mcp`.
///
/// # Panics
/// There is no script.
pub fn serve() -> ExitCode {
    let path = std::env::var_os(SCRIPT).expect("FAKE_SCRIPT names the script");
    let script = Script::parse(&std::fs::read_to_string(path).expect("the script can be read"));
    let log = std::env::var_os(LOG).map_or(Log::Nowhere, |path| Log::File(path.into()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.expect("a runtime starts").block_on(run(Server::new(script, log)));
    ExitCode::SUCCESS
}

/// What may take long, and is done beside whatever comes next.
const SLOW: [&str; 4] = ["tools/call", "prompts/get", "resources/read", "completion/complete"];

async fn run(server: Arc<Server>) {
    let nobody = Incoming { id: None, method: None, params: None };
    let outlet = Outlet::Stdout(Arc::new(Mutex::new(server.script.framing.clone())));
    let _terminated = tokio::spawn(watch_sigterm(Arc::clone(&server)));
    server.log.add("start", &std::env::args().collect::<Vec<_>>().join(" "));
    server.run(&server.script.start, &nobody, &outlet, Context::default()).await;
    let mut lines = read_lines();
    while let Some(line) = lines.recv().await {
        server.log.add("recv", &line);
        let incoming: Incoming = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let may_be_slow = incoming.method.as_deref().is_some_and(|method| SLOW.contains(&method));
        let work = server.accept(incoming, outlet.clone(), Context::default());
        if may_be_slow {
            tokio::spawn(work);
        } else {
            work.await;
        }
    }
    server.log.add("eof", "");
    server.run(&server.script.eof, &nobody, &outlet, Context::default()).await;
}

async fn watch_sigterm(server: Arc<Server>) {
    let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    terminate.expect("SIGTERM can be watched").recv().await;
    server.log.add("term", "");
    if !server.script.ignore_sigterm {
        std::process::exit(0);
    }
}

/// Lines from a thread of their own, so that a read that never ends holds no task up.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// A script on disk with its log, as a stdio server of the configuration.
#[derive(Debug)]
pub struct StdioFake {
    script: PathBuf,
    log: PathBuf,
}

impl StdioFake {
    /// Writes the script into the test's folder under this name.
    pub fn new(home: &Home, name: &str, script: impl Into<Script>) -> Self {
        let text = serde_json::to_string(&script.into()).expect("a script is plain data");
        Self { script: home.write(&format!("{name}.script.json"), &text), log: home.join(&format!("{name}.jsonl")) }
    }

    /// Its entry of `mcpServers`.
    pub fn entry(&self) -> Value {
        json!({ "command": binary("fake-mcp"), "env": self.variables() })
    }

    /// Its entry with further members.
    pub fn entry_with(&self, members: Value) -> Value {
        with(self.entry(), members)
    }

    /// What its environment must hold.
    pub fn variables(&self) -> Value {
        json!({ SCRIPT: self.script, LOG: self.log })
    }

    /// What it saw, all its processes together.
    pub fn log(&self) -> Log {
        Log::File(self.log.clone())
    }

    /// The processes of it that are still alive.
    pub fn alive(&self) -> Vec<u32> {
        self.log().pids().into_iter().filter(|pid| crate::process::is_alive(*pid)).collect()
    }
}

/// `entry` with `members` laid over it; members of an object are merged one level deep.
pub(super) fn with(mut entry: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("members of an entry are an object") };
    for (name, value) in members {
        match (entry.get_mut(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
            (_, value) => entry[name] = value,
        }
    }
    entry
}
