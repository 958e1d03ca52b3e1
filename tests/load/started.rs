//! Processes the generator starts: the echo servers and Caribou.
//!
//! Owns their lives: whatever is started here is ended and reaped when it is dropped. A program that cannot be
//! started, or does not say where it listens within [`START`], is an error that shows the end of its log. Keeps B1:
//! every wait has a deadline.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use caribou_core::era::Era;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::call::{CONTEXT_KEY, LIST, USER};
use crate::http1::{self, Connection};

/// How long a program may take until it says where it listens.
const START: Duration = Duration::from_secs(20);

/// How long a program may take to end when it is asked to.
const LEAVE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// The file in Caribou's folder that its stderr goes to.
const LOG: &str = "log";

/// The file in Caribou's folder that names its servers.
const EXTENSIONS: &str = "extensions_config.json";

/// The file in Caribou's folder that holds its own settings.
const SETTINGS: &str = "config.yaml";

/// The names of the echo servers in Caribou's configuration.
const HTTP_ECHO: &str = "echo-http";
const STDIO_ECHO: &str = "echo-stdio";

/// A tool that Caribou shows.
#[derive(Deserialize)]
struct Tool {
    name: String,
    server: String,
}

/// A process of ours.
pub(crate) struct Started(Child);

impl Started {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        let program = command.get_program().to_owned();
        command.spawn().map(Self).with_context(|| format!("starting {}", program.display()))
    }

    /// Starts this program with these arguments, and with both ends of a conversation with it.
    ///
    /// # Errors
    /// It cannot be started again.
    pub(crate) fn piped(arguments: &[&str]) -> anyhow::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = Command::new(this_program()?);
        let mut started = Self::start(command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let stdin = started.0.stdin.take().context("no stdin")?;
        let stdout = started.0.stdout.take().context("no stdout")?;
        Ok((started, stdin, stdout))
    }

    /// Starts this program with one argument, and where it listens.
    ///
    /// # Errors
    /// It cannot be started again, or does not say where it listens.
    pub(crate) fn listening_as(argument: &str) -> anyhow::Result<(Self, SocketAddr)> {
        let mut command = Command::new(this_program()?);
        let mut started = Self::start(command.arg(argument).stdin(Stdio::null()).stdout(Stdio::piped()))?;
        let address = address(&started.listening().context(argument.to_owned())?)?;
        Ok((started, address))
    }

    /// Starts a stdio echo.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(crate) fn echo_stdio(era: Era) -> anyhow::Result<(Self, ChildStdin, ChildStdout)> {
        Self::piped(&echo_arguments(STDIO_ECHO, era))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Asks it to end, and gives it [`LEAVE`] for that: Caribou reaps its guard and its children itself.
    fn leave(&self) -> rustix::io::Result<()> {
        let pid = Pid::from_child(&self.0);
        let ended = pidfd_open(pid, PidfdFlags::empty())?;
        kill_process(pid, Signal::TERM)?;
        poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&LEAVE)).map(drop)
    }

    /// The URL in the first line on stdout; all further lines are dropped.
    fn listening(&mut self) -> anyhow::Result<String> {
        let stdout = self.0.stdout.take().context("no stdout")?;
        let (send, first) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            let read = stdout.read_line(&mut line);
            // Nobody waits any more if this fails, and nobody needs the rest if that does.
            let _ = send.send(read.map(|_| line));
            let _ = io::copy(&mut stdout, &mut io::sink());
        });
        let line = first.recv_timeout(START).context("it did not say in time where it listens")??;
        let url = line.trim_end().strip_prefix("LISTENING ");
        url.map(str::to_owned).with_context(|| format!("the first line on stdout is {line:?}, not LISTENING and a URL"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nobody left to tell.
        let _ = self.leave();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running HTTP echo.
pub(crate) struct HttpEcho {
    url: String,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    _process: Started,
}

impl HttpEcho {
    /// Starts one with so many tools.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(crate) fn start(era: Era, tools: u16) -> anyhow::Result<Self> {
        let mut command = Command::new(this_program()?);
        // Its stdin stays open in `process` until the drop, and the echo leaves when it closes.
        command
            .args(echo_arguments(HTTP_ECHO, era))
            .args(["--tools", &tools.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Started::start(&mut command)?;
        let url = process.listening().context("the HTTP echo")?;
        Ok(Self { address: address(&url)?, url, _process: process })
    }
}

/// A running Caribou that shows the tools of all its servers.
pub(crate) struct Caribou {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    tools: Vec<Tool>,
    process: Started,
    folder: TempDir,
    /// The header that its callers send to say who they are.
    bearer: Option<String>,
}

impl Caribou {
    /// Starts `program` in a folder of its own, configured for `echo` and for the stdio echo.
    ///
    /// # Errors
    /// It cannot be started, or lacks a server.
    pub(crate) fn start(program: &Path, echo: &HttpEcho, era: Era) -> anyhow::Result<Self> {
        let servers = json!({
            HTTP_ECHO: { "type": "http", "url": echo.url },
            STDIO_ECHO: { "type": "stdio", "command": this_program()?, "args": echo_arguments(STDIO_ECHO, era) },
        });
        Self::start_with(program, &Configured { servers, settings: "", asks_who: false })
    }

    /// Starts `program` configured for `echo`, without a record of its calls.
    ///
    /// # Errors
    /// It cannot be started, or lacks a server.
    pub(crate) fn start_bare(program: &Path, echo: &HttpEcho) -> anyhow::Result<Self> {
        let servers = json!({ HTTP_ECHO: { "type": "http", "url": echo.url } });
        Self::start_with(program, &Configured { servers, settings: "audit: {enabled: false}\n", asks_who: false })
    }

    /// Starts `program` configured for `echo`, with a key that callers must have, a record of their calls, and a header
    /// of each kind that is added to them.
    ///
    /// # Errors
    /// It cannot be started, makes no key, or lacks a server.
    pub(crate) fn start_guarded(program: &Path, echo: &HttpEcho) -> anyhow::Result<Self> {
        let servers = json!({ HTTP_ECHO: {
            "type": "http",
            "url": echo.url,
            "headers": { "X-Static": "one of all calls" },
            "user_auth": { "header": "X-User", "users": { USER: "one of a user" } },
            "headers_from_context": { "headers": { "X-Context": CONTEXT_KEY } },
        } });
        Self::start_with(program, &Configured { servers, settings: "auth: {mode: api_keys}\n", asks_who: true })
    }

    /// Starts `program` in a folder of its own, configured for so many servers, each of them `echo`.
    ///
    /// # Errors
    /// It cannot be started, or lacks a server.
    pub(crate) fn start_with_many(program: &Path, echo: &HttpEcho, servers: u16) -> anyhow::Result<Self> {
        let entry = |n| (format!("echo-{n}"), json!({ "type": "http", "url": echo.url }));
        let servers = (1..=servers).map(entry).collect::<Map<_, _>>().into();
        Self::start_with(program, &Configured { servers, settings: "", asks_who: false })
    }

    fn start_with(program: &Path, configured: &Configured) -> anyhow::Result<Self> {
        ensure!(
            program.is_file(),
            "there is no {}: build it with `cargo build --profile bench-fast -p caribou`, or name one with --caribou",
            program.display()
        );
        let folder = TempDir::with_prefix("caribou-load-").context("a temporary folder")?;
        let bearer = configured.asks_who.then(|| key(folder.path(), program)).transpose()?;
        let (process, address, tools) =
            begin(folder.path(), program, configured, bearer.as_deref()).with_context(|| log_tail(folder.path()))?;
        Ok(Self { address, tools, process, folder, bearer })
    }

    /// The header that its callers send to say who they are, if it asks.
    pub(crate) fn bearer(&self) -> Option<&str> {
        self.bearer.as_deref()
    }

    /// The visible name of the HTTP echo's tool.
    ///
    /// # Errors
    /// It is not configured for that.
    pub(crate) fn http_tool(&self) -> anyhow::Result<&str> {
        self.tool(HTTP_ECHO)
    }

    /// The visible name of the stdio echo's tool.
    ///
    /// # Errors
    /// It is not configured for that.
    pub(crate) fn stdio_tool(&self) -> anyhow::Result<&str> {
        self.tool(STDIO_ECHO)
    }

    fn tool(&self, server: &str) -> anyhow::Result<&str> {
        let tool = self.tools.iter().find(|tool| tool.server == server);
        tool.map(|tool| tool.name.as_str()).with_context(|| format!("Caribou shows no tool of {server}"))
    }

    /// Takes its configuration file away. What was in it stays in force (contract 5.4), and there is nothing left to
    /// look at before a look-up but where the file would be.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(crate) fn take_file_away(&self) -> anyhow::Result<()> {
        fs::remove_file(self.folder.path().join(EXTENSIONS)).context("removing the configuration")
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

/// What a Caribou is configured with.
struct Configured {
    servers: Value,
    /// The text of its own settings.
    settings: &'static str,
    /// Whether its callers need a key.
    asks_who: bool,
}

fn begin(
    folder: &Path,
    program: &Path,
    configured: &Configured,
    bearer: Option<&str>,
) -> anyhow::Result<(Started, SocketAddr, Vec<Tool>)> {
    let mut process = Started::start(&mut serve_command(folder, program, configured)?)?;
    let address = address(&process.listening()?)?;
    Ok((process, address, tools(address, bearer)?))
}

/// Has Caribou make a key, and writes the header that holds it.
fn key(folder: &Path, program: &Path) -> anyhow::Result<String> {
    let mut command = clean_command(folder, program);
    command.args(["keys", "create", "--user", USER, "--data-dir"]).arg(folder.join("data"));
    let made = command.output().context("making a key")?;
    ensure!(made.status.success(), "no key was made: {}", String::from_utf8_lossy(&made.stderr));
    let key = String::from_utf8(made.stdout).context("a key")?;
    Ok(format!("Bearer {}", key.trim()))
}

fn log_tail(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join(LOG)).unwrap_or_default();
    let from = text.lines().count().saturating_sub(20);
    let tail: Vec<&str> = text.lines().skip(from).collect();
    format!("starting Caribou; its log ends with\n{}\n", tail.join("\n"))
}

fn serve_command(folder: &Path, program: &Path, configured: &Configured) -> anyhow::Result<Command> {
    let (extensions, settings) = (folder.join(EXTENSIONS), folder.join(SETTINGS));
    let servers = json!({ "mcpServers": configured.servers });
    fs::write(&extensions, servers.to_string()).context("writing the configuration")?;
    fs::write(&settings, configured.settings).context("writing the settings")?;
    let mut command = clean_command(folder, program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--extensions"]).arg(extensions);
    command.arg("--config").arg(settings).arg("--data-dir").arg(folder.join("data"));
    let log = File::create(folder.join(LOG)).context("creating the log")?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    Ok(command)
}

/// `program` in its folder, without what is set on this machine.
fn clean_command(folder: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        // What is set on this machine would be measured too.
        if ["CARIBOU_", "OTEL_", "RUST_LOG"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            command.env_remove(name);
        }
    }
    command
}

/// The tools of all servers.
fn tools(caribou: SocketAddr, bearer: Option<&str>) -> anyhow::Result<Vec<Tool>> {
    #[derive(Deserialize)]
    struct Listing {
        tools: Vec<Tool>,
        pending: Vec<IgnoredAny>,
        failed: Vec<IgnoredAny>,
    }
    let mut connection = Connection::open(caribou)?;
    let identity: Vec<_> = bearer.into_iter().map(|bearer| ("authorization", bearer)).collect();
    let answer = connection.exchange(&http1::get(caribou, LIST, &identity))?;
    ensure!(answer.status == 200, "listing the tools: {} {}", answer.status, answer.body);
    let listing: Listing = serde_json::from_str(answer.body).context("the list of tools")?;
    ensure!(listing.pending.is_empty() && listing.failed.is_empty(), "not every server is listed: {}", answer.body);
    Ok(listing.tools)
}

fn echo_arguments(echo: &str, era: Era) -> Vec<&str> {
    match era {
        Era::Legacy => vec![echo],
        Era::Modern => vec![echo, "--modern"],
    }
}

fn this_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("finding this program")
}

/// `http://HOST:PORT`, with or without a path.
fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let authority = url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    authority.and_then(|text| text.parse().ok()).with_context(|| format!("no address in {url:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_with_and_without_a_path() {
        let expected: SocketAddr = "127.0.0.1:8750".parse().expect("an address");
        for url in ["http://127.0.0.1:8750", "http://127.0.0.1:8750/mcp"] {
            assert_eq!(address(url).ok(), Some(expected));
        }
        assert!(address("127.0.0.1:8750").is_err());
    }
}
