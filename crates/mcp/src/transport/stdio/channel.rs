//! The channel over a child's pipes.
//!
//! Owns the request as seen by its caller: registered before its first byte is written, cancelled upstream once if it
//! is given up, failed at once when the child ends. Dropping the channel ends the child in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caribou_ports::BoxFuture;
use caribou_ports::mcp::{CallError, Disconnect};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use super::launch::Launched;
use super::life::{Life, Pipes, Signs};
use super::reader::Reader;
use super::stderr::StderrTail;
use super::writer::Writer;
use crate::channel::{Channel, Opening, RequestExtras};
use crate::wire::envelope;
use crate::wire::ids::{Outcome, Pending};
use crate::wire::limits::{DRAIN, EXIT_AFTER_EOF};

/// One child, as a channel.
pub(crate) struct StdioChannel {
    pid: u32,
    pending: Arc<Pending>,
    writer: Arc<Writer>,
    tail: Arc<StderrTail>,
    signs: Arc<Signs>,
    _end_when_dropped: DropGuard,
}

impl StdioChannel {
    /// Speaks with a child that was just started.
    pub(crate) fn new(launched: Launched, opening: &Opening, grace: std::time::Duration) -> Arc<Self> {
        let Launched { child, stdin, stdout, stderr } = launched;
        let name: Arc<str> = opening.server.name.as_str().into();
        let masker = opening.server.masker.clone();
        let (pending, writer) = (opening.asks.pending(), Writer::new(stdin));
        let (tail, signs) = (StderrTail::new(&name, masker.clone()), Signs::new());
        let reader = Reader {
            server: Arc::clone(&name),
            pending: Arc::clone(&pending),
            asks: Arc::clone(&opening.asks),
            writer: Arc::clone(&writer),
            masker,
        };
        let pipes = Pipes {
            stdout: tokio::spawn(reader.run(stdout, opening.max_message_bytes)),
            stderr: tokio::spawn(Arc::clone(&tail).drain(stderr)),
        };
        let life = Life {
            server: name,
            pending: Arc::clone(&pending),
            writer: Arc::clone(&writer),
            tail: Arc::clone(&tail),
            grace,
            signs: Arc::clone(&signs),
        };
        let pid = child.pid;
        tokio::spawn(life.run(child, pipes));
        let end_when_dropped = signs.closing.clone().drop_guard();
        Arc::new(Self { pid, pending, writer, tail, signs, _end_when_dropped: end_when_dropped })
    }

    /// Whether the child had read all we wrote when it ended by itself.
    pub(crate) fn had_read_all(&self) -> bool {
        self.signs.read_all.load(Ordering::Acquire)
    }

    /// Sends a request whose answer comes only when the server stops doing what was asked, so that nobody waits for it.
    pub(crate) fn subscribe(&self, method: &str, params: &RawValue) {
        if let Ok(ticket) = self.pending.register(None) {
            self.writer.post(envelope::request(ticket.id(), method, Some(params)));
        }
    }

    async fn ask(&self, method: &str, params: Option<Box<RawValue>>, extras: RequestExtras) -> Outcome {
        let Ok(mut ticket) = self.pending.register_call(extras.progress, extras.asker) else {
            self.end_known().await;
            return Err(self.disconnected(false));
        };
        let mut flight =
            Flight { writer: &self.writer, id: ticket.id(), begun: AtomicBool::new(false), over: !extras.cancellable };
        let request = envelope::request(ticket.id(), method, params.as_deref());
        // A server may answer before it has read all of a long request.
        let answer = tokio::select! {
            biased;
            // A write that failed has told the child's life, which ends the wait for the answer with the reason.
            _ = self.writer.write(request, &flight.begun) => ticket.answer().await,
            answer = ticket.answer() => answer,
        };
        flight.over = true;
        answer.unwrap_or_else(|| Err(self.disconnected(flight.begun.load(Ordering::Relaxed))))
    }

    fn disconnected(&self, sent: bool) -> CallError {
        let unknown = || Disconnect { reason: "the session ended".to_owned(), exit: None, stderr: String::new() };
        CallError::Disconnected { disconnect: self.pending.ended().unwrap_or_else(unknown), sent }
    }

    async fn tell(&self, method: &str, params: Option<Box<RawValue>>) -> Result<(), CallError> {
        let begun = AtomicBool::new(false);
        let notice = envelope::notification(method, params.as_deref());
        if self.writer.write(notice, &begun).await.is_ok() {
            return Ok(());
        }
        self.end_known().await;
        Err(self.disconnected(begun.load(Ordering::Relaxed)))
    }

    /// Waits for the moment in which it becomes known how a child that is ending ended.
    async fn end_known(&self) {
        if self.pending.ended().is_none() {
            let _ = timeout(EXIT_AFTER_EOF + DRAIN * 2, self.ended()).await;
        }
    }
}

/// A request on its way. Dropping it before it is over tells the server that nobody waits any more.
struct Flight<'c> {
    writer: &'c Arc<Writer>,
    id: u64,
    begun: AtomicBool,
    over: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.over || !self.begun.load(Ordering::Relaxed) {
            return;
        }
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: u64,
            reason: &'static str,
        }
        let params = to_raw_value(&Cancelled { request_id: self.id, reason: "the caller gave the request up" }).ok();
        self.writer.post(envelope::notification("notifications/cancelled", params.as_deref()));
    }
}

impl Channel for StdioChannel {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
        extras: RequestExtras,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(self.ask(method, params, extras))
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<Box<RawValue>>) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(self.tell(method, params))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.signs.closing.cancel();
        let closed = self.signs.closed.clone();
        Box::pin(async move { closed.cancelled().await })
    }

    fn ended(&self) -> BoxFuture<'static, Disconnect> {
        let mut ended = self.signs.ended.subscribe();
        let signs = Arc::clone(&self.signs);
        Box::pin(async move {
            // Keeps the sender alive: a session closed by us never ends by itself.
            let _signs = signs;
            match ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone()) {
                Some(disconnect) => disconnect,
                None => std::future::pending().await,
            }
        })
    }

    fn stderr_tail(&self) -> String {
        self.tail.text()
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}
