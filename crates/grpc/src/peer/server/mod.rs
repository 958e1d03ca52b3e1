//! The way in: what other replicas ask of the sessions that live here.
//!
//! Served by a listener of its own, which only members of the cluster may use and which outlives those of callers: what
//! is still here is asked for until it is handed over.

mod answering;
mod door;
mod owner;
mod runtime_owner;
mod sessions;

pub use door::{PeerDoor, serve_peers};
pub use owner::{Happened, Owner, Running};

pub(crate) use sessions::is_exchange;

pub(super) use door::MAX_STREAMS;
pub(super) use sessions::{LARGEST_MESSAGE, PROTOCOL};
