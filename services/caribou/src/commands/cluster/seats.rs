//! The replicas: started with what they share, watched, and ended together.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::future::{join_all, select_all};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::child::{bound, end, show, told};
use crate::commands::output;

/// How long a replica may take until it serves.
const START: Duration = Duration::from_secs(60);

/// How long it may take to end: what its own end takes at most.
const END: Duration = Duration::from_secs(30);

/// What all replicas are told.
pub(super) struct Shared {
    /// Variables of their environment.
    pub(super) variables: Vec<(&'static str, String)>,
    /// Arguments that name their files.
    pub(super) arguments: Vec<String>,
}

impl Shared {
    /// A command of this program that knows what is shared.
    pub(super) fn command(&self, verb: &str) -> anyhow::Result<Command> {
        let mut command = bound(std::env::current_exe()?)?;
        command.arg(verb).args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        Ok(command)
    }
}

/// One replica.
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) pid: u32,
    child: Child,
}

/// Starts one more, and waits until it serves.
///
/// # Errors
/// It does not start, or says nothing in time.
pub(super) async fn start(number: u8, shared: &Shared, folder: &Path) -> anyhow::Result<Seat> {
    let name = format!("replica-{number}");
    let mut command = shared.command("serve")?;
    command.args(["--listen", "127.0.0.1:0"]).env("CARIBOU_DATA_DIR", folder.join(&name));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("a replica does not start")?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    stderr.into_iter().for_each(|stderr| show(name.clone(), stderr));
    let stdout = stdout.context("a replica has no stdout")?;
    let url = timeout(START, address(&name, stdout)).await.with_context(|| format!("{name} does not serve"))??;
    let pid = child.id().with_context(|| format!("{name} ended as it started"))?;
    Ok(Seat { name, url, pid, child })
}

/// Where it serves: its first line says so. Further lines are shown.
async fn address(name: &str, stdout: ChildStdout) -> anyhow::Result<String> {
    let mut lines = BufReader::new(stdout);
    let mut first = String::new();
    lines.read_line(&mut first).await?;
    let Some(url) = first.trim().strip_prefix("LISTENING ") else {
        bail!("{name} ended as it started; what it says of it stands above");
    };
    show(name.to_owned(), lines);
    Ok(url.to_owned())
}

/// Tells of each that ends. Resolves when none is left.
pub(super) async fn watch(seats: &mut [Seat]) {
    let watched = seats.iter_mut().map(|seat| {
        Box::pin(async move {
            let status = seat.child.wait().await;
            let how = status.map_or_else(|error| error.to_string(), told);
            output::note(format_args!("{} (pid {}) has ended: {how}", seat.name, seat.pid));
        })
    });
    let mut left: Vec<_> = watched.collect();
    while !left.is_empty() {
        ((), _, left) = select_all(left).await;
    }
}

/// Ends all that are left, at the same time.
pub(super) async fn stop(mut seats: Vec<Seat>) {
    join_all(seats.iter_mut().map(|seat| end(&mut seat.child, Signal::TERM, END))).await;
}
