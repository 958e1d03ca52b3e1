//! A receiver of task events over HTTP, within the test's own process: each key has one effect, however often it comes.
//!
//! What an agent's platform would be: it launches a run for a key it has not seen, names that run again for one it has,
//! and tells how a run went. As badly behaved as it is told to be, in an order that its seed draws; it may accept an
//! event and close the connection without a word.

mod server;
mod table;

pub use server::EventReceiver;
pub use table::{Answers, Moods, ReceiverCounts, ToldEvent};
