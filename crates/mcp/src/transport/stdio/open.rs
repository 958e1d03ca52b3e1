//! The bring-up of one child: start, era, handshake; or its complete undoing.
//!
//! Owns the bound of a bring-up and its error, which names server, bound, what was waited for, and the last lines of
//! stderr (contract 4.5). When an error is returned, nothing of the child is left. A server that ends at a probe it
//! had read is started once more and opened without a probe; a server that ends by itself is not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::config::Stdio;
use caribou_core::era::Era;
use caribou_ports::guard::SpawnError;
use caribou_ports::mcp::{OpenError, SessionFacts};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::channel::StdioChannel;
use super::launch::{Launched, Launcher};
use crate::channel::{Channel as _, Opened, Opening};
use crate::era::probe::{self, ProbeError};
use crate::era::{Greeting, stateless};
use crate::wire::limits::SPAWN_SETTLE;

/// Why a bring-up must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its bound has passed.
    TimedOut(Duration),
    /// Nobody wants the session any more.
    Abandoned,
}

impl Stop {
    /// As the error of the bring-up, which waited for `awaited`.
    pub(crate) fn into_open_error(self, server: &str, awaited: &str, stderr: &str) -> OpenError {
        let Self::TimedOut(bound) = self else { return OpenError::Abandoned };
        let mut message =
            format!("server `{server}` was not ready within `session_init_timeout` ({bound:?}): waited for {awaited}");
        warn!(server, ?bound, awaited, "a session was not ready in time");
        if !stderr.is_empty() {
            message.push_str("; last lines of its stderr:\n");
            message.push_str(stderr);
        }
        OpenError::Timeout { message }
    }
}

/// Starts a child and shakes hands with it, until `stop` says otherwise.
///
/// # Errors
/// See [`OpenError`]. Nothing is left of the child then.
pub(crate) async fn open(
    launcher: &Launcher,
    stdio: &Stdio,
    opening: &Opening,
    mut stop: Pin<&mut (impl Future<Output = Stop> + Send)>,
) -> Result<Opened, OpenError> {
    match attempt(launcher, stdio, opening, stop.as_mut()).await {
        Err(Failure::LostByProbe(error)) => {
            debug!(server = %opening.server.name, %error, "it ended at a probe; starting it again without one");
            opening.eras.learn(&opening.server, Era::Legacy);
            attempt(launcher, stdio, opening, stop).await.inspect_err(|_| opening.eras.forget(&opening.server))
        }
        settled => settled,
    }
    .map_err(|failure| match failure {
        Failure::LostByProbe(error) | Failure::Final(error) => error,
    })
}

enum Failure {
    /// Another attempt without a probe may do better.
    LostByProbe(OpenError),
    Final(OpenError),
}

async fn attempt(
    launcher: &Launcher,
    stdio: &Stdio,
    opening: &Opening,
    mut stop: Pin<&mut (impl Future<Output = Stop> + Send)>,
) -> Result<Opened, Failure> {
    let server = opening.server.name.as_str();
    let launched = launch(launcher, stdio, opening, stop.as_mut()).await.map_err(Failure::Final)?;
    let channel = StdioChannel::new(launched, opening, launcher.grace);
    let shaken = tokio::select! {
        shaken = probe::open(channel.as_ref(), opening) => shaken.map_err(Ok),
        stop = stop => Err(Err(stop)),
    };
    let failed = match shaken {
        Ok(greeting) => {
            watch(&channel, opening, &greeting);
            return Ok(opened(channel, greeting));
        }
        Err(failed) => failed,
    };
    channel.close().await;
    Err(match failed {
        Ok(ProbeError::LostByProbe(error)) if channel.had_read_all() => Failure::LostByProbe(error),
        Ok(ProbeError::LostByProbe(error) | ProbeError::Failed(error)) => Failure::Final(error),
        Err(stop) => Failure::Final(stop.into_open_error(server, opening.awaited.what(), &channel.stderr_tail())),
    })
}

/// Starts the child. One that appears after `stop` is ended before the error is returned.
async fn launch(
    launcher: &Launcher,
    stdio: &Stdio,
    opening: &Opening,
    stop: Pin<&mut (impl Future<Output = Stop> + Send)>,
) -> Result<Launched, OpenError> {
    let server = opening.server.name.as_str();
    opening.awaited.now("its process to start");
    let mut starting = std::pin::pin!(launcher.launch(stdio, &opening.label));
    let stop = tokio::select! {
        started = &mut starting => return started.map_err(|error| not_started(server, error)),
        stop = stop => stop,
    };
    if let Ok(Ok(late)) = timeout(SPAWN_SETTLE, starting).await {
        late.child.group.end(launcher.grace).await;
    }
    Err(stop.into_open_error(server, opening.awaited.what(), ""))
}

fn not_started(server: &str, error: SpawnError) -> OpenError {
    match error {
        SpawnError::NotStartable(why) => OpenError::NotStartable(format!("server `{server}` cannot be started: {why}")),
        SpawnError::HostUnavailable(why) => OpenError::Unreachable(format!("server `{server}`: {why}")),
    }
}

/// A modern server tells of changes only when asked to; a legacy one does so anyway.
fn watch(channel: &StdioChannel, opening: &Opening, greeting: &Greeting) {
    let announces = stateless::announces_tools(greeting.capabilities.as_deref());
    if greeting.era == Era::Modern && opening.watch_lists && announces {
        // Composing our own text does not fail; without it the list is only refreshed later.
        if let Ok(params) = stateless::listen_params(&opening.server) {
            channel.subscribe(stateless::LISTEN, &params);
        }
    }
}

fn opened(channel: Arc<StdioChannel>, greeting: Greeting) -> Opened {
    let facts = SessionFacts {
        era: greeting.era,
        version: greeting.version,
        // Even a modern server may keep something in its process, and the process is this session's alone.
        stateful: true,
        pid: channel.pid(),
        server_info: greeting.server_info,
        capabilities: greeting.capabilities,
    };
    Opened { channel, facts }
}
