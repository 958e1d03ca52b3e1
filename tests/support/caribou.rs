//! Caribou as its users run it: a process of its own, spoken to over HTTP.
//!
//! Each has its own folder, port and configuration. It is killed when the handle is dropped; the folder with its logs
//! is kept when the test failed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::{Answer, Home, HttpFake, Script, StdioFake, eventually, network, process};

/// How long a start may take on a loaded machine.
const START: Duration = Duration::from_secs(30);

/// How long an orderly stop may take, with all children.
const STOP: Duration = Duration::from_secs(30);

/// What a Caribou is started with.
#[derive(Debug, Default)]
pub struct Setup {
    servers: BTreeMap<String, Value>,
    interceptors: Value,
    settings: Option<String>,
    variables: Vec<(String, String)>,
    client: Option<reqwest::Client>,
    program: Option<PathBuf>,
    home: Home,
}

impl Setup {
    /// Nothing configured.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one entry of `mcpServers`.
    #[must_use]
    pub fn server(mut self, name: &str, entry: Value) -> Self {
        self.servers.insert(name.to_owned(), entry);
        self
    }

    /// Sets `mcpInterceptors`.
    #[must_use]
    pub fn interceptors(mut self, entries: Value) -> Self {
        self.interceptors = entries;
        self
    }

    /// Sets the text of `config.yaml`.
    #[must_use]
    pub fn settings(mut self, yaml: &str) -> Self {
        self.settings = Some(yaml.to_owned());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Speaks to it with this client.
    #[must_use]
    pub fn client(mut self, client: reqwest::Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Runs this build of Caribou instead of the one that was built with the tests.
    #[must_use]
    pub fn program(mut self, path: PathBuf) -> Self {
        self.program = Some(path);
        self
    }

    /// The test's folder, to put more into it before the start.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// A command with the product's binary, its environment and its configuration files, for any verb.
    pub fn command(&self, verb: &[&str]) -> Command {
        let mut extensions = json!({ "mcpServers": self.servers });
        if !self.interceptors.is_null() {
            extensions["mcpInterceptors"] = self.interceptors.clone();
        }
        let extensions = self.home.write("extensions_config.json", &extensions.to_string());
        let mut command = Command::new(self.program.clone().unwrap_or_else(|| binary("caribou-under-test")));
        for (name, _) in std::env::vars() {
            // The developer's own settings must not reach the test.
            if name.starts_with("CARIBOU_") || name.starts_with("DEER_FLOW_") || name.starts_with("OTEL_") {
                command.env_remove(name);
            }
        }
        command.args(verb).current_dir(self.home.path()).kill_on_drop(true).stdin(Stdio::null());
        command.env("CARIBOU_EXTENSIONS_CONFIG_PATH", extensions);
        command.env("CARIBOU_DATA_DIR", self.home.join("data"));
        command.envs(self.variables.iter().cloned());
        command
    }

    /// Starts it and waits until it says where it listens.
    pub async fn start(self) -> Caribou {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        if let Some(yaml) = &self.settings {
            command.arg("--config").arg(self.home.write("config.yaml", yaml));
        }
        let log = File::create(self.home.join("caribou.log")).expect("a log can be written into the test's own folder");
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("the binary under test was built");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let first = tokio::time::timeout(START, lines.next_line()).await;
        let url = match &first {
            Ok(Ok(Some(line))) => line.strip_prefix("LISTENING ").map(str::to_owned),
            _ => None,
        };
        let client = self.client.unwrap_or_else(network::http_client);
        let later = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&later);
        let caribou = Caribou { url: url.unwrap_or_default(), client, child, home: self.home, later };
        assert!(!caribou.url.is_empty(), "no LISTENING line but {first:?}; its log:\n{}", caribou.log());
        // Read on, so that a later line never meets a closed pipe.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        caribou
    }
}

/// The path of a binary of this package, beside the running test.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let found = test.ancestors().skip(1).take(3).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("`{name}` was not built; run `cargo build -p caribou-tests --bins`"))
}

/// A running Caribou.
#[derive(Debug)]
pub struct Caribou {
    url: String,
    client: reqwest::Client,
    child: Child,
    home: Home,
    /// What it wrote to stdout after its first line.
    later: Arc<Mutex<Vec<String>>>,
}

impl Caribou {
    /// One with a single stdio server, named `fake`.
    pub async fn with_stdio(script: impl Into<Script>) -> (Self, StdioFake) {
        let setup = Setup::new();
        let fake = StdioFake::new(setup.home(), "fake", script);
        (setup.server("fake", fake.entry()).start().await, fake)
    }

    /// One with a single server over streamable HTTP, named `fake`.
    pub async fn with_http(script: impl Into<Script>) -> (Self, HttpFake) {
        let fake = HttpFake::start(script).await;
        (Setup::new().server("fake", fake.entry()).start().await, fake)
    }

    /// Its address, such as `http://127.0.0.1:41234`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its address for gRPC, such as `grpc://127.0.0.1:41235`.
    ///
    /// # Panics
    /// It does not say one.
    pub async fn grpc_url(&self) -> String {
        let second = || self.later.lock().unwrap_or_else(PoisonError::into_inner).first().cloned();
        let line = eventually(START, "a second LISTENING line", async || second()).await;
        line.strip_prefix("LISTENING ").unwrap_or_else(|| panic!("no LISTENING line: {line}")).to_owned()
    }

    /// Its process id.
    ///
    /// # Panics
    /// It was stopped and reaped.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("still running")
    }

    /// The test's folder.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// What it wrote to stderr so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("caribou.log")).unwrap_or_default()
    }

    /// All processes below it.
    pub fn descendants(&self) -> Vec<u32> {
        process::descendants(self.pid())
    }

    /// A request builder for `path`.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().expect("an HTTP method");
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Sends a request and reads its answer.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        Answer::read(request.send().await.unwrap_or_else(|error| panic!("{error:?}; log:\n{}", self.log()))).await
    }

    /// `GET path`.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    /// `DELETE path`.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request("DELETE", path)).await
    }

    /// `POST path` with exactly this JSON text.
    pub async fn post(&self, path: &str, body: impl Into<String>) -> Answer {
        self.send(self.request("POST", path).header("content-type", "application/json").body(body.into())).await
    }

    /// Calls a tool for nobody in particular.
    pub async fn call(&self, name: &str, arguments: Value) -> Answer {
        self.post("/api/mcp/tools/call", json!({ "name": name, "arguments": arguments }).to_string()).await
    }

    /// Calls a tool in this thread.
    pub async fn call_in(&self, thread: &str, name: &str, arguments: Value) -> Answer {
        let body = json!({ "name": name, "arguments": arguments, "thread_id": thread });
        self.post("/api/mcp/tools/call", body.to_string()).await
    }

    /// All tools listed, as the REST API shows them.
    pub async fn tools(&self) -> Vec<Value> {
        let answer = self.get("/api/mcp/tools").await;
        let tools = answer.json()["tools"].as_array().cloned();
        tools.unwrap_or_else(|| panic!("no list of tools: {answer:?}"))
    }

    /// The visible names of all tools listed.
    pub async fn tool_names(&self) -> Vec<String> {
        self.tools().await.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect()
    }

    /// Asks it to stop, waits until it did, and gives its folder back.
    pub async fn stop(mut self) -> (ExitStatus, Home) {
        process::signal(self.pid(), Signal::TERM);
        let status = tokio::time::timeout(STOP, self.child.wait()).await.expect("stops within its bound");
        (status.expect("can be waited for"), self.home)
    }

    /// Kills it as a crash would.
    pub async fn kill(mut self) -> Home {
        self.child.kill().await.expect("can be killed");
        self.home
    }
}

/// Waits until each of these replicas of one cluster knows all of them: what one notices is told to those that it knows.
pub async fn know_one_another(replicas: &[Caribou]) {
    for caribou in replicas {
        let knows_all = async || {
            let known = caribou.get("/api/replicas").await;
            let known = known.json()["replicas"].as_array().map(Vec::len);
            (known == Some(replicas.len())).then_some(())
        };
        eventually(START, "a replica that knows the others", knows_all).await;
    }
}
