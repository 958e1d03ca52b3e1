//! The bring-up of one child: start, era, handshake; or its complete undoing.
//!
//! Owns the order of the steps and their undoing: when an error is returned, nothing of the child is left. A server
//! that ends at a probe it had read is started once more and opened without one; a server that ends by itself is not.
//! The bound comes from outside, as a future that resolves when the bring-up must not go on (invariant B1).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use caribou_core::config::Stdio;
use caribou_core::era::Era;
use caribou_ports::guard::SpawnError;
use caribou_ports::mcp::{LISTEN, OpenError, SessionFacts};
use tokio::time::timeout;
use tracing::debug;

use super::channel::StdioChannel;
use super::launch::{Launched, Launcher};
use crate::channel::{Channel as _, Opened, Opening, Stop};
use crate::era::probe::{self, ProbeError};
use crate::era::{Greeting, stateless};
use crate::wire::limits::SPAWN_SETTLE;

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
            opening.eras.learn(&opening.server, Era::Legacy, None);
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
        Err(stop) => Failure::Final(stop.into_open_error(opening, &channel.stderr_tail())),
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
    let mut starting = std::pin::pin!(launcher.launch(stdio, &opening.label, opening.folder.as_ref()));
    let stop = tokio::select! {
        started = &mut starting => return started.map_err(|error| not_started(server, error)),
        stop = stop => stop,
    };
    if let Ok(Ok(late)) = timeout(SPAWN_SETTLE, starting).await {
        late.child.group.end(launcher.grace).await;
    }
    Err(stop.into_open_error(opening, ""))
}

fn not_started(server: &str, error: SpawnError) -> OpenError {
    match error {
        SpawnError::NotStartable(why) => OpenError::NotStartable(format!("server `{server}` cannot be started: {why}")),
        SpawnError::HostUnavailable(why) => OpenError::Unreachable(format!("server `{server}`: {why}")),
    }
}

/// A modern server tells of changes only when asked to; a legacy one does so anyway.
fn watch(channel: &StdioChannel, opening: &Opening, greeting: &Greeting) {
    let announced = stateless::Announced::of(greeting.capabilities.as_deref());
    if greeting.era == Era::Modern && opening.watch_lists && announced.any() {
        // Composing our own text does not fail; without it the list is only refreshed later.
        if let Ok(params) = stateless::listen_params(&opening.server, announced) {
            channel.subscribe(LISTEN, &params);
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
    Opened { channel, facts, is_resumed: false }
}
