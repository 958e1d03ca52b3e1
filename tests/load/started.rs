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
use serde_json::json;
use tempfile::TempDir;

use crate::http1::{self, Connection};

/// How long a program may take until it says where it listens.
const START: Duration = Duration::from_secs(20);

/// How long a program may take to end when it is asked to.
const LEAVE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// The file in Caribou's folder that its stderr goes to.
const LOG: &str = "log";

/// The names of the echo servers in Caribou's configuration.
const HTTP_ECHO: &str = "echo-http";
const STDIO_ECHO: &str = "echo-stdio";

/// A process of ours.
pub(crate) struct Started(Child);

impl Started {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        let program = command.get_program().to_owned();
        command.spawn().map(Self).with_context(|| format!("starting {}", program.display()))
    }

    /// Starts a stdio echo.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(crate) fn echo_stdio(era: Era) -> anyhow::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = Command::new(this_program()?);
        command.args(echo_arguments(STDIO_ECHO, era)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut started = Self::start(&mut command)?;
        let stdin = started.0.stdin.take().context("no stdin")?;
        let stdout = started.0.stdout.take().context("no stdout")?;
        Ok((started, stdin, stdout))
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
    /// Starts one.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(crate) fn start(era: Era) -> anyhow::Result<Self> {
        let mut command = Command::new(this_program()?);
        // Its stdin stays open in `process` until the drop, and the echo leaves when it closes.
        command.args(echo_arguments(HTTP_ECHO, era)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Started::start(&mut command)?;
        let url = process.listening().context("the HTTP echo")?;
        Ok(Self { address: address(&url)?, url, _process: process })
    }
}

/// A running Caribou with both echo servers configured.
pub(crate) struct Caribou {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The visible name of the HTTP echo's tool.
    pub(crate) http_tool: String,
    /// The visible name of the stdio echo's tool.
    pub(crate) stdio_tool: String,
    process: Started,
    _folder: TempDir,
}

impl Caribou {
    /// Starts `program` in a folder of its own and waits until it shows both tools.
    ///
    /// # Errors
    /// It cannot be started, or does not show them.
    pub(crate) fn start(program: &Path, echo: &HttpEcho, era: Era) -> anyhow::Result<Self> {
        ensure!(
            program.is_file(),
            "there is no {}: build it with `cargo build --profile bench-fast -p caribou`, or name one with --caribou",
            program.display()
        );
        let folder = TempDir::with_prefix("caribou-load-").context("a temporary folder")?;
        let (process, address, [http_tool, stdio_tool]) =
            begin(folder.path(), program, echo, era).with_context(|| log_tail(folder.path()))?;
        Ok(Self { address, http_tool, stdio_tool, process, _folder: folder })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

fn begin(
    folder: &Path,
    program: &Path,
    echo: &HttpEcho,
    era: Era,
) -> anyhow::Result<(Started, SocketAddr, [String; 2])> {
    let mut process = Started::start(&mut serve_command(folder, program, echo, era)?)?;
    let address = address(&process.listening()?)?;
    Ok((process, address, tools(address)?))
}

fn log_tail(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join(LOG)).unwrap_or_default();
    let from = text.lines().count().saturating_sub(20);
    let tail: Vec<&str> = text.lines().skip(from).collect();
    format!("starting Caribou; its log ends with\n{}\n", tail.join("\n"))
}

fn serve_command(folder: &Path, program: &Path, echo: &HttpEcho, era: Era) -> anyhow::Result<Command> {
    let extensions = folder.join("extensions_config.json");
    let servers = json!({
        HTTP_ECHO: { "type": "http", "url": echo.url },
        STDIO_ECHO: { "type": "stdio", "command": this_program()?, "args": echo_arguments(STDIO_ECHO, era) },
    });
    fs::write(&extensions, json!({ "mcpServers": servers }).to_string()).context("writing the configuration")?;
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--extensions"]).arg(extensions);
    command.arg("--data-dir").arg(folder.join("data")).current_dir(folder);
    for (name, _) in std::env::vars_os() {
        // What is set on this machine would be measured too.
        if ["CARIBOU_", "OTEL_", "RUST_LOG"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            command.env_remove(name);
        }
    }
    let log = File::create(folder.join(LOG)).context("creating the log")?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    Ok(command)
}

/// The visible names of the tool `echo` of both servers.
fn tools(caribou: SocketAddr) -> anyhow::Result<[String; 2]> {
    #[derive(Deserialize)]
    struct Listing {
        tools: Vec<Tool>,
    }
    #[derive(Deserialize)]
    struct Tool {
        name: String,
        server: String,
    }
    let mut connection = Connection::open(caribou)?;
    let answer = connection.exchange(&http1::get(caribou, "/api/mcp/tools"))?;
    ensure!(answer.status == 200, "listing the tools: {} {}", answer.status, answer.body);
    let listing: Listing = serde_json::from_str(answer.body).context("the list of tools")?;
    let name = |server: &str| {
        let tool = listing.tools.iter().find(|tool| tool.server == server);
        tool.map(|tool| tool.name.clone()).with_context(|| format!("no tool of {server} in {}", answer.body))
    };
    Ok([name(HTTP_ECHO)?, name(STDIO_ECHO)?])
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
