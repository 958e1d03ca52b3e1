//! The way out: sessions of other replicas, as if they were here.
//!
//! ```text
//!   peers ──► link (one for each life) ──► line (calls, control) ──► connection ──► sender
//!     └─ open ──► session ──► exchange: one request, over as many connections as it takes
//! ```
//!
//! A connection is that of one life of one replica, proved by its first request, and is never made anew behind the back
//! of a request: whoever sends one knows whether it may have left.

mod connection;
mod exchange;
mod line;
mod link;
mod options;
mod peers;
mod sender;
mod session;

pub use options::{ClientConfigs, PeerOptions};
pub use peers::PeerClient;
