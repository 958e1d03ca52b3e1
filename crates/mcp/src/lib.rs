//! The upstream role of MCP: Caribou as the client of other people's servers.
//!
//! Owns JSON-RPC over raw JSON text, the transports (child processes, streamable HTTP, HTTP+SSE) and the two eras of
//! the protocol. Does not decide when a session is opened, pooled or dropped, and never repeats a tool call that may
//! have been processed (invariant S2). What it does not understand passes unchanged (invariant W1).

mod asked_span;
mod channel;
mod connector;
mod era;
mod error;
mod front;
mod listing;
mod parked;
mod relayed;
#[cfg(test)]
mod scripted;
mod server_asks;
mod session;
pub mod tasks;
mod transport;
mod visits;
mod watched;
mod wire;

pub use connector::{UpstreamOptions, Upstreams};
pub use error::UpstreamsError;
pub use front::{Front, FrontError, FrontOptions};
pub use transport::process::DirectHost;
pub use wire::headers::{METHOD, NAME, PROTOCOL_VERSION, SESSION_ID, unmirrored};
pub use wire::params::{BadAnnotation, MirroredParam, mirrored_params};
