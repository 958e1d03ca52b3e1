//! Between the messages of `proto/caribou/peer/v1` and what the port says. No rule stands here.
//!
//! Messages hold headers that are secrets, so they are never printed (invariant O3). JSON goes through as text and is
//! never written anew (W1); what comes in is only known to be JSON.

mod answers;
mod failures;
mod malformed;
mod nudges;
mod requests;
mod sessions;
mod words;

pub(super) use answers::{answer, done, progress, report};
pub(super) use failures::{call_error, failed, unknown_call};
use malformed::Malformed;
pub(super) use nudges::{nudge, nudged};
pub(super) use requests::{exchange, request};
pub(super) use sessions::{facts, facts_message, open_request, wanted};
pub(super) use words::{client_word, hear_request};
