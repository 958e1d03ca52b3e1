//! A child's stdout: one message a line, handed to whoever it is for.
//!
//! Owns what happens to each line. Noise is skipped, told as an oddity and shown once (invariant O3 holds for what is
//! shown); it never ends the session and is never forwarded. The one reading task of a session never waits for a write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caribou_core::masker::Masker;
use caribou_ports::mcp::{CallError, Disconnect, Oddity};
use tokio::io::AsyncRead;
use tokio::time::timeout;
use tracing::debug;

use super::writer::Writer;
use crate::server_asks::{Listeners, ServerAsks};
use crate::tasks::questions::Reply;
use crate::wire::envelope::{Message, each_message};
use crate::wire::excerpt::excerpt;
use crate::wire::ids::Pending;
use crate::wire::limits::COURTESY_WRITE;
use crate::wire::line::{LineError, LineReader};

/// Hands out the messages of one child.
pub(crate) struct Reader {
    pub(crate) server: Arc<str>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) asks: Arc<ServerAsks>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) masker: Masker,
}

/// How the reading of a child's stdout ended.
pub(crate) enum ReadingEnd {
    /// The child closed it.
    Closed,
    /// We read no further. Stdout stays open until this is dropped, so that the child does not complain of a broken
    /// pipe in the stderr that is shown with the reason.
    GaveUp { error: LineError, _stdout: Box<dyn Send + Sync> },
}

impl Reader {
    /// Reads `stdout` to its end. A line of more than `limit` bytes ends it.
    pub(crate) async fn run(self, stdout: impl AsyncRead + Unpin + Send + Sync + 'static, limit: usize) -> ReadingEnd {
        let mut lines = LineReader::new(stdout, limit);
        let mut was_shown = false;
        loop {
            match lines.next().await {
                Ok(Some(line)) => {
                    each_message(line, |message| self.route(message, &mut was_shown));
                    // Lines that are here already cost no read, so a child that floods us would hold this thread.
                    tokio::task::coop::consume_budget().await;
                }
                Ok(None) => {
                    // Before the last answer: whoever hears it may call again at once, and nobody would read that.
                    self.pending.ending("the server closed its stdout");
                    if let Some(line) = lines.rest() {
                        each_message(line, |message| self.route(message, &mut was_shown));
                    }
                    break ReadingEnd::Closed;
                }
                Err(error) => break ReadingEnd::GaveUp { error, _stdout: Box::new(lines) },
            }
        }
    }

    /// A way to answer a request of the child later.
    fn reply(&self) -> Reply {
        let (writer, pending) = (Arc::clone(&self.writer), Arc::clone(&self.pending));
        Box::new(move |answer| {
            Box::pin(async move {
                let begun = AtomicBool::new(false);
                let written = timeout(COURTESY_WRITE, writer.write(answer, &begun)).await;
                if matches!(written, Ok(Ok(()))) {
                    return Ok(());
                }
                let unknown =
                    || Disconnect { reason: "it takes no answers".to_owned(), exit: None, stderr: String::new() };
                let disconnect = pending.ended().unwrap_or_else(unknown);
                Err(CallError::Disconnected { disconnect, sent: begun.load(Ordering::Relaxed) })
            })
        })
    }

    fn route(&self, message: Message<'_>, was_shown: &mut bool) {
        match message {
            Message::Response { id, outcome } => self.pending.settle(id, outcome),
            Message::Request { id, method, params } => {
                let from = Listeners::Shared(&self.pending);
                if let Some(answer) = self.asks.answer(id, &method, params, from, || self.reply()) {
                    self.writer.post(answer);
                }
            }
            Message::Notification { method, params } => {
                self.asks.notice(&method, params, Listeners::Shared(&self.pending));
            }
            Message::Noise(text) => {
                self.asks.odd(Oddity::NotAMessage);
                if !std::mem::replace(was_shown, true) {
                    let text = excerpt(text, &self.masker);
                    debug!(server = %self.server, text, "stdout holds something else than JSON-RPC; skipped");
                }
            }
        }
    }
}
