//! Clients of HTTP+SSE, the transport of 2024-11-05 (mcp.md §3.4): a GET opens a stream, each message is a POST of its own,
//! and whatever is answered or told comes on the stream. The session is the stream.
//!
//! Any replica takes a POST and does the work; what comes of it goes to the replica that holds the stream, which the
//! address of the POST names. When that one dies the stream ends, the session with it, and the client opens another. The
//! address is no secret and authenticates nobody: the session is for the principal that opened it (invariant P1).

mod open;
mod outbox;
mod post;
mod routes;
mod work;

pub(crate) use open::forget;
pub(crate) use outbox::{Outboxes, Unread};
pub(crate) use routes::routes;
