//! The life of a serving process: listen, serve, be told to stop, end in order.
//!
//! Owns signals and the order of the end: no new connection, calls in flight finish within a bound, sessions close,
//! telemetry is flushed. A second signal ends the process at once; the guard then takes the children along.

use std::process;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::assemble::Replica;
use crate::doors::Doors;
use crate::telemetry::Telemetry;

/// How long calls in flight may take to finish. With the end of the sessions and the last flush it stays well below
/// the 30 s after which common process managers kill.
const DRAIN: Duration = Duration::from_secs(10);

/// How long all sessions together may take to close; what is left then dies with the guard.
const CLOSE: Duration = Duration::from_secs(10);

/// What a shell reports for a process that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Serves until a signal asks to stop, then ends everything in order.
///
/// # Errors
/// When the listener fails.
pub(crate) async fn serve(
    doors: Doors,
    router: Router,
    replica: Replica,
    telemetry: Telemetry,
    mut signals: Signals,
) -> anyhow::Result<()> {
    let stopping = replica.stopping.clone();
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tokio::spawn(async move {
        signals.next().await;
        stopping.store(true, Ordering::Relaxed);
        tracing::info!("stopping: calls in flight may finish; a second signal ends at once");
        asked.cancel();
        signals.next().await;
        process::exit(INTERRUPTED);
    });
    let served = doors.serve(router, replica.runtime.clone(), replica.grpc_options(), stop, DRAIN).await;
    if tokio::time::timeout(CLOSE, replica.stop()).await.is_err() {
        tracing::warn!("some sessions did not close in time; their processes are killed");
    }
    telemetry.flush().await;
    served.context("the listener failed")
}

/// The signals that ask this process to stop.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over from their default, which is to die at once.
    ///
    /// # Errors
    /// When the process may not watch signals.
    pub(crate) fn take() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Resolves at the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
