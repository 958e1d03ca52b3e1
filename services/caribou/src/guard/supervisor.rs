//! Keeps one guard running, from main's side.
//!
//! Owns the guard process and the reading end of the connection; not what callers ask (`client`). One task:
//!
//! ```text
//!   launch ──► serve ──(connection closed)──► lose all ──► reap guard ──► sweep ──► all gone ──► back off ─┐
//!     ▲          │                                                                                         │
//!     │          └──(stop)──► the same, then end                                                           │
//!     └────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each guard is given the lock of this life and told the trust of the moment before anything else, and every change of
//! it.
//!
//! No order is accepted between `lose all` and the next launch, so a child of the next guard never meets a remainder
//! of the last one (invariant S3).

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use caribou_core::backoff::before_next_start;
use caribou_core::ids::BootId;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::frame::{self, MARK_BOOT, MAX_REPORT_BYTES, Order};
use super::keeper;
use super::roster::Roster;
use super::socket::PacketSocket;
use super::sweep::{self, Marks};

/// A guard that lived this long was healthy, and its successor starts at once.
const HEALTHY: Duration = Duration::from_secs(60);

/// How long a guard may take to kill its children and leave once the connection is closed.
const GUARD_EXIT: Duration = Duration::from_secs(6);

/// The connection to the guard that runs now; `None` while there is none.
pub(super) type Link = Option<Arc<PacketSocket>>;

/// Until when children may live, in milliseconds of the machine's clock; `None` = as long as main does.
pub(super) type Until = Option<u64>;

/// One running guard.
pub(super) struct Running {
    process: Child,
    socket: Arc<PacketSocket>,
}

/// Starts a guard process.
pub(super) fn launch(program: &PathBuf, boot: &BootId) -> io::Result<Running> {
    let (socket, theirs) = PacketSocket::pair()?;
    let process = Command::new(program)
        .arg(keeper::WORD)
        // It needs nothing of ours, and its environment is where secrets would lie about.
        .env_clear()
        .env(MARK_BOOT, boot.as_str())
        // Halves its memory: the allocator would take huge pages in advance.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        // Ctrl-C in a terminal is for main alone.
        .process_group(0)
        .spawn()?;
    Ok(Running { process, socket: Arc::new(socket) })
}

/// The task that keeps a guard running until it is stopped.
pub(super) struct Supervisor {
    pub(super) program: PathBuf,
    pub(super) boot: BootId,
    pub(super) roster: Arc<Roster>,
    pub(super) link: watch::Sender<Link>,
    pub(super) guard_pid: watch::Sender<Option<u32>>,
    pub(super) stop: CancellationToken,
    /// The lock of this life, if it has one.
    pub(super) lock: Option<Arc<File>>,
    /// The trust of the moment.
    pub(super) trust: watch::Receiver<Until>,
    /// What the guard has been told of it.
    pub(super) told: watch::Sender<Until>,
}

impl Supervisor {
    /// Serves `running`, then its successors.
    pub(super) async fn run(self, mut running: Running) {
        let mut failures = 0;
        loop {
            let since = Instant::now();
            self.serve(&running).await;
            self.clear_away(running).await;
            failures = if since.elapsed() >= HEALTHY { 0 } else { failures + 1 };
            running = match self.next_guard(&mut failures).await {
                Some(running) => running,
                None => return,
            };
        }
    }

    /// Hands the reports of one guard on, and the trust to it, until the connection ends or we are stopped.
    async fn serve(&self, running: &Running) {
        let mut trust = self.trust.clone();
        let Ok(mut deaths) = deaths() else { return };
        if self.introduce(running, &mut trust).await.is_err() {
            return;
        }
        self.guard_pid.send_replace(running.process.id());
        self.link.send_replace(Some(running.socket.clone()));
        let mut buffer = vec![0; MAX_REPORT_BYTES];
        let mut untold: Option<(Until, Vec<u8>)> = None;
        loop {
            let order = untold.as_ref().map(|(_, order)| order.as_slice()).unwrap_or_default();
            let received = tokio::select! {
                () = self.stop.cancelled() => return,
                _ = deaths.recv() => {
                    sweep::reap_adopted();
                    continue;
                }
                changed = trust.changed() => {
                    let until = *trust.borrow_and_update();
                    let (Ok(()), Ok(order)) = (changed, order_of(until)) else { return };
                    untold = Some((until, order));
                    continue;
                }
                sent = running.socket.send(order, &[]), if untold.is_some() => {
                    if sent.is_err() {
                        return;
                    }
                    self.told.send_replace(untold.take().and_then(|(until, _)| until));
                    continue;
                }
                received = running.socket.receive(&mut buffer) => received,
            };
            let length = match received {
                Ok(Some(received)) => received.length,
                Ok(None) => return,
                Err(e) => return warn!(error = %e, "the connection to the guard failed"),
            };
            match frame::decode(&buffer[..length]) {
                Ok(report) => self.roster.note(report),
                Err(e) => return warn!(error = %e, "the guard said something unintelligible"),
            }
        }
    }

    /// The first packets on an empty connection, which find room.
    async fn introduce(&self, running: &Running, trust: &mut watch::Receiver<Until>) -> io::Result<()> {
        if let Some(lock) = &self.lock {
            running.socket.send(&frame::encode(&Order::Hold)?, &[lock.as_fd()]).await?;
        }
        let until = *trust.borrow_and_update();
        running.socket.send(&order_of(until)?, &[]).await?;
        self.told.send_replace(until);
        Ok(())
    }

    /// Leaves nothing of a guard and its children behind.
    async fn clear_away(&self, running: Running) {
        let Running { mut process, socket } = running;
        self.link.send_replace(None);
        socket.close();
        let leaders = self.roster.lose_all();
        let guard = process.id().unwrap_or_default();
        if timeout(GUARD_EXIT, process.wait()).await.is_err() {
            warn!(guard, "the guard does not end, killing it");
            let _ = process.start_kill();
            let _ = timeout(GUARD_EXIT, process.wait()).await;
        }
        let marks = Marks { boot: self.boot.as_str(), guard, leaders };
        if !sweep::sweep(&marks).await {
            error!(guard, "processes of lost sessions are still alive");
        }
        self.roster.all_gone();
    }

    /// Starts the next guard, however long that takes; `None` when stopped.
    async fn next_guard(&self, failures: &mut u32) -> Option<Running> {
        loop {
            if self.stop.is_cancelled() {
                return None;
            }
            let wait = before_next_start(*failures);
            warn!(failures = *failures, wait_ms = wait.as_millis(), "the guard ended, starting another one");
            tokio::select! {
                () = self.stop.cancelled() => return None,
                () = sleep(wait) => {}
            }
            match launch(&self.program, &self.boot) {
                Ok(running) => return Some(running),
                Err(e) => error!(error = %e, "the guard cannot be started"),
            }
            *failures += 1;
        }
    }
}

fn order_of(until_ms: Until) -> io::Result<Vec<u8>> {
    Ok(frame::encode(&Order::Trust { until_ms })?)
}

fn deaths() -> io::Result<Signal> {
    signal(SignalKind::child())
}
