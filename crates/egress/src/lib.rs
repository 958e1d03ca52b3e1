//! How HTTP requests to servers leave: by which way out, and those of personal connections only to the public internet
//! (architecture.md §9, private networks).
//!
//! Shared by the crates that send such requests and must not know each other. Owns resolving a name and handing out
//! only addresses that `caribou-core` admits, so that a connection goes to exactly what was judged, and the same
//! judgement for addresses written into a URL, which no resolver sees. Who is guarded, and what a refusal means, is
//! decided by the senders.

mod guard;
mod way_out;

pub use guard::{Guard, Refused, refusal_in};
pub use way_out::{NoWayOut, WayOut, WayOutOptions, proxy_address};
