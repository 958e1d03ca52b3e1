//! A child's stdout: one message a line, handed to whoever it is for.
//!
//! Owns what happens to each line. Noise is skipped, counted and shown once (invariant O3 holds for what is shown);
//! it never ends the session and is never forwarded. The one reading task of a session never waits for a write.

use std::sync::Arc;

use caribou_core::masker::Masker;
use tokio::io::AsyncRead;
use tracing::{debug, warn};

use super::writer::Writer;
use crate::server_asks::{Listeners, ServerAsks};
use crate::wire::envelope::{Message, each_message};
use crate::wire::excerpt::excerpt;
use crate::wire::ids::Pending;
use crate::wire::line::LineReader;

/// Hands out the messages of one child.
pub(crate) struct Reader {
    pub(crate) server: Arc<str>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) asks: Arc<ServerAsks>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) masker: Masker,
}

impl Reader {
    /// Reads `stdout` to its end and says why it ended. A line of more than `limit` bytes ends it.
    pub(crate) async fn run(self, stdout: impl AsyncRead + Unpin, limit: usize) -> String {
        let mut lines = LineReader::new(stdout, limit);
        let mut noise = 0_u64;
        let reason = loop {
            match lines.next().await {
                Ok(Some(line)) => each_message(line, |message| self.route(message, &mut noise)),
                Ok(None) => break "the server closed its stdout".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        if noise > 0 {
            debug!(server = %self.server, lines = noise, "skipped what was no JSON-RPC on stdout");
        }
        reason
    }

    fn route(&self, message: Message<'_>, noise: &mut u64) {
        match message {
            Message::Response { id, outcome } => self.pending.settle(id, outcome),
            Message::Request { id, method, .. } => self.writer.post(self.asks.answer(id, &method)),
            Message::Notification { method, params } => {
                self.asks.notice(&method, params, Listeners::Shared(&self.pending));
            }
            Message::Noise(text) => {
                *noise += 1;
                if *noise == 1 {
                    let text = excerpt(text, &self.masker);
                    warn!(server = %self.server, text, "stdout holds something else than JSON-RPC; skipped");
                }
            }
        }
    }
}
