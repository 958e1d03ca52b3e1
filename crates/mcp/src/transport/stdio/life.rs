//! The life of one child, from its start until nothing is left of it.
//!
//! Owns how an end is noticed: by the child's exit, even while a grandchild holds its stdout open; by the end of its
//! stdout or stdin; by our own close. Whichever comes first, calls in flight fail promptly, with the exit and the last
//! lines of stderr where there are any, and then the whole process group is ended, also when its leader has left by
//! itself. Every wait is bounded (invariant B1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caribou_ports::BoxFuture;
use caribou_ports::guard::{ChildGroup, Exit, HostedChild};
use caribou_ports::mcp::Disconnect;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use super::reader::ReadingEnd;
use super::stderr::StderrTail;
use super::writer::Writer;
use crate::wire::ids::Pending;
use crate::wire::limits::{DRAIN, EXIT_AFTER_EOF};

/// How long the end of a group may take beyond its own two waits before it is given up, loudly.
const END_MARGIN: Duration = Duration::from_secs(5);

/// What happens to one child.
pub(crate) struct Life {
    pub(crate) server: Arc<str>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) tail: Arc<StderrTail>,
    pub(crate) grace: Duration,
    pub(crate) signs: Arc<Signs>,
}

/// What the life of a child tells others, and is told by them.
pub(crate) struct Signs {
    /// Set to begin the end.
    pub(crate) closing: CancellationToken,
    /// Set when nothing is left.
    pub(crate) closed: CancellationToken,
    /// How it ended by itself.
    pub(crate) ended: watch::Sender<Option<Disconnect>>,
    /// Whether it had read all we wrote when it ended by itself.
    pub(crate) read_all: AtomicBool,
}

impl Signs {
    /// No sign given.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            ended: watch::Sender::new(None),
            read_all: AtomicBool::new(false),
        })
    }
}

/// The tasks that read the child's pipes.
pub(crate) struct Pipes {
    pub(crate) stdout: JoinHandle<ReadingEnd>,
    pub(crate) stderr: JoinHandle<()>,
}

impl Life {
    /// Lives it; resolves when nothing is left of the child.
    pub(crate) async fn run(self, child: HostedChild, mut pipes: Pipes) {
        let HostedChild { pid, mut exited, group } = child;
        let sign = self.first_sign(&mut exited, &mut pipes).await;
        self.pending.ending("the session is ending");
        let exit = self.fail_calls(&sign, &mut exited, &mut pipes).await;
        self.writer.close().await;
        if exit.is_none() && !matches!(sign, Sign::Reading(ReadingEnd::GaveUp { .. })) {
            // Most servers leave when their stdin ends; those need no signal.
            let _ = timeout(self.grace, &mut exited).await;
        }
        self.end_group(pid, group.as_ref()).await;
        pipes.drain().await;
        pipes.stdout.abort();
        pipes.stderr.abort();
        self.signs.closed.cancel();
    }

    /// Waits for whatever comes first.
    async fn first_sign(&self, exited: &mut BoxFuture<'static, Exit>, pipes: &mut Pipes) -> Sign {
        tokio::select! {
            biased;
            () = self.signs.closing.cancelled() => Sign::Closing,
            exit = exited => Sign::Exited(exit),
            end = &mut pipes.stdout => Sign::Reading(end.unwrap_or(ReadingEnd::Closed)),
            () = self.writer.broken() => Sign::StdinClosed,
        }
    }

    /// Fails the calls in flight, and says how the child exited if it has.
    async fn fail_calls(&self, sign: &Sign, exited: &mut BoxFuture<'static, Exit>, pipes: &mut Pipes) -> Option<Exit> {
        let exit = match sign {
            Sign::Exited(exit) => Some(*exit),
            // An exit mostly follows, and says more than a closed pipe.
            Sign::Reading(ReadingEnd::Closed) | Sign::StdinClosed => timeout(EXIT_AFTER_EOF, exited).await.ok(),
            Sign::Reading(ReadingEnd::GaveUp { .. }) => None,
            Sign::Closing => {
                self.pending.end(Disconnect { reason: sign.reason(), exit: None, stderr: String::new() });
                return None;
            }
        };
        if exit.is_some() {
            pipes.drain().await;
        }
        self.signs.read_all.store(self.writer.all_was_read(), Ordering::Release);
        let reason = if exit.is_some() { Sign::ENDED.to_owned() } else { sign.reason() };
        let disconnect = Disconnect { reason, exit, stderr: self.tail.text() };
        debug!(server = %self.server, reason = disconnect.reason, ?exit, "a session ended by itself");
        self.pending.end(disconnect.clone());
        self.signs.ended.send_replace(Some(disconnect));
        exit
    }

    async fn end_group(&self, pid: u32, group: &dyn ChildGroup) {
        if timeout(self.grace * 2 + END_MARGIN, group.end(self.grace)).await.is_err() {
            error!(server = %self.server, pid, "a process group did not end; it may be left behind");
        }
    }
}

/// What tells that a session ends.
enum Sign {
    Closing,
    Exited(Exit),
    Reading(ReadingEnd),
    StdinClosed,
}

impl Sign {
    const ENDED: &str = "the server's process ended";

    /// For people.
    fn reason(&self) -> String {
        match self {
            Self::Closing => "the session was closed".to_owned(),
            Self::Exited(_) => Self::ENDED.to_owned(),
            Self::Reading(ReadingEnd::Closed) => "the server closed its stdout".to_owned(),
            Self::Reading(ReadingEnd::GaveUp { error, .. }) => error.to_string(),
            Self::StdinClosed => "the server closed its stdin".to_owned(),
        }
    }
}

impl Pipes {
    /// Lets both be read to their ends, for a bounded moment: what a child wrote before it exited still counts.
    async fn drain(&mut self) {
        let _ = timeout(DRAIN, async {
            if !self.stdout.is_finished() {
                let _ = (&mut self.stdout).await;
            }
            if !self.stderr.is_finished() {
                let _ = (&mut self.stderr).await;
            }
        })
        .await;
    }
}
