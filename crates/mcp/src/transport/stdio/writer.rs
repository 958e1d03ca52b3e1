//! A child's stdin: whole lines, one after the other.
//!
//! Owns the rule that a line once begun is finished whatever becomes of the caller: half a line would spoil every line
//! after it. A line that fits the pipe is written at once by its caller, without another task. Notices nobody waits
//! for are bounded in number and time (invariant B1), so that a server which does not read cannot hold up our reading.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::wire::limits::{COURTESY_WRITE, COURTESY_WRITES};

/// Writes lines to one child.
pub(crate) struct Writer {
    /// `None` once stdin is closed.
    pipe: Arc<Mutex<Option<Sender>>>,
    courtesies: Arc<Semaphore>,
    /// Set when no line is begun or finished any more.
    stopped: CancellationToken,
    /// Set when the child does not take lines any more.
    broken: CancellationToken,
}

/// The child's stdin is closed, by it or by us.
#[derive(Debug)]
pub(crate) struct StdinClosed;

impl Writer {
    /// Writes to `pipe`.
    pub(crate) fn new(pipe: Sender) -> Arc<Self> {
        Arc::new(Self {
            pipe: Arc::new(Mutex::new(Some(pipe))),
            courtesies: Arc::new(Semaphore::new(COURTESY_WRITES)),
            stopped: CancellationToken::new(),
            broken: CancellationToken::new(),
        })
    }

    /// Writes one message as a line. `begun` is set once the child may have seen a byte of it; from then on the line
    /// is finished even if this future is dropped.
    ///
    /// # Errors
    /// The child's stdin is closed.
    pub(crate) async fn write(&self, message: Vec<u8>, begun: &AtomicBool) -> Result<(), StdinClosed> {
        let line = framed(message);
        let turn = Arc::clone(&self.pipe).lock_owned().await;
        let Some(pipe) = turn.as_ref().filter(|_| !self.stopped.is_cancelled()) else {
            return Err(StdinClosed);
        };
        let mut written = 0;
        while written < line.len() {
            match pipe.try_write(&line[written..]) {
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.broken.cancel();
                    return Err(StdinClosed);
                }
            }
            begun.store(true, Ordering::Relaxed);
        }
        if written == line.len() {
            return Ok(());
        }
        begun.store(true, Ordering::Relaxed);
        let finishing = finish(turn, line, written, self.stopped.clone(), self.broken.clone());
        tokio::spawn(finishing).await.unwrap_or(Err(StdinClosed))
    }

    /// Writes one message that nobody waits for. It is dropped when too many of them wait, or none can be written.
    pub(crate) fn post(self: &Arc<Self>, message: Vec<u8>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Ok(permit) = Arc::clone(&self.courtesies).try_acquire_owned() else {
            debug!("the server reads too slowly; a notice to it was dropped");
            return;
        };
        let writer = Arc::clone(self);
        runtime.spawn(async move {
            let begun = AtomicBool::new(false);
            // What cannot be written in time is not missed: the line itself is finished if it was begun.
            let _ = tokio::time::timeout(COURTESY_WRITE, writer.write(message, &begun)).await;
            drop(permit);
        });
    }

    /// Resolves when the child does not take lines any more.
    pub(crate) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    /// Whether the child has read everything that was written. False when nobody can tell.
    pub(crate) fn all_was_read(&self) -> bool {
        let Ok(pipe) = self.pipe.try_lock() else { return false };
        pipe.as_ref().is_some_and(|pipe| rustix::io::ioctl_fionread(pipe) == Ok(0))
    }

    /// Closes stdin; a line being written is given up.
    pub(crate) async fn close(&self) {
        self.stopped.cancel();
        self.pipe.lock().await.take();
    }
}

/// Writes what the pipe had no room for.
async fn finish(
    mut turn: OwnedMutexGuard<Option<Sender>>,
    line: Vec<u8>,
    written: usize,
    stopped: CancellationToken,
    broken: CancellationToken,
) -> Result<(), StdinClosed> {
    let Some(pipe) = turn.as_mut() else { return Err(StdinClosed) };
    tokio::select! {
        () = stopped.cancelled() => Err(StdinClosed),
        done = pipe.write_all(&line[written..]) => done.map_err(|_| {
            broken.cancel();
            StdinClosed
        }),
    }
}

/// The message as one line. A line end inside it can only be a blank between tokens, so a space means the same.
fn framed(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message.push(b'\n');
    message
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncBufReadExt as _, BufReader};
    use tokio::net::unix::pipe;

    use super::*;

    #[tokio::test]
    async fn a_message_that_spans_lines_is_sent_as_one() {
        let (sender, receiver) = pipe::pipe().expect("pipe");
        let begun = AtomicBool::new(false);
        Writer::new(sender).write(b"{\"a\":\r\n1}".to_vec(), &begun).await.expect("written");
        let line = BufReader::new(receiver).lines().next_line().await.expect("read").expect("a line");
        assert_eq!(line, "{\"a\":  1}");
        assert!(begun.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_line_that_was_begun_is_finished_after_its_caller_left() {
        let (sender, receiver) = pipe::pipe().expect("pipe");
        let writer = Writer::new(sender);
        let begun = AtomicBool::new(false);
        let long = writer.write(vec![b'x'; 1_000_000], &begun);
        tokio::time::timeout(Duration::from_millis(50), long).await.expect_err("the pipe is too small for it");
        assert!(begun.load(Ordering::Relaxed));
        writer.post(b"next".to_vec());
        let mut lines = BufReader::new(receiver).lines();
        assert_eq!(lines.next_line().await.expect("read").expect("a line").len(), 1_000_000);
        assert_eq!(lines.next_line().await.expect("read").expect("a line"), "next");
    }

    #[tokio::test]
    async fn a_reader_that_left_breaks_the_writer() {
        let (sender, receiver) = pipe::pipe().expect("pipe");
        let writer = Writer::new(sender);
        drop(receiver);
        let begun = AtomicBool::new(false);
        writer.write(b"lost".to_vec(), &begun).await.expect_err("nobody reads");
        tokio::time::timeout(Duration::from_secs(5), writer.broken()).await.expect("told");
        writer.close().await;
        assert!(!writer.all_was_read());
    }

    #[tokio::test]
    async fn notices_to_a_server_that_never_reads_are_bounded() {
        let (sender, receiver) = pipe::pipe().expect("pipe");
        let writer = Writer::new(sender);
        for _ in 0..10_000 {
            writer.post(vec![b'x'; 10_000]);
        }
        assert_eq!(writer.courtesies.available_permits(), 0);
        drop(receiver);
    }
}
