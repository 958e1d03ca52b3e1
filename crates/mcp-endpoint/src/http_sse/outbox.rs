//! What waits to be told on the streams that this replica holds.
//!
//! It is bounded in number and size (invariant B1). Progress and log messages are a courtesy, left out when much waits.
//! When there is no room for an answer or a question the stream ends: its client does not read, and would wait for what
//! is lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caribou_core::bounds::MAX_MESSAGE_BYTES;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Messages that wait on one stream: more than the requests that one client has under way, and a question of each.
const MAX_WAITING: usize = 256;

/// Beyond so many courtesies are left out.
const MAX_COURTESIES: usize = MAX_WAITING / 2;

/// Bytes that wait on one stream: some of the largest answers.
const MAX_WAITING_BYTES: usize = 4 * MAX_MESSAGE_BYTES;

/// The streams by the names of their sessions.
#[derive(Clone, Default)]
pub(crate) struct Outboxes(Arc<Mutex<HashMap<String, Outbox>>>);

struct Outbox {
    queue: mpsc::Sender<String>,
    bytes: Arc<AtomicUsize>,
    /// Cancelled when something found no room: the stream ends.
    is_full: CancellationToken,
}

/// What waits on one stream, for whoever writes it. The outbox is gone with it.
pub(crate) struct Unread {
    of: Outboxes,
    session: String,
    queue: mpsc::Receiver<String>,
    bytes: Arc<AtomicUsize>,
    is_full: CancellationToken,
}

impl Outboxes {
    /// The outbox of a stream that is opened now.
    pub(crate) fn open(&self, session: &str) -> Unread {
        let (queue, unread) = mpsc::channel(MAX_WAITING);
        let (bytes, is_full) = (Arc::<AtomicUsize>::default(), CancellationToken::new());
        let outbox = Outbox { queue, bytes: bytes.clone(), is_full: is_full.clone() };
        self.lock().insert(session.to_owned(), outbox);
        Unread { of: self.clone(), session: session.to_owned(), queue: unread, bytes, is_full }
    }

    /// Whether the stream of this session is here.
    pub(crate) fn holds(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    /// Has a message told on the stream of this session. Whether it will be, or may be left out.
    pub(crate) fn put(&self, session: &str, message: String) -> bool {
        let outboxes = self.lock();
        let Some(outbox) = outboxes.get(session) else { return false };
        let (waiting, bytes) = (MAX_WAITING - outbox.queue.capacity(), outbox.bytes.load(Ordering::Acquire));
        // One message always fits, however large.
        let is_full = waiting > 0 && bytes.saturating_add(message.len()) > MAX_WAITING_BYTES;
        if is_courtesy(&message) && (is_full || waiting >= MAX_COURTESIES) {
            return true;
        }
        outbox.bytes.fetch_add(message.len(), Ordering::AcqRel);
        if !is_full && outbox.queue.try_send(message).is_ok() {
            return true;
        }
        tracing::info!("the event stream of a client ends: it does not read what it is told");
        outbox.is_full.cancel();
        false
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Outbox>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is a notification, as ours begin: requests and answers have an id there.
fn is_courtesy(message: &str) -> bool {
    message.starts_with("{\"jsonrpc\":\"2.0\",\"method\":")
}

impl Unread {
    /// The next message; `None` = something found no room, and the stream is over. May be dropped and asked again.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let message = tokio::select! {
            () = self.is_full.cancelled() => None,
            message = self.queue.recv() => message,
        };
        message.map(|message| self.read(message))
    }

    /// The next message, if one waits.
    pub(crate) fn take(&mut self) -> Option<String> {
        let message = self.queue.try_recv().ok()?;
        Some(self.read(message))
    }

    fn read(&self, message: String) -> String {
        self.bytes.fetch_sub(message.len(), Ordering::AcqRel);
        message
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.of.lock().remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{notification, response};

    fn answer(bytes: usize) -> String {
        let id = serde_json::value::RawValue::from_string("1".to_owned()).unwrap();
        response(&id, &format!("\"{}\"", "x".repeat(bytes)))
    }

    #[test]
    fn messages_are_told_in_order_to_their_stream_alone_until_it_is_gone() {
        let outboxes = Outboxes::default();
        let mut unread = outboxes.open("a");
        assert!(outboxes.put("a", "1".to_owned()) && outboxes.put("a", "2".to_owned()));
        assert!(!outboxes.put("b", "3".to_owned()) && !outboxes.holds("b"));
        assert_eq!((unread.take().as_deref(), unread.take().as_deref(), unread.take()), (Some("1"), Some("2"), None));
        drop(unread);
        assert!(!outboxes.holds("a") && !outboxes.put("a", "4".to_owned()));
    }

    #[test]
    fn courtesies_are_left_out_when_much_waits_and_an_answer_without_room_ends_the_stream() {
        // Invariant B1.
        let outboxes = Outboxes::default();
        let mut unread = outboxes.open("a");
        for _ in 0..MAX_WAITING {
            assert!(outboxes.put("a", notification("notifications/progress", "{}")));
        }
        for _ in MAX_COURTESIES..MAX_WAITING {
            assert!(outboxes.put("a", answer(1)), "there is room for answers beside the courtesies");
        }
        assert!(!unread.is_full.is_cancelled() && !outboxes.put("a", answer(1)) && unread.is_full.is_cancelled());
        assert_eq!(std::iter::from_fn(|| unread.take()).count(), MAX_WAITING);
    }

    #[test]
    fn the_bytes_that_wait_are_bounded_and_one_message_always_fits() {
        // Invariant B1.
        let outboxes = Outboxes::default();
        let mut unread = outboxes.open("a");
        assert!(outboxes.put("a", answer(MAX_WAITING_BYTES)));
        assert!(outboxes.put("a", notification("notifications/message", "{}")), "left out");
        assert!(unread.take().is_some() && unread.take().is_none());
        assert!(outboxes.put("a", answer(MAX_WAITING_BYTES)), "what was read makes room");
        assert!(!outboxes.put("a", answer(1)) && unread.is_full.is_cancelled());
    }
}
