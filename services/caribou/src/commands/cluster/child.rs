//! One process below this one: started so that it ends with it, read line by line, and ended within a bound.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::commands::output;
use crate::guard::shim;

/// A command for a program that the kernel ends when this process is gone, and that the terminal sends no signals.
///
/// Must be spawned on the main thread: the kernel watches the thread that spawns.
pub(super) fn bound(program: impl AsRef<OsStr>) -> anyhow::Result<Command> {
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let mut command = Command::new(own);
    command.arg(shim::WORD).arg(std::process::id().to_string()).arg("--").arg(program);
    Ok(prepared(command))
}

/// One that is not bound so, because it runs as somebody who may not be able to execute this program.
pub(super) fn unbound(program: impl AsRef<OsStr>) -> Command {
    let mut command = prepared(Command::new(program));
    command.process_group(0);
    command
}

fn prepared(mut command: Command) -> Command {
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Copies the lines of a child to stderr, each behind its name.
pub(super) fn show(name: String, from: impl AsyncRead + Unpin + Send + 'static) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            output::note(format_args!("{name} | {line}"));
        }
    });
}

/// Asks a child to end by this signal, and kills it when it has not after `within`.
pub(super) async fn end(child: &mut Child, signal: Signal, within: Duration) {
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    // A child that has ended meanwhile is not reaped yet, so the number is nobody else's.
    let is_asked = pid.is_some_and(|pid| kill_process(pid, signal).is_ok());
    if is_asked && tokio::time::timeout(within, child.wait()).await.is_ok() {
        return;
    }
    // Fails only for one that is gone.
    let _ = child.kill().await;
}

/// How a process ended, for people.
pub(super) fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}
