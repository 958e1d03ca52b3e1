//! Streamable HTTP, and what HTTP+SSE shares with it: the client, the way to a server, notices and refusals.

mod bearer;
pub(crate) mod challenge;
mod channel;
pub(crate) mod client;
mod exchange;
mod kept;
pub(crate) mod link;
pub(crate) mod live;
pub(crate) mod mirrors;
pub(crate) mod notices;
mod open;
pub(crate) mod refusal;
mod remotes;
mod watch;

pub(crate) use exchange::is_event_stream;
pub(crate) use open::{facts, open, shake_failed};
pub(crate) use remotes::Remotes;

#[cfg(test)]
mod tests;
