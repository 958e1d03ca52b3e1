//! The life of a serving process: listen, serve, be told to stop, end in order.
//!
//! Owns signals and the order of the end: no new connection, calls in flight finish within a bound, sessions close,
//! telemetry is flushed. A second signal ends the process at once; the guard then takes the children along.

use std::process;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use caribou_core::bounds;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::assemble::Replica;
use crate::doors::Doors;
use crate::telemetry::Telemetry;

/// How long calls in flight may take to finish. With `CLOSE` and the last flush of the spans it stays below the 30 s
/// after which common process managers kill.
const DRAIN: Duration = Duration::from_secs(8);

/// How long the runtime may take to end: what its own stop takes at most, and a second for the guard and the store.
/// Less would cut off the audit rows, which are stored last. What is left then dies with the guard.
const CLOSE: Duration = bounds::SESSION_CLOSE
    .saturating_mul(2)
    .saturating_add(bounds::AUDIT_FLUSH)
    .saturating_add(bounds::TASK_STOP)
    .saturating_add(Duration::from_secs(1));

/// What a shell reports for a process that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Serves until a signal asks to stop, then ends everything in order.
///
/// # Errors
/// When the listener fails, or this life of the replica is over and another one must be started.
pub(crate) async fn serve(
    doors: Doors,
    router: Router,
    replica: Replica,
    telemetry: Telemetry,
    mut signals: Signals,
) -> anyhow::Result<()> {
    let stopping = replica.stopping.clone();
    let stop = CancellationToken::new();
    let (asked, runtime) = (stop.clone(), replica.runtime.clone());
    let (told, mut over) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            () = signals.next() => tracing::info!("stopping: calls in flight may finish; a second signal ends at once"),
            why = runtime.life_over() => drop(told.send(why)),
        }
        stopping.store(true, Ordering::Relaxed);
        asked.cancel();
        signals.next().await;
        process::exit(INTERRUPTED);
    });
    let served = doors.serve(router, replica.runtime.clone(), replica.grpc_options(), stop, DRAIN).await;
    if tokio::time::timeout(CLOSE, replica.stop()).await.is_err() {
        tracing::warn!("some sessions did not close in time; their processes are killed");
    }
    telemetry.flush().await;
    served.context("the listener failed")?;
    // Whoever supervises this process starts another life of the replica.
    over.try_recv().map_or(Ok(()), |why| Err(anyhow::anyhow!("this life of the replica is over: {why}")))
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
