//! What a child writes on stderr.
//!
//! Owns the draining, always and whatever the volume, since a child whose stderr nobody reads blocks; and the last
//! bytes of it for people, masked (invariant O3) and bounded (B1). Never takes it for a failure (mcp.md §3.5).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caribou_core::bounds::STDERR_RING_BYTES;
use caribou_core::masker::Masker;
use tokio::io::{AsyncRead, AsyncReadExt};
use tracing::debug;

use crate::wire::excerpt::excerpt;

/// Read at once; a flood is read in as many turns.
const CHUNK_BYTES: usize = 4 * 1024;

/// Dropped at the start of a ring that overflowed within one line: it may be the end of a cut secret.
const CUT_BYTES: usize = 1024;

/// A longer line is logged by its start alone.
const LOGGED_LINE_BYTES: usize = 4 * 1024;

/// The last bytes of one child's stderr.
pub(crate) struct StderrTail {
    server: Arc<str>,
    masker: Masker,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    bytes: VecDeque<u8>,
    overflowed: bool,
}

impl StderrTail {
    /// An empty tail for a child of `server`.
    pub(crate) fn new(server: &str, masker: Masker) -> Arc<Self> {
        Arc::new(Self { server: server.into(), masker, ring: Mutex::default() })
    }

    /// Reads `stderr` to its end.
    pub(crate) async fn drain(self: Arc<Self>, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = [0; CHUNK_BYTES];
        let mut line = Vec::new();
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            self.keep(&chunk[..read]);
            if tracing::enabled!(tracing::Level::DEBUG) {
                self.log(&mut line, &chunk[..read]);
            }
        }
    }

    fn keep(&self, chunk: &[u8]) {
        let mut ring = self.ring();
        ring.bytes.extend(chunk);
        let excess = ring.bytes.len().saturating_sub(STDERR_RING_BYTES);
        if excess > 0 {
            ring.bytes.drain(..excess);
            ring.overflowed = true;
        }
    }

    /// Logs complete lines, the start of each that is too long.
    fn log(&self, line: &mut Vec<u8>, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|&byte| byte == b'\n') {
            let room = LOGGED_LINE_BYTES.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                debug!(server = %self.server, "stderr: {}", excerpt(line, &self.masker));
                line.clear();
            }
        }
    }

    /// The last lines, secrets masked.
    pub(crate) fn text(&self) -> String {
        let (mut bytes, overflowed) = {
            let ring = self.ring();
            (ring.bytes.iter().copied().collect::<Vec<u8>>(), ring.overflowed)
        };
        if overflowed {
            let line_end = bytes.iter().position(|&byte| byte == b'\n');
            bytes.drain(..line_end.map_or(CUT_BYTES.min(bytes.len()), |end| end + 1));
        }
        self.masker.mask(String::from_utf8_lossy(&bytes).trim_end())
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail_of(text: &[u8]) -> String {
        let tail = StderrTail::new("s", Masker::new(["hunter22-secret".to_owned()]));
        Arc::clone(&tail).drain(text).await;
        tail.text()
    }

    #[tokio::test]
    async fn the_tail_is_masked_and_ends_without_blank_lines() {
        assert_eq!(tail_of(b"key hunter22-secret\nImportError: fake\n\n").await, "key ***\nImportError: fake");
    }

    #[tokio::test]
    async fn a_flood_leaves_only_the_last_whole_lines() {
        let mut flood = b"early\n".repeat(10_000);
        flood.extend(b"last words\n");
        let tail = tail_of(&flood).await;
        assert!(tail.len() <= STDERR_RING_BYTES && tail.starts_with("early\n") && tail.ends_with("last words"));
    }

    #[tokio::test]
    async fn a_secret_cut_by_the_ring_does_not_show() {
        let mut flood = b"hunter22-secret".to_vec();
        flood.extend(vec![b'x'; STDERR_RING_BYTES - "secret".len()]);
        assert!(!tail_of(&flood).await.contains("secret"));
    }
}
