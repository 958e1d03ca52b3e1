//! The life of a serving process: listen, serve, be told to stop, end in order.
//!
//! Owns signals and the order of the end: not ready any more, sessions are handed over to other replicas while calls
//! are still answered, no new connection, calls in flight finish within a bound, sessions close, the end is on record,
//! telemetry is flushed. A replica that is alone has nobody to hand over to, and closes its doors at once. A second
//! signal ends the process at once; the guard then takes the children along.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use caribou_core::bounds;
use caribou_core::holding::LifeOver;
use caribou_runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::assemble::Replica;
use crate::doors::Doors;
use crate::telemetry::Telemetry;

/// How long calls in flight may take to finish once the doors are closed. With `CLOSE` and the last flush of the spans
/// it stays below the 30 s after which common process managers kill.
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
    mut doors: Doors,
    router: Router,
    replica: Replica,
    telemetry: Telemetry,
    signals: Signals,
) -> anyhow::Result<()> {
    let end = End {
        runtime: replica.runtime.clone(),
        drain: replica.drain,
        stopping: replica.stopping.clone(),
        over: Arc::default(),
        close: replica.closing.clone(),
    };
    let (over, stop) = (end.over.clone(), end.close.clone());
    tokio::spawn(end.in_order(signals));
    let gone = CancellationToken::new();
    doors.let_peers_in(&replica.runtime, &gone);
    let served = doors.serve(router, replica.runtime.clone(), replica.grpc_options(), stop, DRAIN).await;
    if tokio::time::timeout(CLOSE, replica.stop()).await.is_err() {
        tracing::warn!("some sessions did not close in time; their processes are killed");
    }
    gone.cancel();
    telemetry.flush().await;
    served.context("the listener failed")?;
    // Whoever supervises this process starts another life of the replica.
    over.get().map_or(Ok(()), |why| Err(anyhow::anyhow!("this life of the replica is over: {why}")))
}

/// What ends a replica, up to its doors.
struct End {
    runtime: Runtime,
    /// How long sessions may be handed over.
    drain: Duration,
    stopping: Arc<AtomicBool>,
    /// Why this life is over, if that is the reason.
    over: Arc<OnceLock<LifeOver>>,
    /// Closes the doors.
    close: CancellationToken,
}

impl End {
    /// Waits for a reason, and closes the doors when nothing is left to hand over. Goes on to watch for the signal that
    /// ends everything.
    async fn in_order(self, mut signals: Signals) {
        let is_asked = tokio::select! {
            () = signals.next() => true,
            () = self.life_over() => false,
        };
        self.stopping.store(true, Ordering::Relaxed);
        if is_asked {
            tracing::info!("stopping: calls in flight may finish; a second signal ends at once");
            tokio::select! {
                () = self.runtime.drain(self.drain) => {}
                () = self.life_over() => {}
                () = signals.next() => process::exit(INTERRUPTED),
            }
        }
        self.close.cancel();
        signals.next().await;
        process::exit(INTERRUPTED);
    }

    async fn life_over(&self) {
        let why = self.runtime.life_over().await;
        // Nobody else sets it.
        let _ = self.over.set(why);
    }
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
