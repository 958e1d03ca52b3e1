//! The lines that the client reads: whole messages, one after the other.

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages that wait to be written; whoever has one more waits for the client to read.
const WAITING: usize = 64;

/// Where lines are written. Clones write to the same place.
#[derive(Clone)]
pub(super) struct Out(mpsc::Sender<Vec<u8>>);

impl Out {
    /// Writes to `output` until every clone is gone, or nobody reads any more; the task is done then.
    pub(super) fn to(mut output: impl AsyncWrite + Unpin + Send + 'static) -> (Self, JoinHandle<()>) {
        let (lines, mut waiting) = mpsc::channel::<Vec<u8>>(WAITING);
        let writing = tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                    break;
                }
            }
        });
        (Self(lines), writing)
    }

    /// Writes one message on a line of its own. One that nobody reads any more is dropped.
    pub(super) async fn line(&self, message: &str) {
        // A line end in JSON text stands between its words only, where a blank says the same.
        let blank = |byte: u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
        let line = message.bytes().map(blank).chain([b'\n']).collect();
        let _ = self.0.send(line).await;
    }

    /// Resolves when nobody reads any more.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}
